"""Feeds one key's events and timers, in order, to an update with its slate.

There are four paths, with the same meaning:

- *plain*: no timers, no table. Nothing is kept to roll back to.
- *timed*: the same, for an update with timers (`TimedFeed`).
- *batch*: an update with `batch=True`. One call for all events of a key; if the slate expires
  between them, one call for the events before and one for those after.
- *careful*: everything else, and every key whose other path raised. If an event fails, the slate is
  as if the event had not come, and the event becomes a dead letter. The key is fed from its stored
  slate again, which is correct because functions are deterministic.

A slate must look the same to the next event whether or not a batch ended in between. So between
two events of a key the slate is written and read back (`readback`). For a slate of more than
`SMALL` bytes that would cost more than the event. Such a slate is only looked at, at its outermost
fields, and checked as a whole once: after the key's last event, or when one of these fields holds
something odd, or when the slate may be small again. If JSON changes it, or an event fails, the key
takes the careful path, where the slate is read back after each event, whatever its size. (This does
not see what a large slate held deeper inside, or in one of many entries, only during a part of the
batch, nor one list that is referenced twice in it.) The check after the last event finds a slate
over `slate_limit` too; with a limit of up to `CLOSELY` bytes, slates are checked after each event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import GeneratorType
from typing import Any

from millstream.codec import SlateCodec, decode_value, slate_codec
from millstream.engine.cells.key_run import Due, Fed, KeyRun
from millstream.engine.cells.key_run import Redo as Redo
from millstream.engine.cells.readback import SMALL, fits_as, large_as, read_back, settled_as
from millstream.engine.columns import Columns
from millstream.engine.effects import Effects
from millstream.errors import FunctionError
from millstream.model.event import Event, Timer
from millstream.model.function import Update
from millstream.model.place import FAILURES, described
from millstream.model.rules import DeadLetter
from millstream.model.rules import effects as all_effects
from millstream.model.slate import UNLIMITED, Entries, Table
from millstream.model.workflow import OnError
from millstream.slate_versions import migrated
from millstream.stores.layout import (
    PLAIN,
    SLATE_HEAD,
    Timers,
    pack_slate,
    slate_head,
    unpack_slate,
)
from millstream.update_calls import call_batch, per_event

NO_TIMERS: Timers = {}
CLOSELY = 4_096


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
        warn: int = UNLIMITED,
        limit: int = UNLIMITED,
    ) -> None:
        """`warn` and `limit` are the workflow's `slate_warn` and `slate_limit`."""
        self.update = update
        self.function = per_event(update)
        self.effects = effects
        self.dead: list[DeadLetter] = []
        self.streams = streams
        self._batch = batch
        self._on_error = on_error
        self.tables = tables
        self.large: tuple[str, int] | None = None
        """The key and the size of the largest slate over `warn`."""
        self._warn = warn
        self.limit = limit
        self.watched = min(warn, limit)
        self._closely = limit <= CLOSELY
        self._version = update.version
        self._current = PLAIN if update.version == 1 else -1
        """The kind of rows in which all that follows the head is data of the update's version."""
        self.codec: SlateCodec | None = None
        if update.slate is not Table:
            self.codec = slate_codec(update.slate)
            self.settled, self.back = settled_as(update.slate), read_back(update.slate, self.codec)
            self.fits, self.is_large = fits_as(update.slate), large_as(update.slate)
        quick = self.codec is not None and not self._closely
        self.plain = quick and update.on_timer is None
        self.timed = quick and update.on_timer is not None and not update.batch

    def feed_plain(
        self, key: str, row: bytes | None, given: list[Event], piece: Columns, start: int
    ) -> bytes:
        """Feeds a key's events, in content order; returns the key's new row. May raise Redo.

        They are those of `piece` from the index `start` on.
        """
        codec, ttl, function = self.codec, self.update.ttl, self.update.function
        assert codec is not None
        effects, settled, back, is_large = self.effects, self.settled, self.back, self.is_large
        mark, final = effects.mark(), len(given) - 1
        try:
            if row is None:
                slate, last, small = codec.fresh(), given[0].ts, True
            else:
                kind, last = slate_head(row)
                data = row[SLATE_HEAD:] if kind == self._current else self._data(row)
                slate, small = codec.decode(data), len(data) <= SMALL
            for index, event in enumerate(given):
                if ttl is not None:
                    ts = event.ts
                    if ts - last > ttl:
                        slate = codec.fresh()
                    last = max(last, ts)
                result = function(event, slate)
                if result is not None:
                    values = piece.values  # only now: they may have to be made
                    for effect in result if type(result) is GeneratorType else all_effects(result):
                        effects.emit(effect, event, values[start + index])
                if index != final and not settled(slate):
                    if small:
                        slate, size = back(slate)
                        small = size <= SMALL
                    elif not is_large(slate):
                        slate, small = self.unlike_large(slate)
            last = max(last, given[final].ts)
            encoded = codec.encode(slate)
            if not (
                (small and type(slate) is dict)
                or settled(slate)
                or self.readable(slate, encoded, small)
            ):
                raise Redo
            if len(encoded) > self.watched:
                if len(encoded) > self.limit:
                    raise Redo
                self.note(key, len(encoded))
        except FAILURES as error:
            effects.undo(mark)
            raise Redo from error
        return pack_slate(last, encoded, NO_TIMERS, self._version)

    def feed_batch(
        self, key: str, row: bytes | None, given: list[Event], piece: Columns, start: int
    ) -> bytes:
        """Feeds a key's events as `feed_plain` does, but all of them in one call. May raise Redo.

        A slate that expires between two events is written like one that stays: what could not be
        stored must fail.
        """
        codec, ttl, update = self.codec, self.update.ttl, self.update
        assert codec is not None
        greatest = given[-1].ts
        try:
            if row is None:
                slate, last = codec.fresh(), given[0].ts
            else:
                kind, last = slate_head(row)
                slate = codec.decode(row[SLATE_HEAD:] if kind == self._current else self._data(row))
            first = 0
            if ttl is not None:
                for index, event in enumerate(given):
                    if event.ts - last > ttl:
                        if index > first:
                            call_batch(update, given[first:index], slate)
                            self._written(slate, index - first)
                        slate, first = codec.fresh(), index
                    last = max(last, event.ts)
            count = len(given) - first  # the list is the function's own from here on
            call_batch(update, given[first:] if first else given, slate)
            encoded = self._written(slate, count)
        except FAILURES as error:
            raise Redo from error
        self.note(key, len(encoded))
        return pack_slate(max(last, greatest), encoded, NO_TIMERS, self._version)

    def unlike_large(self, slate: Any) -> tuple[Any, bool]:
        """Checks a slate that was large and may be small by now, or holds something odd; returns
        it, and whether it is small. Raises Redo if an event may have seen what JSON changes."""
        again, size = self.back(slate)
        if again is not slate and again != slate:
            raise Redo
        return again, size <= SMALL

    def _written(self, slate: Any, calls: int) -> bytes:
        """Returns the bytes of a slate that a batch has changed; raises if it cannot be stored."""
        assert self.codec is not None
        encoded = self.codec.encode(slate)
        if not self.readable(slate, encoded, calls == 1) or len(encoded) > self.limit:
            raise Redo
        return encoded

    def _data(self, row: bytes) -> bytes:
        """Returns the data of a stored slate, migrated to the update's version."""
        stored = unpack_slate(row)
        if stored.version == self._version:
            return stored.data
        return migrated(self.update, stored.version, stored.data)

    def feed(
        self,
        key: str,
        row: bytes | None,
        events: Columns,
        values: list[Any],
        order: Sequence[int],
        timers: Due,
        *,
        again: bool = False,
    ) -> Fed:
        """Feeds a key its events, and the timers that are due.

        `again`: the plain path raised, and may have changed the values.
        """
        if not (again or self._closely):
            mark, dead = self.effects.mark(), len(self.dead)
            try:
                quick = KeyRun(self, key, row, careful=False)
                return quick.through(events, values, order, timers)
            except Redo:
                self.effects.undo(mark)
                del self.dead[dead:]
        fresh = {index: decode_value(events.values[index]) for index in order}
        return KeyRun(self, key, row, careful=True).through(events, fresh, order, timers)

    def note(self, key: str, size: int) -> None:
        """Notes the size with which a slate will be stored."""
        if size > (self._warn if self.large is None else self.large[1]):
            self.large = key, size

    def readable(self, slate: Any, encoded: bytes, settled: bool) -> bool:
        """True if a slate may be stored; raises if it could not be read again.

        Unless it is settled (it was read back between its events, or had only one event), it must
        equal what reading it returns. A dict that could be written can be read.
        """
        assert self.codec is not None
        if settled and type(slate) is dict:
            return True
        again = self.codec.decode(encoded)
        return settled or bool(again == slate)

    def fail(self, event: Event, encoded: bytes, error: BaseException, timer: Timer | None) -> None:
        """Makes a dead letter of an event or timer; raises instead if `on_error` is "fail"."""
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
