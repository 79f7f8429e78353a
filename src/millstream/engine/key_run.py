"""One key on its way through a batch the careful way: its slate, timers and entries.

A `KeyRun` holds a key's slate between its events, so that an event that fails can be taken back.
See feeder.py for when a key goes this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.codec import SlateCodec, decode_value, encode_value
from millstream.engine.columns import Columns
from millstream.engine.readback import SMALL
from millstream.model.event import Clock, Event, Timer
from millstream.model.rules import FAILURES
from millstream.model.slate import NoEntries, Table, over_limit
from millstream.stores.layout import SlateRow, Timers, pack_slate, unpack_slate

if TYPE_CHECKING:
    from millstream.engine.feeder import Feeder

_new = tuple.__new__


class Redo(Exception):  # not an error: it asks for the other way
    """This way will not do for this key: feed it the careful way."""


class Fed:
    """What feeding a key came to: its new row (None: no slate), timers, and a table's changes."""

    __slots__ = ("entries", "fired", "reach", "row", "timers", "wiped")

    def __init__(
        self,
        row: bytes | None,
        timers: Timers,
        entries: dict[str, bytes | None],
        wiped: bool,
        reach: int,
        fired: int | None,
    ) -> None:
        self.row = row
        self.timers = timers
        self.entries = entries
        self.wiped = wiped
        self.reach = reach
        """The longest time that one of its events has set a timer ahead."""
        self.fired = fired
        """The latest event-time timer that fired when the key was closed."""


class Due(NamedTuple):
    """Which of a key's timers fire, after its events."""

    event: int | None
    """Event-time timers up to it."""
    wall: int | None
    """Wall timers up to it."""
    reached: int | None = None
    """The event time reached, which is what a wall timer's slate lives by."""
    limit: int | None = None
    """The key is closed: event-time timers fire up to here (see final_phase.py)."""
    all_waiting: bool = False
    """Those too that wait for a later time."""


