"""`python -m bench agents`: agents by the thousand, simulated, and their answers beside the truth.

Windows are of ten seconds, with a latency of ten. *Deaths*: clocks are up to two seconds apart and
parents are killed, one by one and many at once, half of them without a word; what that costs their
children is counted. *Rough*: beside that 1% of requests get lost, 1% of answers, links break, some
requests take seconds, some clocks are wrong by 20 seconds, some lines come late or cannot be read.
*Outage*: the server of the root is away, twice.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from bench.agent_simulation.report import costs, outcome, rows
from bench.agent_simulation.scenario import ClockModel, FaultPlan, LinkModel, LogModel, Scenario
from bench.agent_simulation.simulation import simulate
from bench.bench import Bench
from bench.figures import Bar, Outcome

SIZES = (50, 500, 5_000)
QUICK = (60, 120)
WINDOWS = {"deaths": 20, "rough": 12, "outage": 12}
SEED = 1
MOST_NODE = 2.0
"""Requests that a node makes in a second, on the average, at most."""
MOST_GROWTH = 1.5
"""How much more a node or the root may have to do among 5,000 nodes than among 500."""


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


WEATHERS = {"deaths": deaths, "rough": rough, "outage": outage}


def one(weather: str, nodes: int, windows: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a run has come to, and its rows; in a process of its own."""
    here = simulate(WEATHERS[weather](nodes, windows=windows))
    return {**outcome(here), **costs(here)}, rows(here, f"{nodes:,} nodes, {weather}")


def run(bench: Bench) -> Outcome:
    sizes = QUICK if bench.quick else SIZES
    table: list[dict[str, Any]] = []
    found: dict[str, dict[str, Any]] = {}
    runs = {
        (weather, nodes): 4 if bench.quick else windows
        for weather, windows in WINDOWS.items()
        for nodes in sizes
        if weather != "outage" or nodes < sizes[-1]
    }
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        started = {of: pool.submit(one, *of, windows) for of, windows in runs.items()}
        for (weather, nodes), running in started.items():
            of, lines = running.result()
            found[f"{weather} {nodes}"] = of
            table += lines
            bench.say(
                f"  {nodes} nodes, {weather}: {of['problems']} problems, {of['windows']} windows, "
                f"{of['cpu_s']:.0f} s"
            )
            for sentence in of["first_problems"]:
                bench.say(f"    {sentence}")
    by = {row["what"]: row for row in table}
    most, less = f"{sizes[-1]:,} nodes", f"{sizes[-2]:,} nodes"

    def growth(role: str, column: str) -> float:
        of = f"deaths, {role}"
        return float(by[f"{most}, {of}"][column] / by[f"{less}, {of}"][column])

    figures = {
        "problems": float(sum(of["problems"] for of in found.values())),
        "missed_windows": float(max(found[f"deaths {nodes}"]["missed_max"] for nodes in sizes)),
        "made_by_a_leaf": max(by[f"{most}, {of}, leaves"]["made"] for of in ("deaths", "rough")),
        "growth_leaf": growth("leaves", "both"),
        "growth_parent": growth("parents", "both_max"),
        "growth_root": growth("the root", "both"),
        "cpu_s": max(of["cpu_s"] for of in found.values()),
    }
    bars = [
        Bar("problems", figures["problems"], 0, at_least=False),
        Bar("missed_windows", figures["missed_windows"], 2, at_least=False),
        Bar("made_by_a_leaf", figures["made_by_a_leaf"], MOST_NODE, at_least=False),
        *(
            Bar(name, figures[name], MOST_GROWTH, at_least=False)
            for name in ("growth_leaf", "growth_parent", "growth_root")
        ),
    ]
    return Outcome("agents", table, figures, bars, {"seed": SEED, "runs": found})
