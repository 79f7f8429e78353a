"""Short forms of nodes' messages about a window, for the tests of bounds."""

from __future__ import annotations

from typing import Any

from millstream.messages.answers import Bound, KnownBound
from millstream.windows.job import Job
from millstream.windows.panes.message import PaneManifest, manifest

Unit = tuple[str, int]


def a_job(kind: str | None = "count", panes: int = 10, **options: Any) -> Job:
    """A job whose windows have so many panes; `kind` None: its algebra says it."""

    def pairs(record: Any) -> list[tuple[str, int]]:
        return [("all", 1)]

    def either(a: Any, b: Any) -> Any:
        return a

    given = {"combine": either, "bounds": kind, **options}
    return Job(map=pairs, range=panes, pane=1, by="records", **given)


def data(records: int, late: dict[str, int] | None = None) -> PaneManifest:
    """A pane that was received."""
    told = manifest("data" if records else "empty", 0)
    told.records, told.late = records, late or {}
    return told


def lost(records: int, why: Any = "shed") -> PaneManifest:
    """A pane that was given up, of which this many records were read."""
    told = manifest("lost", 0, why=why)
    told.shed = records
    return told


def inside(bound: Bound | KnownBound, truth: float) -> bool:
    """True if the truth is within the bound. A null is no limit."""
    low, high = bound.low, bound.high
    slack = 1e-9 * abs(truth)
    return (low is None or low <= truth + slack) and (high is None or truth <= high + slack)