class KeyRun:
    """One key on its way through a batch, with timers.

    Not careful: a large slate is not kept, and a failure then raises Redo.
    """

    def __init__(
        self, feeder: Feeder, key: str, row: bytes | None, clock: int, *, careful: bool
    ) -> None:
        stored = SlateRow(0, b"", {}) if row is None else unpack_slate(row)
        self._feeder = feeder
        self._codec = feeder.codec
        self._careful = careful
        self._key = key
        self._clock = clock
        self._exists = row is not None
        self._last = stored.last
        self._timers: Timers = dict(stored.timers)
        self._wiped = False
        self._data = stored.data
        """The slate as it was last written."""
        self._kept = careful or len(stored.data) <= SMALL
        """Whether `_data` follows every event, so that a failure can go back to it."""
        self._calls = 0
        self._reach = 0
        self._fired: int | None = None
        self._memory: Any = None
        """What functions are given; None: still to be read."""
        if self._codec is None:
            entries = feeder.tables(key) if row is not None else NoEntries()
            self._memory = Table(entries, encode_value, decode_value, feeder.limit)

    def through(
        self,
        events: Columns,
        values: Mapping[int, Any] | list[Any],
        order: list[int],
        timers: Due,
    ) -> Fed:
        """Feed the events in their order, with the timers between and after them."""
        update, streams = self._feeder.update, self._feeder.streams
        function, ttl = update.function, update.ttl
        for index in order:
            ts = events.ts[index]
            if self._timers:
                self._fire("event", ts - 1, 0)
            expired = None
            if ttl is not None and self._exists and ts - self._last > ttl:
                expired = (self._timers, self._data, self._memory, self._kept, self._wiped)
                self._drop()
            event = _new(Event, (streams[events.streams[index]], ts, self._key, values[index]))
            if self._call(function, event, event, events.values[index], None):
                self._last = max(self._last, ts) if self._exists else ts
                self._exists = True
                self._forget_if_asked()
            elif expired is not None:  # as if the event had not come: the old slate stays
                self._timers, self._data, self._memory, self._kept, self._wiped = expired
                self._exists = True
        if self._timers and timers.event is not None:
            self._fire("event", timers.event, 0)
        if self._timers and timers.limit is not None:
            self._close(timers.limit, all_waiting=timers.all_waiting)
        if self._timers and timers.wall is not None:
            self._fire("wall", timers.wall, timers.reached or 0)
        return self._end()

    def _fire(self, clock: Clock, until: int, horizon: int) -> None:
        """Fire this key's timers of a clock that are set for `until` or before, in order.

        `horizon` is the event time reached, which is what a slate lives by.
        """
        while True:
            for kind, at in self._timers.values():
                if at <= until and kind == clock:
                    break
            else:
                return  # the common case, at every event of a key that has a timer
            at, name = min((at, name) for name, (kind, at) in self._timers.items() if kind == clock)
            self._fire_one(clock, at, name, horizon)

    def _close(self, limit: int, *, all_waiting: bool) -> None:
        """Fire the event-time timers that wait, and those that they set up to `limit`, in order."""
        waiting = {*self._event_timers()} if all_waiting else set()
        while due := [one for one in self._event_timers() if one[0] <= limit or one in waiting]:
            at, name = min(due)
            if self._fire_one("event", at, name, 0):
                self._fired = at if self._fired is None else max(self._fired, at)

    def _event_timers(self) -> list[tuple[int, str]]:
        return [(at, name) for name, (kind, at) in self._timers.items() if kind == "event"]

    def _fire_one(self, clock: Clock, at: int, name: str, horizon: int) -> bool:
        """Fire a timer, which is then spent. False: it died, because its slate has expired."""
        update = self._feeder.update
        del self._timers[name]
        now = at if clock == "event" else max(at, horizon)
        reached = at if clock == "event" else horizon
        expired = update.ttl is not None and reached - self._last > update.ttl
        if update.on_timer is None or expired:
            return False
        timer = Timer(at, self._key, name, clock)
        if self._call(update.on_timer, timer, Event("", now, self._key, None), b"", timer):
            self._forget_if_asked()
        return True

    def _call(
        self,
        function: Callable[..., Any],
        given: Event | Timer,
        event: Event,
        encoded: bytes,
        timer: Timer | None,
    ) -> bool:
        """Call the function; True if it succeeded. If it failed nothing of it is kept."""
        effects = self._feeder.effects
        self._calls += 1
        self._forget = False
        mark, timers = effects.mark(), self._timers
        try:
            if self._memory is None:
                self._memory = self._read()
            result = function(given, self._memory)
            if result is not None:
                self._timers = dict(timers)
                firing = timer.clock if timer is not None else None
                effects.reach = 0
                self._forget = effects.apply(
                    result, event, encoded or b"null", self._timers, self._clock, firing
                )
            if self._codec is not None and self._kept and not self._forget:
                self._write(self._codec)
            if timer is None and result is not None and effects.reach > self._reach:
                self._reach = effects.reach
        except FAILURES as error:
            if not self._kept:
                raise Redo from error
            effects.undo(mark)
            self._timers = timers
            if self._codec is None:
                self._memory.undo()
            else:
                self._memory = None
            self._feeder.fail(event, encoded, error, timer)
            return False
        if self._codec is None:
            self._memory.settle()
        return True

    def _read(self) -> Any:
        """The slate as it was last written."""
        assert self._codec is not None
        return self._codec.decode(self._data) if self._data else self._codec.fresh()

    def _write(self, codec: SlateCodec) -> None:
        """Write the slate, and read it back where that could change it; raise if it cannot be."""
        data = codec.encode(self._memory)
        if len(data) > SMALL and not self._careful:
            self._kept = False
            return
        self._memory = codec.decode(data)
        if len(data) > self._feeder.limit:
            raise over_limit(len(data), self._feeder.limit)
        self._data = data

    def _check(self) -> bytes:
        """The bytes of a slate that was not kept; Redo if its events should not have passed."""
        assert self._codec is not None
        if self._memory is None:
            return self._data
        try:
            data = self._codec.encode(self._memory)
            fits = len(data) <= self._feeder.limit
            if fits and self._feeder.readable(self._memory, data, self._calls == 1):
                return data
        except FAILURES as error:
            raise Redo from error
        raise Redo

    def _forget_if_asked(self) -> None:
        if self._forget:
            self._drop()

    def _drop(self) -> None:
        """The slate is gone, its timers and entries with it; the next event finds a fresh one."""
        if not self._kept:
            self._check()
        self._kept = True
        self._exists, self._timers, self._data, self._memory = False, {}, b"", None
        if self._codec is None:
            self._wiped = True
            self._memory = Table(NoEntries(), encode_value, decode_value, self._feeder.limit)

    def _end(self) -> Fed:
        entries: dict[str, bytes | None] = {}
        if not self._exists:
            return Fed(None, {}, entries, self._wiped, self._reach, self._fired)
        if self._codec is None:
            entries = self._memory.changes()
            size = max(map(len, filter(None, entries.values())), default=0)
        elif not self._kept:
            self._data = self._check()
        self._feeder.note(self._key, size if self._codec is None else len(self._data))
        row = pack_slate(self._last, self._data, self._timers)
        return Fed(row, self._timers, entries, self._wiped, self._reach, self._fired)
