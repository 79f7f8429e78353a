"""Figures 11 (c) and 12 (b): how long a window takes by how much of the data is asked for.

The applications are examples/click_sessions.py and examples/hdfs_writes.py. All logs are there at
once, and the agents read them as fast as they can. A window takes from when the first node has
reached it until it is closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.bench import Bench
from bench.imr import live, waiting
from bench.imr.plan import ClickLatency, HdfsLatency
from examples.imr import click_traffic, hdfs_traffic
from examples.imr.log_files import Row as LogRow
from millstream.model.duration import UNITS

Row = dict[str, Any]
ASKED = ("drawn", "spatial", "temporal")


def clicks(bench: Bench, plan: ClickLatency) -> list[Row]:
    """Figure 11 (c): sessions of users, in windows of two hours."""
    names = tuple(f"web{number}" for number in range(1, plan.agents + 1))
    traffic = click_traffic.Clicks(plan.users, hours=2, nodes=names, requests=plan.requests)
    folder = bench.data / f"imr-clicks-{plan.users}-{plan.requests}-{plan.agents}"
    logs = _written(folder, names, click_traffic.rows(traffic))
    return _rows(bench, "clicks", names, logs, plan.parts, 2 * UNITS["h"])


def hdfs(bench: Bench, plan: HdfsLatency) -> list[Row]:
    """Figure 12 (b): block writes, in windows of 48 hours."""
    names = tuple(f"dn{number}" for number in range(1, plan.agents + 1))
    traffic = hdfs_traffic.Cluster(plan.blocks, nodes=names)
    folder = bench.data / f"imr-hdfs-{plan.blocks}-{plan.agents}"
    logs = _written(folder, names, hdfs_traffic.rows(traffic))
    return _rows(bench, "hdfs", names, logs, plan.parts, 48 * UNITS["h"])


def _written(folder: Path, names: tuple[str, ...], rows: Iterable[LogRow]) -> dict[str, Path]:
    """The logs of all nodes; made once and kept."""
    if not folder.exists():
        fresh = folder.with_suffix(".writing")
        fresh.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            files = {node: stack.enter_context(open(fresh / f"{node}.log", "w")) for node in names}
            for node, line, _ in rows:
                files[node].write(f"{line}\n")
        fresh.rename(folder)
    return {node: folder / f"{node}.log" for node in names}


def _rows(
    bench: Bench,
    kind: str,
    names: tuple[str, ...],
    logs: dict[str, Path],
    parts: tuple[float, ...],
    length: int,
) -> list[Row]:
    """A row for everything, and one for each specification and part."""
    runs = [("full", 1.0), *((asked, part) for asked in ASKED for part in parts)]
    options = {
        _name(*run): {} if run[0] == "full" else {"fidelity": [run[0], run[1]]} for run in runs
    }
    jobs = [live.job(name, [*names], kind=kind, **given) for name, given in options.items()]
    rows = []
    with live.root(bench, f"latency-{kind}", jobs) as root:
        for asked, part in runs:
            found = waiting.measured(root, _name(asked, part), logs, slide=length, windows=1)
            row = {"what": f"{asked} {part:.0%}", "asked": asked, "part": part, **found}
            bench.say(f"    {row['what']}: {row['window_s']:.2f} s, {row['fidelity']:.0%}")
            rows.append(row)
    return rows


def _name(asked: str, part: float) -> str:
    return f"{asked}{round(100 * part)}"
