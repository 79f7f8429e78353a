"""A cell of an update with `across_keys=True`: one call for all keys of a step.

A key takes no part in the call, and is fed event by event, if one of its values does not fit the
declared type, if its slate cannot be read, or if its slate expires between two of its events.

If a call fails, its keys are halved and each half is called for itself, until single keys are left.
Those are fed event by event, so that only the events that fail alone are dead letters. Whatever is
called together, the meaning is the same (model/batch_update.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.codec import SlateCodec, slate_codec
from millstream.columnar.arrow_arrays import integer_array, offsets_of
from millstream.engine.beat import Beat
from millstream.engine.cells.cell import Cell
from millstream.engine.cells.content_order import PIECE, KeyGroups, by_key
from millstream.engine.cells.feeder import Feeder
from millstream.engine.cells.slate_columns import pack_plain, unpack_plain
from millstream.engine.cells.timer_index import due_in
from millstream.engine.columns import Columns
from millstream.engine.plan import Plan
from millstream.engine.router import Router
from millstream.model.function import Update
from millstream.model.migration import former_names
from millstream.model.place import FAILURES
from millstream.slate_versions import read_slate
from millstream.stores.contract import View
from millstream.stores.layout import PLAIN, SLATE_HEAD, pack_slate, slate_head, unpack_slate
from millstream.update_tables import TableEvents, table_form


class KeyPart(NamedTuple):
    """A key's part in a call."""

    key: str
    row: bytes | None
    start: int
    """The index of its first event."""
    size: int
    """The number of its events."""
    slate: Any
    last: int
    """The time of the last update of the slate after the call."""


