"""Combines the reports of a batch's tasks into the progress after the batch.

A `Report` comes from one task that succeeded. The driver combines all of them into a `Progress`;
writing it commits the batch (see stores/progress.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from millstream.codec import decode_value, encode_value
from millstream.durable import read_checked
from millstream.engine.beat import LEAST_SHARE
from millstream.errors import StoreError
from millstream.model.rules import DeadLetter
from millstream.slate_changes import SlateChanges
from millstream.stores.contract import ChangesRef
from millstream.stores.function_counts import FunctionCounts, merged
from millstream.stores.progress import Progress, SourceProgress
from millstream.stores.shared.manifest import BaseRef

OutputRow = tuple[int, str, bytes]
"""(ts, key, encoded value) of an event on an output stream."""
DroppedEvent = tuple[str, str, int, str, bytes]
"""(function, stream, ts, key, encoded value)."""
ENOUGH = LEAST_SHARE
"""Fewer events than this in a batch say little about the cost of one. This must not exceed a key's
least share: otherwise an update with one key that was once measured as expensive would never be
measured again."""


class Report(msgspec.Struct, array_like=True):
    """The report of one task on a batch."""

    events: dict[str, int] = {}
    """Records taken in, by source."""
    seen: dict[str, int] = {}
    """The greatest ts, by source."""
    highest: int | None = None
    """The greatest ts of any event, including emitted ones."""
    late: int = 0
    dead_letters: int = 0
    waiting: int = 0
    """The change in the number of waiting events."""
    least_waiting: int | None = None
    least_timer: int | None = None
    least_wall: int | None = None
    feedback: int = 0
    """The number of feedback events kept for the next batch."""
    least_feedback: int | None = None
    outputs: dict[str, list[OutputRow]] = {}
    """Output rows, if they are few enough to be sent with the report."""
    late_events: list[tuple[str, int, str, bytes]] = []
    letters: list[dict[str, Any]] = []
    """Dead letters, as `letter_row` makes them."""
    staged: list[str] = []
    """Files with output rows that are too many to be sent with the report."""
    horizon: int | None = None
    """The event time that was reached."""
    functions: dict[str, FunctionCounts] = {}
    emitted: dict[str, int] = {}
    """Events put onto each stream, including the sources'."""
    dropped_events: list[DroppedEvent] = []
    refused: dict[str, int] = {}
    """Records that did not become events, by source."""
    held: int = 0
    """Events that wait because there were too many for the batch."""
    pressure: float = 0.0
    """The filled part of the fullest room for such events."""
    hold: int | None = None
    """The furthest horizon that does not give a throttled update too many events at once."""
    latest: dict[str, int] = {}
    """The greatest ts of the events that came to each update with timers, in a final phase."""
    fired: int | None = None
    """The latest timer that fired, in a final phase."""
    changes: list[ChangesRef] = []
    """Objects with the changes, which the commit has to name (in a shared store)."""
    bases: list[BaseRef] = []
    """Bases of shards that were finished since the last report of the same process."""
    slate_changes: dict[str, SlateChanges] = {}
    """Changes of slates, by output, if they are few enough to be sent with the report."""
    oldest: int | None = None
    """The earliest batch in which an event came that was fed in this one (event-time order)."""
    error: str = ""
    """The error of one of the dead letters."""

    source_bytes: dict[str, int] = {}
    """Bytes of the records taken in, by source, where the driver can only estimate them."""
    lost: dict[str, int] = {}
    """Records that were removed before they could be read, by source; the setting allows that."""

    def counts(self, function: str) -> FunctionCounts:
        """Returns the counts of a function, to count in."""
        return self.functions.setdefault(function, FunctionCounts())

    @property
    def has_rows(self) -> bool:
        """True if it has rows for a sink."""
        return self.row_count > 0

    @property
    def row_count(self) -> int:
        """The number of rows for sinks in this report."""
        rows = sum(map(len, self.outputs.values())) + sum(map(len, self.slate_changes.values()))
        return rows + len(self.late_events) + len(self.letters) + len(self.dropped_events)

    def take_rows(self) -> Report:
        """Moves the rows for sinks to a new report, and returns it."""
        body = Report(
            outputs=self.outputs,
            late_events=self.late_events,
            letters=self.letters,
            dropped_events=self.dropped_events,
            slate_changes=self.slate_changes,
        )
        self.outputs, self.late_events, self.letters = {}, [], []
        self.dropped_events, self.slate_changes = [], {}
        return body

    def add_rows(self, other: Report) -> None:
        """Appends another report's rows for sinks."""
        for stream, rows in other.outputs.items():
            self.outputs.setdefault(stream, []).extend(rows)
        for output, changes in other.slate_changes.items():
            self.slate_changes.setdefault(output, SlateChanges()).extend(changes)
        self.late_events.extend(other.late_events)
        self.letters.extend(other.letters)
        self.dropped_events.extend(other.dropped_events)


