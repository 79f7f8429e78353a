"""Figure 7: records a second by the number of agents and of reducers, over logs that are there at
once; and what memory an agent has meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.bench import Bench
from bench.imr import live, nodes, texts
from bench.imr.noise import Noise
from bench.imr.plan import Scaling
from bench.imr.watching import Watch

Row = dict[str, Any]


def run(bench: Bench, plan: Scaling) -> list[Row]:
    """A row for each number of agents and reducers."""
    runs = [(agents, reducers) for reducers in plan.reducers for agents in plan.agents]
    jobs = [
        live.job(
            _name(agents, reducers),
            _names(agents),
            by="records",
            range=plan.records,
            pane=plan.records // plan.panes,
            reducers=reducers,
        )
        for agents, reducers in runs
    ]
    most, lines = max(plan.agents), plan.records * plan.windows
    logs = [
        texts.written(bench.data / f"imr-words-{lines}-{node}-{most}.log", node, most, lines)
        for node in range(most)
    ]
    with live.root(bench, "scaling", jobs) as root:
        return [_run(bench, plan, root, logs, *one) for one in runs]


def _run(
    bench: Bench, plan: Scaling, root: live.Root, logs: list[Path], agents: int, reducers: int
) -> Row:
    name = _name(agents, reducers)
    places = [
        nodes.Node(node, name, logs[number], root.folder / f"{name}-{node}", once=True)
        for number, node in enumerate(_names(agents))
    ]
    with (
        Watch(root.url, name, plan.records, reducers) as watch,
        Noise() as shares,
        nodes.running(places, root.url, root.environ) as started,
    ):

        def look() -> None:
            for agent in started:
                agent.sample()
                agent.check()

        windows = watch.until(lambda closed: len(closed) >= plan.windows, look)
    opened = min(one.opened for one in windows if one.opened is not None)
    seconds = max(one.closed or 0.0 for one in windows) - opened
    records = sum(told["records"] for one in windows for told in one.told[:1])
    row = {
        "what": f"{agents} agents, {reducers} reducers",
        "agents": agents,
        "reducers": reducers,
        "records": records,
        "missing": agents * plan.records * plan.windows - records,
        "seconds": seconds,
        "records_per_s": records / seconds,
        "agent_mib": max(agent.resident for agent in started),
        **shares.row(),
    }
    bench.say(f"    {row['what']}: {row['records_per_s']:,.0f} records/s")
    return row


def _name(agents: int, reducers: int) -> str:
    return f"a{agents}r{reducers}"


def _names(agents: int) -> list[str]:
    return [f"n{number}" for number in range(agents)]
