"""What tasks tell the driver of a batch, and what the driver makes of it.

A `Report` comes from one task that succeeded; from all of them comes the `Progress` whose writing
commits the batch (see stores/progress.py).
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
from millstream.stores.progress import Large, Progress, SourceProgress, Unranked

OutputRow = tuple[int, str, bytes]
"""(ts, key, encoded value) of an event on an output stream."""
DroppedEvent = tuple[str, str, int, str, bytes]
"""(function, stream, ts, key, encoded value)."""
LARGE_BATCHES = 100
"""Batches for which a large slate that no event comes to is still spoken of."""


ENOUGH = LEAST_SHARE
"""Fewer events than this in a batch say little of what one costs. Not more than a key's least
share: else an update with one key, once thought dear, would never be found to be cheap."""


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
    """Deliveries processed, by function; those that failed left out."""
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
    """Dead letters by function."""
    large: dict[str, Large] = {}
    """The largest slate of each update that has one over `slate_warn`."""
    taken: dict[str, int] = {}
    """Deliveries to each function: what it is owed, whatever becomes of it."""
    dropped: dict[str, int] = {}
    dropped_events: list[DroppedEvent] = []
    diverted: dict[str, int] = {}
    late_at: dict[str, int] = {}
    """Deliveries that were late, by function."""
    refused: dict[str, int] = {}
    """Records that did not become events, by source."""
    timers_failed: dict[str, int] = {}
    """Dead letters of timers, which are no deliveries, by function."""
    feedback_at: dict[str, int] = {}
    """Feedback events kept for the next batch, by the function that is to get them."""
    held: int = 0
    """Events that wait because there were too many for the batch."""
    pressure: float = 0.0
    """How full the fullest room for them is."""
    hold: int | None = None
    """How far the horizon may go, for a throttled update not to get too many at once."""
    swept: dict[str, int] = {}
    """Expired slates that were swept, by update."""
    refused_at: dict[str, int] = {}
    """Deliveries of records that did not become events, by function."""
    evicted: dict[str, int] = {}
    """Slates that went because there was no room for them, by update."""
    unranked: dict[str, Unranked] = {}
    """Slates whose priority could not be told, by update."""
    stored: dict[str, int] = {}
    """Microseconds of processor time that storing took, by function: each its part of the rows."""
    reach: dict[str, int] = {}
    """The longest time that an event of each update has set a timer ahead."""
    latest: dict[str, int] = {}
    """In a final phase, the greatest ts of the events that came to each update with timers."""
    fired: int | None = None
    """In a final phase, the latest timer that fired."""

    @property
    def has_rows(self) -> bool:
        """Whether there is anything in it for a sink."""
        return bool(self.outputs or self.late_events or self.letters or self.dropped_events)


def read_staged(path: Path) -> Report:
    """Output rows that a batch has staged in a file; StoreError if that is damaged."""
    try:
        return msgspec.msgpack.decode(read_checked(path), type=Report)
    except (ValueError, OSError) as error:  # msgspec's errors are ValueErrors
        raise StoreError(
            f"{path}: staged output of batch {path.name.split('-')[0].lstrip('0') or '0'} cannot "
            f"be read ({error}); restore the file from a copy of the store, or delete it to go on "
            "without that output: the slates are not concerned"
        ) from None


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
        large=_largest(before.large, reports, batch),
        taken=_summed(before.taken, (r.taken for r in reports)),
        dropped=_summed(before.dropped, (r.dropped for r in reports)),
        diverted=_summed(before.diverted, (r.diverted for r in reports)),
        late_at=_summed(before.late_at, (r.late_at for r in reports)),
        refused=_summed(before.refused, (r.refused for r in reports)),
        refused_at=_summed(before.refused_at, (r.refused_at for r in reports)),
        timers_failed=_summed(before.timers_failed, (r.timers_failed for r in reports)),
        feedback_at=_summed({}, (r.feedback_at for r in reports)),
        held=sum(r.held for r in reports),
        pressure=min(1.0, max((r.pressure for r in reports), default=0.0)),
        hold=least(*(r.hold for r in reports)),
        costs=_costs(before.costs, reports),
        swept=_summed(before.swept, (r.swept for r in reports)),
        evicted=_summed(before.evicted, (r.evicted for r in reports)),
        unranked=_unranked(before.unranked, reports),
        stored=_summed(before.stored, (r.stored for r in reports)),
        reach=_longest(before.reach, reports),
        final=before.final,
        ended=before.ended,
    )


def _longest(before: dict[str, int], reports: list[Report]) -> dict[str, int]:
    longest = dict(before)
    for report in reports:
        for name, reach in report.reach.items():
            longest[name] = max(reach, longest.get(name, 0))
    return longest


def _costs(before: dict[str, float], reports: list[Report]) -> dict[str, float]:
    """Microseconds that an event costs each function, the last batches weighing most."""
    spent = _summed({}, (r.spent for r in reports))
    processed = _summed({}, (r.processed for r in reports))
    costs = dict(before)
    for name, events in processed.items():
        if events >= ENOUGH and name in spent:
            now = spent[name] / events
            costs[name] = now if name not in before else (before[name] + now) / 2
    return costs


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


def keep_largest(largest: dict[str, Large], more: Mapping[str, Large]) -> None:
    """Let the largest slate of each update be that of both; of one key, what came last."""
    for name, one in more.items():
        known = largest.get(name)
        if known is None or one.bytes >= known.bytes or one.key == known.key:
            largest[name] = one


def _largest(before: Mapping[str, Large], reports: list[Report], batch: int) -> dict[str, Large]:
    """The largest slates that were fed of late: one that has shrunk since is not spoken of long."""
    largest = {name: one for name, one in before.items() if batch - one.batch < LARGE_BATCHES}
    for report in reports:
        keep_largest(largest, report.large)
    return largest


def add_unranked(total: dict[str, Unranked], more: Mapping[str, Unranked]) -> None:
    """Add to the slates whose priority could not be told; what came last is spoken of."""
    for name, one in more.items():
        count = one.count + (total[name].count if name in total else 0)
        total[name] = Unranked(count, one.key, one.error, one.batch)


def _unranked(before: Mapping[str, Unranked], reports: list[Report]) -> dict[str, Unranked]:
    total = dict(before)
    for report in reports:
        add_unranked(total, report.unranked)
    return total


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