def read_staged(path: Path) -> Report:
    """Reads output rows that a batch has staged in a file; raises StoreError if it is damaged."""
    try:
        return msgspec.msgpack.decode(read_checked(path), type=Report)
    except (ValueError, OSError) as error:  # msgspec's errors are ValueErrors
        raise StoreError(
            f"{path}: staged output of batch {path.name.split('-')[0].lstrip('0') or '0'} cannot "
            f"be read ({error}); restore the file from a copy of the store, or delete it to go on "
            "without that output: the slates are not affected"
        ) from None


def least(*times: int | None) -> int | None:
    """Returns the least of the times that are not None."""
    return min((time for time in times if time is not None), default=None)


def greatest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)


def advanced(
    before: Progress, reports: list[Report], batch: int, clock: int, positions: dict[str, Any]
) -> Progress:
    """Returns the progress after a batch, from the one before it and its tasks' reports."""
    sources = {}
    for name in {*before.sources, *positions, *(s for r in reports for s in r.seen)}:
        old = before.sources.get(name, SourceProgress())
        seen = greatest(*(r.seen.get(name) for r in reports))
        sources[name] = SourceProgress(
            greatest(old.highest, seen),
            clock if seen is not None else old.clock,
            positions.get(name, old.position),
            old.events + sum(r.events.get(name, 0) for r in reports),
            old.lost + sum(r.lost.get(name, 0) for r in reports),
            _record_bytes(old, name, reports),
        )
    return Progress(
        batch=batch,
        clock=clock,
        horizon=greatest(before.horizon, *(r.horizon for r in reports)),
        highest=greatest(before.highest, *(r.highest for r in reports)),
        sources=dict(sorted(sources.items())),
        waiting=before.waiting + sum(r.waiting for r in reports),
        least_waiting=least(*(r.least_waiting for r in reports)),
        least_timer=least(*(r.least_timer for r in reports)),
        least_wall=least(*(r.least_wall for r in reports)),
        feedback=sum(r.feedback for r in reports),
        least_feedback=least(*(r.least_feedback for r in reports)),
        events=before.events + sum(sum(r.events.values()) for r in reports),
        late=before.late + sum(r.late for r in reports),
        dead_letters=before.dead_letters + sum(r.dead_letters for r in reports),
        functions=merged(before.functions, (r.functions for r in reports), batch),
        query=before.query,
        emitted=_summed(before.emitted, (r.emitted for r in reports)),
        refused=_summed(before.refused, (r.refused for r in reports)),
        held=sum(r.held for r in reports),
        pressure=min(1.0, max((r.pressure for r in reports), default=0.0)),
        hold=least(*(r.hold for r in reports)),
        costs=_costs(before.costs, reports),
        final=before.final,
        ended=before.ended,
    )


def _record_bytes(old: SourceProgress, name: str, reports: list[Report]) -> float:
    """Returns the average size of a source's records; recent batches weigh most."""
    size = sum(r.source_bytes.get(name, 0) for r in reports)
    records = sum(r.events.get(name, 0) for r in reports)
    if not size or not records:
        return old.record_bytes
    now = size / records
    return round((old.record_bytes + now) / 2 if old.record_bytes else now, 1)


def _costs(before: dict[str, float], reports: list[Report]) -> dict[str, float]:
    """Returns each function's microseconds per event; recent batches weigh most."""
    costs = dict(before)
    for name, counts in merged({}, (r.functions for r in reports), 0).items():
        if counts.processed >= ENOUGH and counts.spent:
            now = counts.spent / counts.processed
            costs[name] = now if name not in before else (before[name] + now) / 2
    return costs


def _summed(before: dict[str, int], changes: Iterable[dict[str, int]]) -> dict[str, int]:
    """Adds the tasks' counts, by name, to the counts before."""
    total = dict(before)
    for change in changes:
        add(total, change)
    return total


def add(total: dict[str, int], change: Mapping[str, int]) -> None:
    """Adds counts by name to a total."""
    for name, count in change.items():
        total[name] = total.get(name, 0) + count


def letter_row(letter: DeadLetter) -> dict[str, Any]:
    """Returns a dead letter as a row for a report, with its value encoded as JSON.

    JSON can hold integers that a report, which is msgpack, cannot.
    """
    row = {name: getattr(letter, name) for name in letter.__slots__}
    return {**row, "value": encode_value(letter.value)}


def sink_row(letter: dict[str, Any]) -> dict[str, Any]:
    """Returns the row for the sink, from a dead letter of a report."""
    return {**letter, "value": decode_value(letter["value"])}


def event_row(ts: int, key: str, value: Any) -> dict[str, Any]:
    """Returns an output event as a row for its sink."""
    return {"ts": ts, "key": key, "value": value}
