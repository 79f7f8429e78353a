"""The end of event time (`--final`), in the reference: its meaning.

Groups of functions are *closed* one after the other, each after those that it reads from
(`model.closing_order`). The functions of a group first get all events that are still due to them.
Then all of their event-time timers fire. A timer that a timer function sets meanwhile fires only if
it is due by the *limit* of its update: the last event, of the input or of this update, plus the
update's reach, which is the longest time that an event of the update has ever set a timer ahead. A
timer that was set for the end fires after the key's others, at the time of the last of these or of
the last event, whichever is later; if it is set again then, it waits for the next end. Each key's
events and timers come in order of time.

Functions of a cycle are closed together. Events along a feedback edge are delivered in the next
round; the limits stay the same, so that timers which set each other off come to an end.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection

from millstream.codec import decode_value
from millstream.model.closing_order import ClosingGroup, closing_order
from millstream.model.event import END, Event, Timer
from millstream.reference import EVENT, Entry, Owner, Reference


def end_event_time(reference: Reference) -> None:
    """Processes all fed events, then closes every function. Does nothing if no event was fed since
    the last end."""
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
        self._last: dict[str, int] = {}
        """The last event of the input or of each function, before any of their timers fired."""
        self._fired = end
        """The latest timer that fired."""
        placed = [function for layer in reference.workflow.layers for function in layer]
        self._names = [function.name for function in placed if function.name in group.names]
        self._maps = {function.name for function in reference.workflow.functions} - {
            function.name for function in placed
        }

    def run(self) -> int:
        """Feeds the group its remaining events and fires its timers; returns the latest of them."""
        reference = self._reference
        reference.returning = []
        self._take_events()
        self._last = {name: self._latest.get(name, self._end) for name in self._names}
        limits = {name: self._last[name] + reference.reach.get(name, 0) for name in self._names}
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
        """True if an event for the group is still to come."""
        self._run_maps()
        return bool(self._reference.returning) or any(
            kind == EVENT and name in self._group.names
            for _, kind, name, *_ in self._reference.heap
        )

    def _go_round(self, limits: dict[str, int] | None = None, *, all_waiting: bool = False) -> None:
        """Goes through the group once: delivers events, and fires timers if there are limits.

        With `all_waiting`, all waiting timers fire, not only those up to the limit.
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
        """Runs the maps that are not placed: they have no state, so they never wait."""
        while entries := self._taken(self._maps):
            for ts, _, name, key, stream, value in entries:
                self._reference.deliver(name, Event(stream, ts, key, decode_value(value)))

    def _taken(self, names: Collection[str]) -> list[Entry]:
        """Takes the events for these functions from the heap, in order."""
        heap = self._reference.heap
        entries = [entry for entry in heap if entry[1] == EVENT and entry[2] in names]
        if entries:
            heap[:] = [entry for entry in heap if entry[1] != EVENT or entry[2] not in names]
            heapq.heapify(heap)
        return sorted(entries)

    def _fire(self, owner: Owner, until: int, waiting: Collection[tuple[int, str]] = ()) -> None:
        """Fires an owner's event-time timers up to `until`, and those of `waiting`, in order."""
        last, left = self._last.get(owner[0], self._end), {*waiting}
        while due := [timer for timer in self._timers(owner) if timer[0] <= until or timer in left]:
            at, name = min(due)
            left.discard((at, name))
            ts = last if at == END else at
            if self._reference.fire(owner, name, Timer(ts, owner[1], name, "event")):
                self._fired, last = max(self._fired, ts), max(last, ts)

    def _timers(self, owner: Owner) -> list[tuple[int, str]]:
        slate = self._reference.slates.get(owner)
        timers = {} if slate is None else slate.timers
        return [(at, name) for name, (clock, at) in timers.items() if clock == "event"]
