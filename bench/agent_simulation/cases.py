"""`python -m bench agents`: agents by the thousand, simulated, and their answers beside the truth.

Windows are of ten seconds, with a latency of ten; clocks are up to two seconds apart. *Calm*:
nothing goes wrong. *Deaths*: parents are killed, one by one and many at once, half of them without
a word; what that costs their children is counted. *Rough*: beside that 1% of requests get lost, 1%
of answers, links break, some requests take seconds, some clocks are wrong by 20 seconds, some lines
come late or cannot be read. *Outage*: the server of the root is away, twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from bench.agent_simulation.report import costs, outcome, rows
from bench.agent_simulation.scenario import ClockModel, FaultPlan, LinkModel, LogModel, Scenario
from bench.agent_simulation.simulation import simulate
from bench.apart import RunFailedError
from bench.bench import Bench
from bench.figures import Bar, Outcome
from bench.machine import commit

SIZES = (50, 500, 5_000)
QUICK = (60, 120)
WINDOWS = {"calm": 6, "deaths": 20, "rough": 12, "outage": 12}
SEED = 1
LIMITS = {
    "problems": 0.0,
    "missed_windows": 2.0,
    "leaf": 1.0,
    "parent_most": 40.0,
    "growth_leaf": 1.5,
    "growth_root": 1.5,
}
"""The limits of the figures: errors; windows that a dead parent costs a child; requests a second,
sent and received, of a leaf and of the busiest parent while parents die; the growth of the requests
of a leaf and of the root from 500 to 5,000 nodes, without deaths."""
Row = dict[str, Any]
Figures = dict[str, float]


def deaths(nodes: int, seed: int = SEED, windows: int = 12) -> Scenario:
    """Parents die; nothing else goes wrong."""
    return Scenario(
        seed=seed,
        nodes=nodes,
        windows=windows,
        clocks=ClockModel(apart=2.0),
        faults=FaultPlan(
            parents=max(3, nodes // 250),
            rack=max(4, nodes // 150),
            never_back=0.3,
            away=(10.0, 60.0),
        ),
    )


def rough(nodes: int, seed: int = SEED, windows: int = 12) -> Scenario:
    """Everything goes wrong, now and then."""
    return Scenario(
        seed=seed,
        nodes=nodes,
        windows=windows,
        links=LinkModel(lost=0.01, unanswered=0.01, slow=0.005),
        clocks=ClockModel(apart=2.0, far=0.01, farthest=20.0),
        logs=LogModel(disordered=0.1, broken=0.01),
        faults=FaultPlan(
            parents=max(2, nodes // 250),
            leaves=max(2, nodes // 100),
            rack=max(3, nodes // 150),
            never_back=0.1,
            away=(3.0, 40.0),
            partitions=max(2, nodes // 100),
        ),
    )


def outage(nodes: int, seed: int = SEED, windows: int = 12) -> Scenario:
    """The root is away, and has forgotten where the agents sit."""
    return Scenario(
        seed=seed,
        nodes=nodes,
        windows=windows,
        clocks=ClockModel(apart=2.0),
        faults=FaultPlan(root_restarts=2, away=(15.0, 25.0)),
    )


def calm(nodes: int, seed: int = SEED, windows: int = 12) -> Scenario:
    """Clocks are apart, and nothing goes wrong."""
    return Scenario(seed=seed, nodes=nodes, windows=windows, clocks=ClockModel(apart=2.0))


WEATHERS = {"calm": calm, "deaths": deaths, "rough": rough, "outage": outage}


def one(weather: str, nodes: int, windows: int) -> tuple[Row, list[Row]]:
    """Makes a run in a process of its own, and returns its figures and its rows."""
    here = simulate(WEATHERS[weather](nodes, windows=windows))
    return {**outcome(here), **costs(here)}, rows(here, f"{nodes:,} nodes, {weather}")


def run(bench: Bench) -> Outcome:
    """All weathers, or with `--only` some of them: the others stay as an earlier run left them."""
    sizes = QUICK if bench.quick else SIZES
    asked = bench.only or tuple(WEATHERS)
    for weather in asked:
        if weather not in WEATHERS:
            known = ", ".join(WEATHERS)
            raise RunFailedError(f"--only must name weathers, of {known}; got {weather!r}")
    table: list[Row] = []
    found: dict[str, Row] = {}
    if bench.only:
        table, found = _before(bench, asked)
    runs = {
        (weather, nodes): 4 if bench.quick else WINDOWS[weather]
        for weather in asked
        for nodes in sizes
        if weather != "outage" or nodes < sizes[-1]
    }
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        started = {of: pool.submit(one, *of, windows) for of, windows in runs.items()}
        for (weather, nodes), running in started.items():
            of, lines = running.result()
            found[f"{weather} {nodes}"] = {**of, **commit()}
            table += lines
            bench.say(
                f"  {nodes} nodes, {weather}: {of['problems']} problems, {of['windows']} windows, "
                f"{of['cpu_s']:.0f} s"
            )
            for sentence in of["first_problems"]:
                bench.say(f"    {sentence}")
    order = list(WEATHERS)
    table.sort(key=lambda row: order.index(_weather(row)))
    found = dict(sorted(found.items(), key=lambda run: order.index(run[0].split()[0])))
    figures = _figures({row["what"]: row for row in table}, found, sizes)
    bars = [
        Bar(name, figures[name], limit, at_least=False)
        for name, limit in LIMITS.items()
        if name in figures
    ]
    return Outcome("agents", table, figures, bars, {"seed": SEED, "runs": found})


def _figures(by: Mapping[str, Row], found: Mapping[str, Row], sizes: Sequence[int]) -> Figures:
    """Returns the figures of the rows and runs that there are."""
    most, less = sizes[-1], sizes[-2]

    def grows(role: str) -> float:
        large, small = (by[f"{nodes:,} nodes, calm, {role}"] for nodes in (most, less))
        return float(large["both"] / small["both"])

    figures = {"problems": float(sum(of["problems"] for of in found.values()))}
    if f"calm {most}" in found:
        figures |= {"growth_leaf": grows("leaves"), "growth_root": grows("the root")}
    if f"deaths {most}" in found:
        costly = [found[f"deaths {nodes}"]["missed_max"] for nodes in sizes]
        figures |= {
            "missed_windows": float(max(costly)),
            "leaf": by[f"{most:,} nodes, deaths, leaves"]["both"],
            "parent_most": by[f"{most:,} nodes, deaths, parents"]["both_max"],
        }
    return figures


def _before(bench: Bench, asked: Sequence[str]) -> tuple[list[Row], dict[str, Row]]:
    """Returns the rows and runs of an earlier run, without those that are made again."""
    path = bench.results / f"agents{'-quick' if bench.quick else ''}.json"
    if not path.exists():
        return [], {}
    known = json.loads(path.read_text())
    runs = known["settings"]["runs"]
    return (
        [row for row in known["rows"] if _weather(row) not in asked],
        {name: of for name, of in runs.items() if name.split()[0] not in asked},
    )


def _weather(row: Row) -> str:
    return str(row["what"]).split(", ")[1]
