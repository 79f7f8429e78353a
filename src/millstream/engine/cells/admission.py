"""Decides how many events of a batch an update takes, and what happens to the rest (Muppet,
sections 4.3, 5).

*A limit* is set by the developer: the number of events that each shard of the update takes in a
batch, as a worker of Muppet has a queue of a given size. An event past the limit is dropped,
diverted to the overflow stream, or waits in its shard (throttle). Which events are past the limit
depends on their content, not on the order in which tasks sent them, so that a retried task decides
the same.

*A share* is set by the system, for updates without a limit in arrival order: a number of events of
one key, calculated from the cost of an event so far. A hot key's events beyond its share wait in a
lane of their own, in order, so that the batch, and every other key's result, does not wait for
them.

In event-time order the horizon enforces a limit with throttle: see `Gate.hold`.
"""

from __future__ import annotations

from collections import Counter

import pyarrow.compute as pc

from millstream.engine.cells.content_order import by_key, content_order
from millstream.engine.cells.queue import ALL, Queue, lane_of
from millstream.engine.columns import Columns
from millstream.model.function import Update

PATIENCE = 4
"""The number of batches' worth of throttled events in a shard at which the sources stop."""
HOT_ROOM = 1_000_000
"""The number of waiting events of hot keys in a shard at which the sources stop."""


class Admission:
    """Admits events to one update in one shard, for one batch."""

    def __init__(
        self,
        update: Update,
        queue: Queue,
        streams: tuple[str, ...],
        *,
        waits: bool,
        share: int | None,
    ) -> None:
        """`waits`: events come from the gate, in event-time order."""
        self._dropped = Columns()
        self._diverted = Columns()
        self._update = update
        self._streams = streams
        self._waits = waits
        self._share = share
        self._admitted = 0
        self._queue = queue
        self._lanes = {*self._queue.lanes}
        """Lanes that this batch has not taken from yet."""

    @property
    def overflow(self) -> str:
        """The stream that events past the limit are diverted to."""
        assert self._update.overflow is not None
        return self._update.overflow

    @property
    def waiting_change(self) -> int:
        """The change in the number of events that wait here, in this batch."""
        return self._queue.change

    @property
    def held(self) -> int:
        """The number of events that wait here now."""
        return len(self._queue)

    @property
    def pressure(self) -> float:
        """The filled part of the room for waiting events: 1 is full, and it may be over 1."""
        if not self._queue:
            return 0.0
        limit = self._update.limit
        return len(self._queue) / (HOT_ROOM if limit is None else PATIENCE * limit)

    def changes(self, batch: int) -> dict[bytes, bytes | None]:
        return self._queue.changes(batch)

    def left_over(self) -> Columns:
        """Takes events out of lanes in which nothing should wait any more.

        This happens when the limit or the order was changed.
        """
        events = Columns()
        for lane in self._queue.lanes:
            if not self._keeps(lane):
                events.extend(self._queue.take(lane))
                self._lanes.discard(lane)
        return events

    def _keeps(self, lane: str) -> bool:
        """True if events may still wait in the lane."""
        if self._waits:
            return False
        if self._update.limit is None:
            return lane != ALL and self._share is not None
        return lane == ALL and self._update.overload == "throttle"

    def admit(self, events: Columns | None) -> Columns | None:
        """Returns the events to feed now; those that have waited pass first."""
        update = self._update
        if update.limit is not None:
            if update.overload != "throttle":
                return self._cut(events, update.limit)
            return events if self._waits else self._throttled(events, update.limit)
        if self._waits or self._share is None:
            return events
        if not self._lanes and (events is None or len(events) <= self._share):
            return events  # no key can have too many
        return self._shared(events or Columns(), self._share)

    def take_dropped(self) -> Columns:
        """Takes out the events past the limit that are to be dropped."""
        dropped, self._dropped = self._dropped, Columns()
        return dropped

    def take_diverted(self) -> Columns:
        """Takes out the events past the limit that go to the overflow stream."""
        diverted, self._diverted = self._diverted, Columns()
        return diverted

    def _cut(self, events: Columns | None, limit: int) -> Columns | None:
        """Lets the first events pass, up to the limit, and drops or diverts the others."""
        if events is None:
            return None
        room = limit - self._admitted
        self._admitted += min(room, len(events))
        if len(events) <= room:
            return events
        ordered = self._ordered(events)
        rest = self._dropped if self._update.overload == "drop" else self._diverted
        rest.extend(ordered.slice(room, len(ordered)))
        return ordered.slice(0, room)

    def _throttled(self, events: Columns | None, limit: int) -> Columns | None:
        """Lets events pass up to the limit, those that have waited before the new ones."""
        room = limit - self._admitted
        if not self._queue and (events is None or len(events) <= room):
            self._admitted += 0 if events is None else len(events)
            return events
        passed = Columns()
        if ALL in self._lanes:
            self._lanes.discard(ALL)
            passed = self._queue.take(ALL, room)
        if events:
            ordered = self._ordered(events)
            more = 0 if ALL in self._queue else room - len(passed)
            passed.extend(ordered.slice(0, more))
            if more < len(ordered):
                self._queue.put(ALL, ordered.slice(more, len(ordered)))
        self._admitted += len(passed)
        return passed

    def _shared(self, events: Columns, share: int) -> Columns:
        """Lets each key's first events pass, up to its share; the others wait in the key's lane.

        A batch in arrival order takes all its events at once, so this is called only once.
        """
        passed = Columns()
        room: dict[str, int] = {}
        for lane in self._queue.lanes:
            taken = self._queue.take(lane, share)
            passed.extend(taken)
            room[lane] = 0 if lane in self._queue else share - len(taken)
        self._lanes.clear()
        counts = Counter(events.keys)
        hot = {key for key, count in counts.items() if count > room.get(lane_of(key), share)}
        if not hot:
            passed.extend(events)
            return passed
        cool, warm = events.split([int(key in hot) for key in events.keys], 2)
        if cool is not None:
            passed.extend(cool)
        assert warm is not None
        groups, start = by_key(warm, self._streams), 0
        for key, count in zip(groups.keys, groups.counts, strict=True):
            lane, stop = lane_of(key), start + count
            now = start + min(count, room.get(lane_of(key), share))
            passed.extend(groups.events.slice(start, now))
            self._queue.put(lane, groups.events.slice(now, stop))
            start = stop
        return passed

    def _ordered(self, events: Columns) -> Columns:
        """Returns the events in content order; equal ones in the order of their keys."""
        by_keys = events.pick(pc.sort_indices(events.key_array))
        return by_keys.pick(content_order(by_keys, self._streams))
