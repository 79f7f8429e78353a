"""The jobs of the fault runs of agents: sums by key over windows of a log.

With the axes `sequence` and `records` nothing depends on the clock: each window must be exact. With
`time` a pane also ends by the clock. So a line that was written too late for its pane may be late,
and must then be counted as late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import millstream as ms
from millstream.windows.placed import PlacedJob

NAME = "sums"
NODE = "web1"
TREE = ("top", "left", "right")
"""The nodes of the tree: the first is the parent of the others."""
SECONDS, RANGE = 4, 12
"""The lengths of a pane and of a window of the axis `sequence`."""
LINES = 100
"""The length of a pane of the axis `records`."""
PANE_US = 250_000
"""The length of a pane of the axis `time`."""


def sums(record: Any) -> Iterator[tuple[str, int]]:
    yield record["key"], record["n"]


def added(a: int, b: int) -> int:
    return a + b


def _app(nodes: tuple[str, ...], logs: ms.windows.Logs, **axis: Any) -> ms.App:
    app = ms.App("agents")
    job = ms.windows.Job(map=sums, combine=added, shed="never", **axis)
    app.add(job, name=NAME, nodes=nodes, logs=logs)
    return app


STAMPED = ms.windows.Logs(ts="ts", unit="us")
_SEQUENCE = {"by": "sequence", "sequence": "second", "range": RANGE, "pane": SECONDS}

by_sequence = _app((NODE,), STAMPED, **_SEQUENCE)
by_records = _app((NODE,), STAMPED, by="records", range=3 * LINES, pane=LINES)
by_time = _app((NODE,), STAMPED, range=f"{3 * PANE_US}us", pane=f"{PANE_US}us")
tree = _app(TREE, STAMPED, **_SEQUENCE)

APPS = {"by_sequence": by_sequence, "by_records": by_records, "by_time": by_time, "tree": tree}


def job_of(app: ms.App) -> ms.windows.Job:
    """The job of one of these applications."""
    placed = app.parts[NAME]
    assert isinstance(placed, PlacedJob)
    return placed.job
