"""Combines the reports of a batch's tasks into the progress after the batch.

A `Report` comes from one task that succeeded. The driver combines all of them into a `Progress`;
writing it commits the batch (see stores/progress.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from millstream.engine.beat import LEAST_SHARE
from millstream.engine.sink_rows import SinkRows
from millstream.stores.contract import ChangesRef
from millstream.stores.function_counts import FunctionCounts, merged
from millstream.stores.progress import BatchTiming, PendingWork, Progress, SourceProgress
from millstream.stores.shared.manifest import BaseRef

ENOUGH = LEAST_SHARE
"""Fewer events than this in a batch say little about the cost of one. This must not exceed a key's
least share: otherwise an update with one key that was once measured as expensive would never be
measured again."""


class SourceReport(msgspec.Struct, array_like=True):
    """What a task took in from one source."""

    events: int = 0
    highest: int | None = None
    """The greatest ts seen."""
    refused: int = 0
    """Records that did not become events."""
    lost: int = 0
    """Records that were removed before they could be read; the setting allows that."""
    bytes: int = 0
    """Bytes of the records, where the driver can only estimate them."""


class Report(msgspec.Struct, array_like=True):
    """The report of one task on a batch."""

    sources: dict[str, SourceReport] = {}
    functions: dict[str, FunctionCounts] = {}
    emitted: dict[str, int] = {}
    """Events put onto each stream, including the sources'."""
    pending: PendingWork = msgspec.field(default_factory=PendingWork)
    rows: SinkRows = msgspec.field(default_factory=SinkRows)
    """Rows for sinks, if they are few enough to be sent with the report."""
    staged: list[str] = []
    """Files with rows for sinks that are too many to be sent with the report."""
    highest: int | None = None
    """The greatest ts of any event, including emitted ones."""
    horizon: int | None = None
    """The event time that was reached."""
    late: int = 0
    dead_letters: int = 0
    waiting: int = 0
    """The change in the number of waiting events."""
    latest: dict[str, int] = {}
    """The greatest ts of the events that came to each update with timers, in a final phase."""
    fired: int | None = None
    """The latest timer that fired, in a final phase."""
    changes: list[ChangesRef] = []
    """Objects with the changes, which the commit has to name (in a shared store)."""
    bases: list[BaseRef] = []
    """Bases of shards that were finished since the last report of the same process."""
    oldest: int | None = None
    """The earliest batch in which an event came that was fed in this one (event-time order)."""
    error: str = ""
    """The error of one of the dead letters."""
    retriable: bool = True
    """True if that dead letter can be retried."""

    def counts(self, function: str) -> FunctionCounts:
        """Returns the counts of a function, to count in."""
        return self.functions.setdefault(function, FunctionCounts())

    def source(self, name: str) -> SourceReport:
        """Returns the report on a source, to count in."""
        return self.sources.setdefault(name, SourceReport())


def least(*times: int | None) -> int | None:
    """Returns the least of the times that are not None."""
    return min((time for time in times if time is not None), default=None)


def greatest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)


def advanced(
    before: Progress, reports: list[Report], batch: int, clock: int, positions: Mapping[str, Any]
) -> Progress:
    """Returns the progress after a batch, from the one before it and its tasks' reports."""
    sources = _sources(before.sources, reports, clock, positions)
    return Progress(
        batch=batch,
        clock=clock,
        horizon=greatest(before.horizon, *(r.horizon for r in reports)),
        highest=greatest(before.highest, *(r.highest for r in reports)),
        sources=sources,
        waiting=before.waiting + sum(r.waiting for r in reports),
        pending=_pending(reports),
        timing=BatchTiming(costs=_costs(before.timing.costs, reports)),
        events=before.events + sum(s.events for r in reports for s in r.sources.values()),
        late=before.late + sum(r.late for r in reports),
        dead_letters=before.dead_letters + sum(r.dead_letters for r in reports),
        functions=merged(before.functions, (r.functions for r in reports), batch),
        query=before.query,
        emitted=_summed(before.emitted, (r.emitted for r in reports)),
        final=before.final,
        ended=before.ended,
    )


def _sources(
    before: Mapping[str, SourceProgress],
    reports: list[Report],
    clock: int,
    positions: Mapping[str, Any],
) -> dict[str, SourceProgress]:
    """Returns the state of each source after a batch at time `clock`, in the order of their names.

    A source is listed once it has a position, or one of its records was taken in or refused.
    """
    names = {*before, *positions}
    names.update(
        name
        for report in reports
        for name, source in report.sources.items()
        if source.highest is not None or source.refused
    )
    return {
        name: _source(
            before.get(name, SourceProgress()),
            [report.sources[name] for report in reports if name in report.sources],
            clock,
            positions.get(name),
        )
        for name in sorted(names)
    }


def _source(
    before: SourceProgress, reports: list[SourceReport], clock: int, position: Any
) -> SourceProgress:
    """Returns the state of one source; `position` is None if the batch did not read it."""
    seen = greatest(*(r.highest for r in reports))
    return SourceProgress(
        highest=greatest(before.highest, seen),
        clock=before.clock if seen is None else clock,
        position=before.position if position is None else position,
        events=before.events + sum(r.events for r in reports),
        lost=before.lost + sum(r.lost for r in reports),
        record_bytes=_record_bytes(before.record_bytes, reports),
        refused=before.refused + sum(r.refused for r in reports),
    )


def _record_bytes(before: float, reports: list[SourceReport]) -> float:
    """Returns the average size of a source's records; recent batches weigh most."""
    size, records = sum(r.bytes for r in reports), sum(r.events for r in reports)
    if not size or not records:
        return before
    now = size / records
    return round((before + now) / 2 if before else now, 1)


def _pending(reports: list[Report]) -> PendingWork:
    """Returns what all tasks have left to do."""
    pending = PendingWork()
    for report in reports:
        add_pending(pending, report.pending)
    pending.pressure = min(1.0, pending.pressure)
    return pending


def add_pending(total: PendingWork, more: PendingWork) -> None:
    """Adds what another cell or task has left to do."""
    total.least_waiting = least(total.least_waiting, more.least_waiting)
    total.least_timer = least(total.least_timer, more.least_timer)
    total.least_wall = least(total.least_wall, more.least_wall)
    total.feedback += more.feedback
    total.least_feedback = least(total.least_feedback, more.least_feedback)
    total.held += more.held
    total.pressure = max(total.pressure, more.pressure)
    total.hold = least(total.hold, more.hold)


def _costs(before: Mapping[str, float], reports: list[Report]) -> dict[str, float]:
    """Returns each function's microseconds per event; recent batches weigh most."""
    costs = dict(before)
    for name, counts in merged({}, (r.functions for r in reports), 0).items():
        if counts.processed >= ENOUGH and counts.spent:
            now = counts.spent / counts.processed
            costs[name] = now if name not in before else (before[name] + now) / 2
    return costs


def _summed(before: Mapping[str, int], changes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Adds the tasks' counts, by name, to the counts before."""
    total = dict(before)
    for change in changes:
        add(total, change)
    return total


def add(total: dict[str, int], change: Mapping[str, int]) -> None:
    """Adds counts by name to a total."""
    for name, count in change.items():
        total[name] = total.get(name, 0) + count
