"""Feeding an update: one key's events and timers, in order, over its slate.

Two ways through, with one meaning:

- *plain*: no timers, no table. Nothing is kept to go back to.
- *careful*: everything else, and every key whose plain way raised. If an event fails, the slate is
  as if it had not come, and the event becomes a dead letter. The key is fed from its stored slate
  again, which is right because functions are deterministic.

A slate must look the same to the next event whether or not a batch ended in between. So between
two events of a key the slate is written and read back (`readback`). For a slate of more than
`SMALL` bytes that would cost more than the event, so such a slate is looked at once, after the
key's last event: if JSON changes it, or an event fails, the key goes the careful way, where it is
read back after each event whatever its size. (Not seen: what a large slate held for a part of one
batch only, and one list under two names in it.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millstream.codec import (
    SlateCodec,
    decode_value,
    encode_value,
    slate_codec,
)
from millstream.engine.columns import Columns
from millstream.engine.effects import Effects
from millstream.engine.readback import SMALL, read_back
from millstream.errors import FunctionError
from millstream.model.event import Clock, Event, Timer
from millstream.model.function import Update
from millstream.model.place import described
from millstream.model.rules import FAILURES, DeadLetter
from millstream.model.slate import Entries, NoEntries, Table
from millstream.model.workflow import OnError
from millstream.stores.layout import (
    PLAIN,
    SLATE_HEAD,
    SlateRow,
    Timers,
    pack_slate,
    slate_head,
    unpack_slate,
)

_new = tuple.__new__
NO_TIMERS: Timers = {}


class Redo(Exception):  # not an error: it asks for the other way
    """This way will not do for this key: feed it the careful way."""


class Fed:
    """What feeding a key came to: its new row (None: no slate), timers, and a table's changes."""

    __slots__ = ("entries", "row", "timers", "wiped")

    def __init__(
        self,
        row: bytes | None,
        timers: Timers,
        entries: dict[str, bytes | None],
        wiped: bool,
    ) -> None:
        self.row = row
        self.timers = timers
        self.entries = entries
        self.wiped = wiped


