"""Feeds keys of an update with timers, as long as all goes well: the *timed* path of feeder.py.

It means what `KeyRun` means, which keeps enough to go back to if an event fails. This path keeps
nothing: on any failure it raises Redo, and the key is fed from its stored slate on the careful
path. What an event leaves in a slate is checked when the next event or timer of the key comes, or
at the end.
"""

from __future__ import annotations

from typing import Any

from millstream.engine.cells.feeder import Feeder
from millstream.engine.cells.key_run import Due, Redo
from millstream.engine.cells.readback import SMALL
from millstream.engine.columns import Columns
from millstream.model.event import END, Clock, Event, Timer
from millstream.model.place import FAILURES
from millstream.slate_versions import migrated
from millstream.stores.layout import Timers, pack_slate, unpack_slate

_new = tuple.__new__


class TimedFeed:
    """Feeds one key after the other; after each, the attributes tell what became of it."""

    def __init__(self, feeder: Feeder, due: Due) -> None:
        """`due` are the timers that fire after the events of a key; no key is being closed."""
        assert feeder.codec is not None
        assert due.limit is None
        self.before: Timers = {}
        """The timers that the key had."""
        self.timers: Timers = {}
        """The timers that it has now."""
        self.last = 0
        """The time of the last event that updated the slate, whether or not it still exists."""
        self.reach = 0
        """The longest time that one of its events has set a timer ahead."""
        self._feeder = feeder
        self._codec = feeder.codec
        self._effects = feeder.effects
        self._due = due
        self._ttl = feeder.update.ttl
        self._key = ""
        self._slate: Any = None
        """The slate of the key; None: it has none."""
        self._small = True
        self._called = False
        """True if a function has had the slate since it was read."""
        self._first = END
        """The time of the first event-time timer that is set."""

    def feed(
        self, key: str, row: bytes | None, given: list[Event], piece: Columns, start: int
    ) -> bytes | None:
        """Feeds a key its events, in content order, and the timers that are due; returns its new
        row, or None if it has no slate. May raise Redo.

        The events are those of `piece` from the index `start` on.
        """
        effects = self._effects
        mark, effects.reach = effects.mark(), 0
        try:
            new = self._fed(key, row, given, piece, start)
        except FAILURES as error:
            effects.undo(mark)
            raise Redo from error
        self.reach = effects.reach
        return new

    def _fed(
        self, key: str, row: bytes | None, given: list[Event], piece: Columns, start: int
    ) -> bytes | None:
        feeder, due, ttl = self._feeder, self._due, self._ttl
        function, version = feeder.update.function, feeder.update.version
        effects = self._effects
        data, stored_version = b"", version
        self._key, self._called = key, False
        if row is None:
            self._slate, self.last, self.before, self._small = None, 0, {}, True
        else:
            self.last, data, self.before, stored_version = unpack_slate(row)
            current = data
            if stored_version != version:
                current = migrated(feeder.update, stored_version, data)
            self._slate, self._small = self._codec.decode(current), len(current) <= SMALL
        self.timers = dict(self.before)
        self._first = _first_of(self.timers)
        for index, event in enumerate(given, start):
            ts = event.ts
            if ts > self._first:
                self._fire("event", ts - 1, 0)
            if ttl is not None and self._slate is not None and ts - self.last > ttl:
                self._drop()
            if self._slate is None:
                self._slate, self.last = self._codec.fresh(), ts
            elif self._called:
                self._settle()
            self._called = True
            result = function(event, self._slate)
            if ts > self.last:
                self.last = ts
            if result is not None:
                value = piece.values[index]  # only now: they may have to be made
                if effects.apply(result, event, value, self.timers, None):
                    self._drop()
                else:
                    self._first = _first_of(self.timers)
        if self.timers:
            if due.event is not None:
                self._fire("event", due.event, 0)
            if due.wall is not None:
                self._fire("wall", due.wall, due.reached or 0)
        if self._slate is None:
            return None
        if not self._called:
            return pack_slate(self.last, data, self.timers, stored_version)
        encoded = self._written()
        if len(encoded) > feeder.watched:
            feeder.note(key, len(encoded))
        return pack_slate(self.last, encoded, self.timers, version)

    def _fire(self, clock: Clock, until: int, horizon: int) -> None:
        """Fires the timers of a clock that are set for `until` or before, in order.

        `horizon` as in `KeyRun`.
        """
        while True:
            due = [
                (at, name)
                for name, (kind, at) in self.timers.items()
                if at <= until and kind == clock
            ]
            if not due:
                break
            at, name = min(due)
            del self.timers[name]
            reached = at if clock == "event" else horizon
            if self._ttl is None or reached - self.last <= self._ttl:
                self._fire_one(Timer(at, self._key, name, clock, horizon))
        self._first = _first_of(self.timers)

    def _fire_one(self, timer: Timer) -> None:
        on_timer = self._feeder.update.on_timer
        assert on_timer is not None
        if self._called:
            self._settle()
        self._called = True
        result = on_timer(timer, self._slate)
        if result is not None:
            event = _new(Event, ("", timer.now, self._key, None))
            if self._effects.apply(result, event, b"null", self.timers, timer.clock):
                self._drop()

    def _settle(self) -> None:
        """Checks what the last event has left, and gives the slate the form in which it is read."""
        feeder, slate = self._feeder, self._slate
        if feeder.settled(slate):
            return
        if self._small:
            self._slate, size = feeder.back(slate)
            self._small = size <= SMALL
        elif not feeder.is_large(slate):
            self._slate, self._small = feeder.unlike_large(slate)

    def _written(self) -> bytes:
        """Returns the bytes of the slate; raises if it cannot be stored."""
        feeder, slate = self._feeder, self._slate
        encoded = self._codec.encode(slate)
        if not (
            (self._small and type(slate) is dict)
            or feeder.settled(slate)
            or feeder.readable(slate, encoded, self._small)
        ):
            raise Redo
        if len(encoded) > feeder.limit:
            raise Redo
        return encoded

    def _drop(self) -> None:
        """Deletes the slate with its timers; the next event finds a fresh one."""
        if self._called:
            self._written()  # what the last event has left must have been fit to be stored
        self._slate, self.timers, self._first = None, {}, END
        self._small, self._called = True, False


def _first_of(timers: Timers) -> int:
    first = END
    for clock, at in timers.values():
        if at < first and clock == "event":
            first = at
    return first
