"""What tasks tell the driver of a batch, and what the driver makes of it.

A `Report` comes from one task that succeeded; from all of them comes the `Progress` whose writing
commits the batch (see stores/progress.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from millstream.codec import decode_value, encode_value
from millstream.model.rules import DeadLetter
from millstream.stores.progress import Progress, SourceProgress

OutputRow = tuple[int, str, bytes]
"""(ts, key, encoded value) of an event on an output stream."""


class Report(msgspec.Struct, array_like=True):
    """What one task did in a batch."""

    events: dict[str, int] = {}
    """Records taken in, by source."""
    seen: dict[str, int] = {}
    """The greatest ts, by source."""
    highest: int | None = None
    """The greatest ts of any event, emitted ones too."""
    late: int = 0
    dead_letters: int = 0
    processed: dict[str, int] = {}
    """Deliveries processed, by function."""
    waiting: int = 0
    """How many more events wait than before."""
    least_waiting: int | None = None
    least_timer: int | None = None
    least_wall: int | None = None
    feedback: int = 0
    """Feedback events kept for the next batch."""
    least_feedback: int | None = None
    outputs: dict[str, list[OutputRow]] = {}
    """Output rows that are few enough to travel with the report."""
    late_events: list[tuple[str, int, str, bytes]] = []
    letters: list[dict[str, Any]] = []
    """Dead letters, as `letter_row` makes them."""
    staged: list[str] = []
    """Files of output rows that are too many for that."""
    horizon: int | None = None
    """How far event time came."""
    emitted: dict[str, int] = {}
    """Events put onto each stream, the sources' included."""
    spent: dict[str, int] = {}
    """Microseconds that each function took."""
    waiting_at: dict[str, int] = {}
    """How many more events wait at each function than before."""
    slates: dict[str, int] = {}
    """How many more slates each update has than before."""
    failed: dict[str, int] = {}
    """Dead letters by function; by source for records that did not become events."""


def least(*times: int | None) -> int | None:
    """The least of the times that are there."""
    return min((time for time in times if time is not None), default=None)


def greatest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)


def advanced(
    before: Progress, reports: list[Report], batch: int, clock: int, positions: dict[str, Any]
) -> Progress:
    """The progress after a batch, from what stood before and what its tasks reported."""
    sources = {}
    for name in {*before.sources, *positions, *(s for r in reports for s in r.seen)}:
        old = before.sources.get(name, SourceProgress())
        seen = greatest(*(r.seen.get(name) for r in reports))
        sources[name] = SourceProgress(
            greatest(old.highest, seen),
            clock if seen is not None else old.clock,
            positions.get(name, old.position),
            old.events + sum(r.events.get(name, 0) for r in reports),
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
        processed=_summed(before.processed, (r.processed for r in reports)),
        query=before.query,
        emitted=_summed(before.emitted, (r.emitted for r in reports)),
        spent=_summed(before.spent, (r.spent for r in reports)),
        waiting_at=_summed(before.waiting_at, (r.waiting_at for r in reports)),
        slates=_summed(before.slates, (r.slates for r in reports)),
        failed=_summed(before.failed, (r.failed for r in reports)),
    )


def _summed(before: dict[str, int], changes: Iterable[dict[str, int]]) -> dict[str, int]:
    """Counts by name, with what each task has added to them."""
    total = dict(before)
    for change in changes:
        add(total, change)
    return total


def add(total: dict[str, int], change: Mapping[str, int]) -> None:
    """Add counts by name to a total."""
    for name, count in change.items():
        total[name] = total.get(name, 0) + count


def letter_row(letter: DeadLetter) -> dict[str, Any]:
    """A dead letter on its way to its sink: a row, but for its value, which is encoded.

    JSON carries whole numbers that a report, which is msgpack, cannot.
    """
    row = {name: getattr(letter, name) for name in letter.__slots__}
    return {**row, "value": encode_value(letter.value)}


def sink_row(letter: dict[str, Any]) -> dict[str, Any]:
    """The row of the sink, from a dead letter that has travelled."""
    return {**letter, "value": decode_value(letter["value"])}


def event_row(ts: int, key: str, value: Any) -> dict[str, Any]:
    """An output event as a row of its sink."""
    return {"ts": ts, "key": key, "value": value}