class Feeder:
    """Feeds one update. Emitted events collect in `effects`, failures in `dead`."""

    def __init__(
        self,
        update: Update,
        effects: Effects,
        streams: tuple[str, ...],
        batch: int,
        on_error: OnError,
        tables: Callable[[str], Entries],
    ) -> None:
        self.update = update
        self.effects = effects
        self.dead: list[DeadLetter] = []
        self.streams = streams
        self._batch = batch
        self._on_error = on_error
        self.tables = tables
        self.codec: SlateCodec | None = None
        if update.slate is not Table:
            self.codec = slate_codec(update.slate)
            self.back = read_back(update.slate, self.codec)
        self.plain = self.codec is not None and update.on_timer is None

    def feed_plain(
        self, key: str, row: bytes | None, events: Columns, values: list[Any], order: list[int]
    ) -> bytes:
        """Feed a key's events (indices `order`, in content order); its new row. May raise Redo."""
        codec, ttl, function = self.codec, self.update.ttl, self.update.function
        assert codec is not None
        effects, names, back = self.effects, self.streams, self.back
        streams, times = events.streams, events.ts
        mark, final = len(effects.emitted.ts), order[-1]
        try:
            if row is None:
                slate, last, small = codec.fresh(), times[order[0]], True
            else:
                kind, last = slate_head(row)
                data = row[SLATE_HEAD:] if kind == PLAIN else unpack_slate(row).data
                slate, small = codec.decode(data), len(data) <= SMALL
            for index in order:
                ts = times[index]
                if ts > last:
                    if ttl is not None and ts - last > ttl:
                        slate = codec.fresh()
                    last = ts
                stream = names[streams[index]]
                result = function(_new(Event, (stream, ts, key, values[index])), slate)
                if result is not None:
                    effects.emit(result, stream, ts, key, events.values[index])
                if small and index != final:
                    slate, size = back(slate)
                    small = size <= SMALL
            encoded = codec.encode(slate)
            if not ((small and type(slate) is dict) or self.readable(slate, encoded, small)):
                raise Redo
        except FAILURES as error:
            effects.undo(mark)
            raise Redo from error
        return pack_slate(last, encoded, NO_TIMERS)

    def feed(
        self,
        key: str,
        row: bytes | None,
        events: Columns,
        values: list[Any],
        order: list[int],
        horizon: int | None,
        clock: int,
        *,
        again: bool = False,
    ) -> Fed:
        """Feed a key its events, and its timers up to `horizon` and `clock`.

        `again`: the plain way raised, and may have changed the values.
        """
        if not again:
            mark, dead = self.effects.mark(), len(self.dead)
            try:
                quick = KeyRun(self, key, row, clock, careful=False)
                return quick.through(events, values, order, horizon)
            except Redo:
                self.effects.undo(mark)
                del self.dead[dead:]
        fresh = {index: decode_value(events.values[index]) for index in order}
        return KeyRun(self, key, row, clock, careful=True).through(events, fresh, order, horizon)

    def readable(self, slate: Any, encoded: bytes, settled: bool) -> bool:
        """Whether a slate may be stored; raises if it could not be read again.

        Unless it is settled (it was read back between its events, or had one event only), it must
        be what reading it gives. A dict that could be written can be read.
        """
        assert self.codec is not None
        if settled and type(slate) is dict:
            return True
        return bool(self.codec.decode(encoded) == slate) or settled

    def fail(self, event: Event, encoded: bytes, error: BaseException, timer: Timer | None) -> None:
        """Make a dead letter of an event or timer, or stop if the application says so."""
        if self._on_error == "fail":
            raise FunctionError(
                f"{self.update.where}, key {event.key!r}: {described(error)}"
            ) from error
        self.dead.append(
            DeadLetter(
                self.update.name,
                event.stream,
                event.ts,
                event.key,
                decode_value(encoded) if encoded else None,
                described(error),
                batch=self._batch,
                timer=timer.name if timer is not None else None,
            )
        )


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
        self._memory: Any = None
        """What functions are given; None: still to be read."""
        if self._codec is None:
            entries = feeder.tables(key) if row is not None else NoEntries()
            self._memory = Table(entries, encode_value, decode_value)

    def through(
        self,
        events: Columns,
        values: Mapping[int, Any] | list[Any],
        order: list[int],
        horizon: int | None,
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
            event = Event(streams[events.streams[index]], ts, self._key, values[index])
            if self._call(function, event, event, events.values[index], None):
                self._last = max(self._last, ts) if self._exists else ts
                self._exists = True
                self._forget_if_asked()
            elif expired is not None:  # as if the event had not come: the old slate stays
                self._timers, self._data, self._memory, self._kept, self._wiped = expired
                self._exists = True
        if self._timers and horizon is not None:
            self._fire("event", horizon, 0)
        if self._timers:
            self._fire("wall", self._clock, horizon or 0)
        return self._end()

    def _fire(self, clock: Clock, until: int, horizon: int) -> None:
        """Fire this key's timers of a clock that are set for `until` or before, in order.

        `horizon` is the event time reached, which is what a slate lives by.
        """
        update = self._feeder.update
        while True:
            due = min(
                ((at, name) for name, (kind, at) in self._timers.items() if kind == clock),
                default=None,
            )
            if due is None or due[0] > until:
                return
            at, name = due
            del self._timers[name]
            now = at if clock == "event" else max(at, horizon)
            reached = at if clock == "event" else horizon
            expired = update.ttl is not None and reached - self._last > update.ttl
            if update.on_timer is None or expired:
                continue
            timer = Timer(at, self._key, name, clock)
            if self._call(update.on_timer, timer, Event("", now, self._key, None), b"", timer):
                self._forget_if_asked()

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
                self._forget = effects.apply(
                    result, event, encoded or b"null", self._timers, self._clock, firing
                )
            if self._codec is not None and self._kept and not self._forget:
                self._write(self._codec)
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
        self._data = data

    def _check(self) -> bytes:
        """The bytes of a slate that was not kept; Redo if its events should not have passed."""
        assert self._codec is not None
        if self._memory is None:
            return self._data
        try:
            data = self._codec.encode(self._memory)
            if self._feeder.readable(self._memory, data, self._calls == 1):
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
            self._memory = Table(NoEntries(), encode_value, decode_value)

    def _end(self) -> Fed:
        entries: dict[str, bytes | None] = {}
        if not self._exists:
            return Fed(None, {}, entries, self._wiped)
        if self._codec is None:
            entries = self._memory.changes()
        elif not self._kept:
            self._data = self._check()
        return Fed(
            pack_slate(self._last, self._data, self._timers), self._timers, entries, self._wiped
        )