class TableCell(Cell):
    """A cell whose keys are fed together."""

    def __init__(self, plan: Plan, number: int, view: View, beat: Beat) -> None:
        super().__init__(plan, number, view, beat)
        update = plan.functions[number]
        assert isinstance(update, Update)
        self._form = table_form(update.slate, update.values)
        self._codec: SlateCodec = slate_codec(update.slate)
        self._fresh: bytes | None = None
        """A new slate as it would be stored; None if stored slates need more than to be decoded."""
        if update.version == 1 and not former_names(update.slate):
            with suppress(*FAILURES):  # each event then fails by itself
                self._fresh = self._codec.encode(self._codec.fresh())

    def _feed(
        self, update: Update, due: Columns, timed: dict[bytes, str], beat: Beat, router: Router
    ) -> None:
        began = perf_counter_ns()
        feeder = self._feeder(update, beat)
        groups = by_key(due, self._plan.streams)
        events, start = groups.events, 0
        values, unfit = self._values(events)
        rows = self._rows.read(groups.keys)
        if not unfit and events and self._feed_together(update, groups, rows, values, feeder):
            self._end_feed(feeder, len(due), router)
            router.took(self.number, perf_counter_ns() - began)
            return
        times = events.ts if update.ttl is not None else ()
        ends = events.times[np.cumsum(groups.counts) - 1].tolist() if events else []
        parts: list[KeyPart] = []
        apart: list[tuple[str, bytes | None, range]] = []
        keys = zip(groups.keys, groups.counts, rows, ends, strict=True)
        for key, count, row, end in keys:
            order = range(start, start + count)
            start += count
            part = None
            if feeder.plain and (not unfit or unfit.isdisjoint(order)):
                part = self._part(update, key, row, order, end, times)
            if part is None:
                apart.append((key, row, order))
            else:
                parts.append(part)
        failed = self._call(update, parts, events, values, feeder) if parts else []
        apart += [(p.key, p.row, range(p.start, p.start + p.size)) for p in failed]
        timers = due_in(beat, self.name)
        for key, row, order in apart:
            self._feed_key(feeder, key, row, events, [], order, timers, again=True)
        self._end_feed(feeder, len(due), router)
        router.took(self.number, perf_counter_ns() - began)

    def _feed_together(
        self,
        update: Update,
        groups: KeyGroups,
        rows: list[bytes | None],
        values: list[pa.Array],
        feeder: Feeder,
    ) -> bool:
        """Feeds all keys with one call, their slates read and packed together. Returns False, with
        nothing changed, if a slate needs more than that, or if anything fails."""
        if not feeder.plain or update.ttl is not None or self._fresh is None:
            return False
        events, slates = groups.events, self._rows.slates
        stored = unpack_plain([row for row in rows if row is not None])
        if stored is None:
            return False
        is_new = np.array([row is None for row in rows])
        data = iter(stored[1])
        counts = np.array(groups.counts)
        last = events.times[np.cumsum(counts) - 1]
        last[~is_new] = np.maximum(last[~is_new], stored[0])
        try:
            columns = self._form.stored_columns(
                [self._fresh if row is None else next(data) for row in rows]
            )
            streams = self._streams_of(events)
            order = TableEvents(
                np.repeat(np.arange(len(rows)), counts), events.times, streams, values
            )
            encoded = self._form.encoded(self._form.call(update, order, groups.keys, columns))
        except FAILURES:
            return False
        if np.diff(offsets_of(encoded)).max() > feeder.watched:
            return False
        packed = pack_plain(last, encoded)
        if packed is None:
            return False
        slates.update(zip(groups.keys, packed, strict=True))
        self.counts.slates += int(is_new.sum())
        return True

    def _values(self, events: Columns) -> tuple[list[pa.Array], set[int]]:
        """Reads the values into columns; also returns the indices of those that do not fit."""
        form, unfit = self._form, set[int]()
        if not form.has_values or not events:
            return [], unfit
        if events.laid is not None:
            columns = form.columns_of(partial(events.laid.number, times=events.times))
            if columns is not None:
                return columns, unfit
        pieces: list[list[pa.Array]] = []
        for start in range(0, len(events), PIECE):
            encoded = events.slice(start, start + PIECE).values
            try:
                records = form.records(encoded)
            except FAILURES:
                records = []
                for index, value in enumerate(encoded, start):
                    try:
                        records.append(form.record(value))
                    except FAILURES:
                        records.append(None)
                        unfit.add(index)
            pieces.append(form.value_columns(records))
        return [pa.concat_arrays(column) for column in zip(*pieces, strict=True)], unfit

    def _part(
        self,
        update: Update,
        key: str,
        row: bytes | None,
        order: range,
        end: int,
        times: Sequence[int],
    ) -> KeyPart | None:
        """Returns a key's part in the call; None if it must be fed event by event.

        `end` is the time of its last event; `times` has those of all events if there is a ttl.
        """
        last, ttl = end, update.ttl
        slate: Any = None
        if row is not None:
            kind, before = slate_head(row)
            if ttl is None or times[order[0]] - before <= ttl:
                try:
                    if kind == PLAIN and update.version == 1:  # nearly always
                        slate = self._codec.decode(row[SLATE_HEAD:])
                    else:
                        stored = unpack_slate(row)
                        slate = read_slate(update, stored.version, stored.data)
                except FAILURES:
                    return None
                last = max(last, before)
        if ttl is not None and last - times[order[0]] > ttl:
            first = times[order[0]]
            since = first if slate is None else max(first, before)
            reached = [max(times[index], since) for index in order]
            if any(later - earlier > ttl for earlier, later in pairwise(reached)):
                return None
        if slate is None:
            slate = self._codec.fresh()
        return KeyPart(key, row, order.start, len(order), slate, last)

    def _call(
        self,
        update: Update,
        parts: list[KeyPart],
        events: Columns,
        values: list[pa.Array],
        feeder: Feeder,
    ) -> list[KeyPart]:
        """Calls the function for these keys and keeps their slates; returns those that failed."""
        try:
            new = self._form.call(
                update,
                self._table_events(parts, events, values),
                [part.key for part in parts],
                self._form.slate_columns([part.slate for part in parts]),
            )
            encoded = self._form.encoded(new).to_pylist()
        except FAILURES:
            if len(parts) == 1:
                return parts
            half = len(parts) // 2
            return [
                *self._call(update, parts[:half], events, values, feeder),
                *self._call(update, parts[half:], events, values, feeder),
            ]
        failed = []
        slates, version = self._rows.slates, update.version
        for part, data in zip(parts, encoded, strict=True):
            if len(data) > feeder.limit:
                failed.append(part)
                continue
            feeder.note(part.key, len(data))
            slates[part.key] = pack_slate(part.last, data, {}, version)
            if part.row is None:
                self.counts.slates += 1
        return failed

    def _table_events(
        self, parts: list[KeyPart], events: Columns, values: list[pa.Array]
    ) -> TableEvents:
        """Returns the events of these keys, which may be all of them."""
        counts = np.array([part.size for part in parts])
        rows = np.repeat(np.arange(len(parts)), counts)
        if len(rows) < len(events):
            before = np.cumsum(counts) - counts
            starts = np.array([part.start for part in parts])
            order = np.arange(len(rows)) + np.repeat(starts - before, counts)
            events = events.pick(order)
            values = [column.take(integer_array(order)) for column in values]
        return TableEvents(rows, events.times, self._streams_of(events), values)

    def _streams_of(self, events: Columns) -> pa.Array:
        """Returns the names of the events' streams."""
        return pa.array(self._plan.streams, pa.string()).take(integer_array(events.stream_array))
