"""Feeds one key through a batch on the careful path: its slate, timers and table entries.

A `KeyRun` holds a key's slate between its events, so that an event that fails can be undone. See
feeder.py for when a key takes this path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.codec import SlateCodec, decode_value, encode_value
from millstream.engine.cells.readback import SMALL
from millstream.engine.columns import Columns
from millstream.model.event import END, Clock, Event, Timer
from millstream.model.place import FAILURES
from millstream.model.slate import NoEntries, Table, over_limit
from millstream.slate_versions import migrated, migrated_entries, read_slate
from millstream.stores.layout import SlateRow, Timers, pack_slate, unpack_slate

if TYPE_CHECKING:
    from millstream.engine.cells.feeder import Feeder

_new = tuple.__new__


class Redo(Exception):  # not an error: it asks for the other path
    """This path is not possible for this key: feed it on the careful path."""


class Fed:
    """The result of feeding a key: its new row (None: no slate), timers, and a table's changes."""

    __slots__ = ("entries", "fired", "last", "reach", "row", "timers", "wiped")

    def __init__(
        self,
        row: bytes | None,
        timers: Timers,
        entries: dict[str, bytes | None],
        wiped: bool,
        reach: int,
        fired: int | None,
        last: int,
    ) -> None:
        self.row = row
        self.last = last
        """The ts of the last event that updated the slate, whether or not it still exists."""
        self.timers = timers
        self.entries = entries
        self.wiped = wiped
        self.reach = reach
        """The longest time that one of its events has set a timer ahead."""
        self.fired = fired
        """The latest event-time timer that fired when the key was closed."""


class Due(NamedTuple):
    """Determines which of a key's timers fire after its events."""

    event: int | None
    """Event-time timers up to this fire."""
    wall: int | None
    """Wall timers up to this fire."""
    reached: int | None = None
    """The event time reached so far; it decides whether a wall timer's slate has expired."""
    limit: int | None = None
    """Set if the key is being closed: event-time timers fire up to here (see final_phase.py)."""
    last: int = 0
    """The time of the last event, with `limit`: timers for the end fire at it or later."""
    all_waiting: bool = False
    """True if timers that already wait fire too, even past `limit`."""


