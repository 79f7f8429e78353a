"""An aggregate in one shard during one batch: merges partials of many tasks into the slates.

The tasks that read the events have already combined them into partials (`combiner`). Only an
aggregate with a ttl in event-time order gets the events themselves: they wait at the gate like
those of any other update, because whether a slate has expired depends on events that may still
come. They are combined here when they are due.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from millstream.codec import decode_value, decode_values
from millstream.columnar.arrow_arrays import integer_array, numbers_of, offsets_of
from millstream.columnar.line_layout import LayoutReader
from millstream.engine.beat import Beat
from millstream.engine.cells.cell import Cell
from millstream.engine.cells.slate_columns import pack_plain, unpack_plain
from millstream.engine.columns import Columns
from millstream.engine.combiner import LEAST, MOST_TOTAL, written
from millstream.engine.key_counts import KeyRows, grouped
from millstream.engine.laid_values import number_form
from millstream.engine.plan import Plan
from millstream.engine.router import Router
from millstream.model.algebra import Algebra
from millstream.model.function import Update
from millstream.model.place import FAILURES
from millstream.model.slate import over_limit
from millstream.stores.contract import View
from millstream.stores.layout import PLAIN, SLATE_HEAD, pack_slate, slate_head, unpack_slate


class PartialOnTheWay(NamedTuple):
    """A partial on its way into a slate."""

    least: int
    last: int
    partial: Any
    events: int


class AggregateCell(Cell):
    """A cell whose events are merged instead of fed."""

    def __init__(self, plan: Plan, number: int, view: View, beat: Beat) -> None:
        super().__init__(plan, number, view, beat)
        update = plan.functions[number]
        assert isinstance(update, Update)
        assert update.algebra is not None
        self._algebra: Algebra = update.algebra
        self._ttl = update.ttl
        self._combined = number in plan.combined

    def step(self, arrived: Columns | None, beat: Beat, router: Router) -> None:
        """Merges the partials that have arrived, and the events that are due."""
        partials = arrived if self._combined and arrived is not None else Columns()
        if self._gate is not None:
            due = self._gate.take(None if self._combined else arrived, self._open_until(beat))
            if due:
                partials.extend(router.combined(self.number, due))
        if not partials:
            return
        began = perf_counter_ns()
        try:
            if self._ttl is None:
                if not self._merge_whole(partials):
                    self._merge(partials, router)
            else:
                self._merge_by_time(partials, self._ttl, router)
        finally:
            router.took(self.number, perf_counter_ns() - began)

    def _merge_whole(self, partials: Columns) -> bool:
        """Merges partials that are whole numbers, if their slates are such too: key by key they are
        added up. Returns False, with nothing changed, if that cannot be done."""
        name, laid = self._algebra.whole, partials.laid
        if name is None or laid is None or laid.form != number_form(name):
            return False
        (numbers,) = laid.numbers
        ones = np.ones(len(numbers), np.int64)
        keys, counts, last, _, totals = grouped(
            [KeyRows(partials.key_array, ones, partials.times, partials.times, numbers)]
        )
        greatest = max(-int(numbers.min()), int(numbers.max()))
        if greatest * int(counts.max()) >= MOST_TOTAL:
            return False
        order = numbers_of(pc.sort_indices(keys))  # as their rows are
        names, last, totals = keys.take(integer_array(order)).tolist(), last[order], totals[order]
        rows = self._rows.read(names)
        stored = [row for row in rows if row is not None]
        if stored:
            unpacked = unpack_plain(stored)
            slates = None if unpacked is None else LayoutReader().read(b"\n".join(unpacked[1]))
            if unpacked is None or slates is None or slates.layout != laid.form.layout:
                return False
            known = np.flatnonzero(np.array([row is not None for row in rows]))
            last[known] = np.maximum(last[known], unpacked[0])
            totals[known] += slates.columns[0]  # of at most 18 digits: this fits
        encoded = laid.form.layout.lines([totals])
        workflow = self._plan.workflow
        least = min(workflow.slate_warn, workflow.slate_limit)
        packed = pack_plain(last, encoded)
        if packed is None or int(np.diff(offsets_of(encoded)).max()) > least:
            return False
        self._rows.slates.update(zip(names, packed, strict=True))
        self.counts.slates += len(rows) - len(stored)
        return True

    def _merge(self, partials: Columns, router: Router) -> None:
        """Merges all partials of a key, then its slate: without a ttl the order does not matter."""
        read, merge = self._algebra.read, self._algebra.merge
        merged: dict[str, Any] = {}
        last: dict[str, int] = {}
        counts: dict[str, int] = {}
        for key, ts, count, value in zip(
            partials.keys,
            partials.ts,
            partials.streams,
            decode_values(partials.values),
            strict=True,
        ):
            partial = read(value)
            if key in merged:
                try:
                    partial = merge(merged[key], partial)
                except FAILURES as error:
                    self._fail(router, key, PartialOnTheWay(ts, ts, partial, count), error)
                    continue
                last[key] = max(last[key], ts)
                counts[key] += count
            else:
                last[key], counts[key] = ts, count
            merged[key] = partial
        rows = self._rows.read(list(merged))
        known = [(key, row) for key, row in zip(merged, rows, strict=True) if row is not None]
        stored = decode_values([_data(row) for _, row in known])
        for (key, row), slate in zip(known, stored, strict=True):
            try:
                merged[key] = merge(read(slate), merged[key])
            except FAILURES as error:
                self._fail(
                    router, key, PartialOnTheWay(0, last[key], merged[key], counts[key]), error
                )
                del last[key]
                continue
            before = slate_head(row)[1]
            if before > last[key]:
                last[key] = before
        if len(last) < len(merged):
            rows = [row for key, row in zip(merged, rows, strict=True) if key in last]
            merged = {key: merged[key] for key in last}
        self._store(merged, last, counts, rows, router)

    def _merge_by_time(self, partials: Columns, ttl: int, router: Router) -> None:
        """Merges partials of the same span first, then span by span in order of time."""
        read, merge, width = self._algebra.read, self._algebra.merge, ttl + 1
        spans: dict[str, dict[int, PartialOnTheWay]] = {}
        slates = [value[LEAST.size :] for value in partials.values]
        for key, ts, count, packed, value in zip(
            partials.keys,
            partials.ts,
            partials.streams,
            partials.values,
            decode_values(slates),
            strict=True,
        ):
            (least,) = LEAST.unpack_from(packed)
            part = PartialOnTheWay(least, ts, read(value), count)
            parts = spans.setdefault(key, {})
            held = parts.get(least // width)
            if held is not None:
                try:
                    both = merge(held.partial, part.partial)
                except FAILURES as error:
                    self._fail(router, key, part, error)
                    continue
                part = PartialOnTheWay(
                    min(held.least, least), max(held.last, ts), both, held.events + count
                )
            parts[least // width] = part
        rows = self._rows.read(list(spans))
        merged: dict[str, Any] = {}
        last: dict[str, int] = {}
        counts: dict[str, int] = {}
        for (key, parts), row in zip(spans.items(), rows, strict=True):
            slate: PartialOnTheWay | None = None
            counts[key] = sum(part.events for part in parts.values())
            if row is not None:
                stored = unpack_slate(row)
                slate = PartialOnTheWay(
                    stored.last, stored.last, read(decode_value(stored.data)), 0
                )
            for _, part in sorted(parts.items()):
                if slate is None or part.least - slate.last > ttl:
                    slate = part
                    continue
                try:
                    both = merge(slate.partial, part.partial)
                except FAILURES as error:
                    self._fail(router, key, part, error)
                    counts[key] -= part.events
                    continue
                slate = PartialOnTheWay(slate.least, max(slate.last, part.last), both, part.events)
            assert slate is not None
            merged[key], last[key] = slate.partial, slate.last
        self._store(merged, last, counts, rows, router)

    def _store(
        self,
        merged: dict[str, Any],
        last: dict[str, int],
        counts: dict[str, int],
        rows: list[bytes | None],
        router: Router,
    ) -> None:
        """Stores the slates; the events of a slate that cannot be stored are a dead letter."""
        workflow, slates = self._plan.workflow, self._rows.slates
        values, bad = written(self._algebra, merged.values())
        if max(map(len, values), default=0) > min(workflow.slate_warn, workflow.slate_limit):
            for index, (key, value) in enumerate(zip(merged, values, strict=True)):
                if len(value) > workflow.slate_limit:
                    bad[index] = over_limit(len(value), workflow.slate_limit)
                elif len(value) > workflow.slate_warn:
                    self._note_large(key, len(value))
        for index, (key, value, row) in enumerate(zip(merged, values, rows, strict=True)):
            if index in bad:
                part = PartialOnTheWay(0, last[key], None, counts[key])
                self._fail(router, key, part, bad[index])
                continue
            if row is None:
                self.counts.slates += 1
            slates[key] = pack_slate(last[key], value, {})

    def _fail(self, router: Router, key: str, part: PartialOnTheWay, error: BaseException) -> None:
        """Makes a dead letter of a partial; its events do not count as processed."""
        self.counts.processed -= part.events
        router.fail_partial(self.number, key, part.last, part.partial, part.events, error)


def _data(row: bytes) -> bytes:
    return row[SLATE_HEAD:] if row[0] == PLAIN else unpack_slate(row).data
