"""What tasks tell the driver of a batch, and what the driver knows after it.

A `Report` comes from one task that succeeded. `Progress` is the driver's durable record of the
last committed batch: writing it is what commits the batch (see docs/guarantees.md).
"""

from __future__ import annotations

from typing import Any

import msgspec

from millstream.codec import decode_value, encode_value
from millstream.model.rules import DeadLetter

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


class SourceProgress(msgspec.Struct):
    """What is known of a source."""

    highest: int | None = None
    """The greatest ts seen."""
    clock: int = 0
    """The clock of the last batch that brought any of its records."""
    position: Any = None
    events: int = 0


class Progress(msgspec.Struct):
    """The driver's knowledge after the last committed batch."""

    batch: int = -1
    clock: int = 0
    horizon: int | None = None
    highest: int | None = None
    sources: dict[str, SourceProgress] = {}
    waiting: int = 0
    least_waiting: int | None = None
    least_timer: int | None = None
    least_wall: int | None = None
    feedback: int = 0
    least_feedback: int | None = None
    events: int = 0
    late: int = 0
    dead_letters: int = 0
    processed: dict[str, int] = {}
    query: str = ""
    """The id of the Spark query whose batches these are."""
    offsets: int = 0
    """The checksum of Spark's offset file of this batch."""
    staged: list[str] = []
    """The files of this batch's output; anything else that lies there is of a try that failed."""


def decoded(data: bytes | None) -> Progress:
    """The progress that a store keeps; of one that has none yet, that of before the first batch."""
    return Progress() if data is None else msgspec.json.decode(data, type=Progress)


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
    processed = dict(before.processed)
    for report in reports:
        for function, count in report.processed.items():
            processed[function] = processed.get(function, 0) + count
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
        processed=processed,
        query=before.query,
    )


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