class KeyRun:
    """Feeds one key through a batch, with timers.

    If not careful, a settled or a large slate is not saved between events, and a failure then
    raises Redo.
    """

    def __init__(self, feeder: Feeder, key: str, row: bytes | None, *, careful: bool) -> None:
        fresh = SlateRow(0, b"", {}, feeder.update.version)
        stored = fresh if row is None else unpack_slate(row)
        self._feeder = feeder
        self._codec = feeder.codec
        self._careful = careful
        self._key = key
        self._exists = row is not None
        self._last = stored.last
        self._timers: Timers = dict(stored.timers)
        self._wiped = False
        self._data = stored.data
        """The slate as it was last written."""
        self._version = stored.version
        """The version of `_data`, or of a table's entries."""
        self._kept = careful or len(stored.data) <= SMALL
        """True if `_data` is what the last event has left, so that a failure can go back to it."""
        self._sound = self._kept
        """True if what the last event has left can be stored, and reads back as it is."""
        self._calls = 0
        self._reach = 0
        self._fired: int | None = None
        self._memory: Any = None
        """The slate that functions get; None: not read yet."""
        if self._codec is None:
            entries = feeder.tables(key) if row is not None else NoEntries()
            self._memory = Table(entries, encode_value, decode_value, feeder.limit)

    def through(
        self,
        events: Columns,
        values: Mapping[int, Any] | list[Any],
        order: Sequence[int],
        timers: Due,
    ) -> Fed:
        """Feeds the events in order, and fires the timers between and after them."""
        update, streams = self._feeder.update, self._feeder.streams
        function, ttl = self._feeder.function, update.ttl
        for index in order:
            ts = events.ts[index]
            if self._timers:
                self._fire("event", ts - 1, 0)
            expired = None
            if ttl is not None and self._exists and ts - self._last > ttl:
                expired = self._state()
                self._drop()
            event = _new(Event, (streams[events.streams[index]], ts, self._key, values[index]))
            if self._call(function, event, event, events.values[index], None):
                self._last = max(self._last, ts) if self._exists else ts
                self._exists = True
                self._forget_if_asked()
            elif expired is not None:  # the event failed: restore the old slate
                (
                    self._timers,
                    self._data,
                    self._version,
                    self._memory,
                    self._kept,
                    self._sound,
                    self._wiped,
                ) = expired
                self._exists = True
        if self._timers and timers.event is not None:
            self._fire("event", timers.event, 0)
        if self._timers and timers.limit is not None:
            self._close(timers.limit, timers.last, all_waiting=timers.all_waiting)
        if self._timers and timers.wall is not None:
            self._fire("wall", timers.wall, timers.reached or 0)
        return self._end()

    def _state(self) -> tuple[Timers, bytes, int, Any, bool, bool, bool]:
        """Returns the state to restore if an event finds its slate expired, and then fails."""
        kept, sound = self._kept, self._sound
        return self._timers, self._data, self._version, self._memory, kept, sound, self._wiped

    def _fire(self, clock: Clock, until: int, horizon: int) -> None:
        """Fires this key's timers of a clock that are set for `until` or before, in order.

        `horizon` is the event time reached; for wall timers it decides whether the slate has
        expired.
        """
        while True:
            for kind, at in self._timers.values():
                if at <= until and kind == clock:
                    break
            else:
                return  # the common case, for every event of a key that has a timer
            at, name = min((at, name) for name, (kind, at) in self._timers.items() if kind == clock)
            self._fire_one(clock, at, name, horizon)

    def _close(self, limit: int, last: int, *, all_waiting: bool) -> None:
        """Fires the waiting event-time timers, and those that these set up to `limit`, in order."""
        waiting = {*self._event_timers()} if all_waiting else set()
        while due := [
            timer for timer in self._event_timers() if timer[0] <= limit or timer in waiting
        ]:
            at, name = min(due)
            waiting.discard((at, name))
            ts = last if at == END else at
            if self._fire_one("event", ts, name, 0):
                self._fired = ts if self._fired is None else max(self._fired, ts)
                last = max(last, ts)

    def _event_timers(self) -> list[tuple[int, str]]:
        return [(at, name) for name, (kind, at) in self._timers.items() if kind == "event"]

    def _fire_one(self, clock: Clock, at: int, name: str, horizon: int) -> bool:
        """Fires a timer and removes it; False if it did not fire because its slate has expired."""
        update = self._feeder.update
        del self._timers[name]
        reached = at if clock == "event" else horizon
        expired = update.ttl is not None and reached - self._last > update.ttl
        if update.on_timer is None or expired:
            return False
        timer = Timer(at, self._key, name, clock, horizon)
        if self._call(update.on_timer, timer, Event("", timer.now, self._key, None), b"", timer):
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
        """Calls the function; True if it succeeded. If it failed, all its effects are undone."""
        effects = self._feeder.effects
        self._calls += 1
        self._forget = False
        mark, timers = effects.mark(), self._timers
        try:
            if self._memory is None:
                self._memory = self._read()
            elif self._codec is None and self._version != self._feeder.update.version:
                self._migrate_table()
            result = function(given, self._memory)
            if result is not None:
                self._timers = dict(timers)
                firing = timer.clock if timer is not None else None
                effects.reach = 0
                value = encoded or b"null"
                self._forget = effects.apply(result, event, value, self._timers, firing)
            if self._codec is not None and not self._forget:
                self._write(self._codec)
            if result is not None:
                self._reach = max(self._reach, effects.reach)
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
        """Reads the slate as it was last written, migrated to the update's version."""
        assert self._codec is not None
        update = self._feeder.update
        if not self._data:
            self._version = update.version
            return self._codec.fresh()
        if self._version != update.version:
            self._data = migrated(update, self._version, self._data)
            self._version = update.version
        return read_slate(update, self._version, self._data)

    def _migrate_table(self) -> None:
        """Migrates all entries of a table to the update's version, once."""
        update, table = self._feeder.update, self._memory
        if self._exists and not self._wiped:
            stored = dict(self._feeder.tables(self._key).scan("", None, False))
            entries = migrated_entries(update, self._version, stored)
            for entry in stored.keys() - entries.keys():
                table.discard(entry)
            for entry, value in entries.items():
                if stored.get(entry) != value:
                    table[entry] = decode_value(value)
            table.settle()
        self._version = update.version

    def _write(self, codec: SlateCodec) -> None:
        """Writes the slate and reads it back; raises if it cannot be stored.

        Off the careful path, a settled slate is not, since that would change nothing. Nor is a
        large one, until it is small again or holds something odd (see feeder.py).
        """
        feeder, memory = self._feeder, self._memory
        if not self._careful and feeder.settled(memory):
            self._kept, self._sound = False, True
            return
        if not self._sound and feeder.is_large(memory):
            return
        data = codec.encode(memory)
        if len(data) > SMALL and not self._careful and feeder.fits(memory):
            self._kept = self._sound = False
            return
        self._memory = codec.decode(data)
        if len(data) > feeder.limit:
            raise over_limit(len(data), feeder.limit)
        if not self._sound and self._memory != memory:
            raise Redo
        self._data, self._kept, self._sound = data, True, True

    def _check(self) -> bytes:
        """Returns the bytes of a slate that was not saved; raises Redo if it cannot be stored."""
        assert self._codec is not None
        if self._memory is None:
            return self._data
        try:
            data = self._codec.encode(self._memory)
            fits = len(data) <= self._feeder.limit
            if fits and self._sound:
                return data
            if fits and self._feeder.readable(self._memory, data, self._calls == 1):
                return data
        except FAILURES as error:
            raise Redo from error
        raise Redo

    def _forget_if_asked(self) -> None:
        if self._forget:
            self._drop()

    def _drop(self) -> None:
        """Deletes the slate with its timers and entries; the next event finds a fresh one."""
        if not self._kept:
            self._check()
        self._kept = self._sound = True
        self._exists, self._timers, self._data, self._memory = False, {}, b"", None
        self._version = self._feeder.update.version
        if self._codec is None:
            self._wiped = True
            self._memory = Table(NoEntries(), encode_value, decode_value, self._feeder.limit)

    def _end(self) -> Fed:
        entries: dict[str, bytes | None] = {}
        if not self._exists:
            return Fed(None, {}, entries, self._wiped, self._reach, self._fired, self._last)
        if self._codec is None:
            entries = self._memory.changes()
            size = max(map(len, filter(None, entries.values())), default=0)
        elif not self._kept:
            self._data = self._check()
        self._feeder.note(self._key, size if self._codec is None else len(self._data))
        row = pack_slate(self._last, self._data, self._timers, self._version)
        return Fed(row, self._timers, entries, self._wiped, self._reach, self._fired, self._last)
