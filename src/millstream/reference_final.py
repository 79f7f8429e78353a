"""The end of event time (`--final`), in the reference: what it means.

One group of functions after the other is *closed*, each after those that it reads from
(`model.closing_order`). Its functions are first fed all events that still come to them. Then all of
their event-time timers fire. A timer that a timer function sets meanwhile fires only if it is due
by the *limit* of its update: the last event, of the input or of this update, plus the update's
reach, which is the longest time that an event of the update has ever set a timer ahead. Each key's
events and timers come in order of time.

Functions of a cycle are closed together. What they emit along a feedback edge comes the next time
round; the limits stay, so that timers which set each other off come to an end.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection

from millstream.codec import decode_value
from millstream.model.closing_order import ClosingGroup, closing_order
from millstream.model.event import Event, Timer
from millstream.reference import EVENT, Entry, Owner, Reference


def end_event_time(reference: Reference) -> None:
    """Process what was fed, then close every function; nothing, if nothing was fed since the last
    end."""
    reference.drain()
    end = reference.highest
    if end is None or not reference.fed_since_end:
        return
    fired = [_Closing(reference, group, end).run() for group in closing_order(reference.workflow)]
    reference.ended = max(end, reference.highest or end, *fired)
    reference.fed_since_end = False


class _Closing:
    """A group of functions that is being closed."""

    def __init__(self, reference: Reference, group: ClosingGroup, end: int) -> None:
        self._reference = reference
        self._group = group
        self._end = end
        self._latest: dict[str, int] = {}
        """The greatest ts of the events that came to each function since the end."""
        self._fired = end
        """The latest timer that fired."""
        placed = [function for layer in reference.workflow.layers for function in layer]
        self._names = [function.name for function in placed if function.name in group.names]
        self._maps = {function.name for function in reference.workflow.functions} - {
            function.name for function in placed
        }

    def run(self) -> int:
        """Feed the group what is still to come to it, and fire its timers; the latest of them."""
        reference = self._reference
        reference.returning = []
        self._take_events()
        limits = {
            name: self._latest.get(name, self._end) + reference.reach.get(name, 0)
            for name in self._names
        }
        self._go_round(limits, all_waiting=True)
        while self._is_awaited():
            self._take_events()
            self._go_round(limits)
        reference.returning = None
        return self._fired

    def _take_events(self) -> None:
        while self._is_awaited():
            self._go_round()

    def _is_awaited(self) -> bool:
        """Whether an event is still to come to the group."""
        self._run_maps()
        return bool(self._reference.returning) or any(
            kind == EVENT and name in self._group.names
            for _, kind, name, *_ in self._reference.heap
        )

    def _go_round(self, limits: dict[str, int] | None = None, *, all_waiting: bool = False) -> None:
        """Once through the group: events, and timers if there are limits.

        `all_waiting`: besides timers up to the limit, those that wait for whenever.
        """
        reference = self._reference
        for entry in reference.returning or ():
            heapq.heappush(reference.heap, entry)
        reference.returning = []
        for name in self._names:
            self._run_maps()
            for ts, _, _, key, stream, value in self._taken({name}):
                self._latest[name] = max(self._latest.get(name, ts), ts)
                self._fire((name, key), ts - 1)
                reference.deliver(name, Event(stream, ts, key, decode_value(value)))
            if limits is not None:
                for owner in [owner for owner in reference.slates if owner[0] == name]:
                    waiting = self._timers(owner) if all_waiting else ()
                    self._fire(owner, limits[name], waiting)

    def _run_maps(self) -> None:
        """Run the maps that are not placed: they keep nothing, and so they never wait."""
        while entries := self._taken(self._maps):
            for ts, _, name, key, stream, value in entries:
                self._reference.deliver(name, Event(stream, ts, key, decode_value(value)))

    def _taken(self, names: Collection[str]) -> list[Entry]:
        """Take the events that are to come to these functions, in order."""
        heap = self._reference.heap
        entries = [entry for entry in heap if entry[1] == EVENT and entry[2] in names]
        if entries:
            heap[:] = [entry for entry in heap if entry[1] != EVENT or entry[2] not in names]
            heapq.heapify(heap)
        return sorted(entries)

    def _fire(self, owner: Owner, until: int, waiting: Collection[tuple[int, str]] = ()) -> None:
        """Fire an owner's event-time timers up to `until`, and those of `waiting`, in order."""
        while due := [one for one in self._timers(owner) if one[0] <= until or one in waiting]:
            at, name = min(due)
            if self._reference.fire(owner, name, Timer(at, owner[1], name, "event")):
                self._fired = max(self._fired, at)

    def _timers(self, owner: Owner) -> list[tuple[int, str]]:
        slate = self._reference.slates.get(owner)
        timers = {} if slate is None else slate.timers
        return [(at, name) for name, (clock, at) in timers.items() if clock == "event"]
