"""A cell of an update with `across_keys=True`: one call for all keys of a step.

A key takes no part in the call, and is fed event by event, if one of its values does not fit the
declared type, if its slate cannot be read, or if its slate expires between two of its events.

If a call fails, its keys are halved and each half is called for itself, until single keys are left.
Those are fed event by event, so that only the events that fail alone are dead letters. Whatever is
called together, the meaning is the same (model/batch_update.py).
"""

from __future__ import annotations

from itertools import pairwise
from time import perf_counter_ns
from typing import Any, NamedTuple

from millstream.codec import SlateCodec, slate_codec
from millstream.engine.beat import Beat
from millstream.engine.cell import Cell
from millstream.engine.columns import Columns
from millstream.engine.content_order import by_key, content_order
from millstream.engine.feeder import Feeder
from millstream.engine.plan import Plan
from millstream.engine.router import Router
from millstream.model.function import Update
from millstream.model.rules import FAILURES
from millstream.slate_versions import read_slate
from millstream.stores.contract import View
from millstream.stores.layout import pack_slate, unpack_slate
from millstream.update_tables import TableEvents, table_form


class KeyPart(NamedTuple):
    """A key's part in a call."""

    key: str
    row: bytes | None
    order: list[int]
    """The indices of its events, in content order."""
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

    def _feed(
        self, update: Update, due: Columns, timed: dict[bytes, str], beat: Beat, router: Router
    ) -> None:
        began = perf_counter_ns()
        feeder, streams = self._feeder(update, beat), self._plan.streams
        records = self._records(due)
        parts: list[KeyPart] = []
        apart: list[tuple[str, bytes | None, list[int]]] = []
        groups = by_key(due)
        for (key, indices), row in zip(groups.items(), self._rows(list(groups)), strict=True):
            order = content_order(due, indices, streams) if len(indices) > 1 else indices
            part = None
            if feeder.plain and not any(index in records.unfit for index in order):
                part = self._part(update, key, row, order, due.ts)
            if part is None:
                apart.append((key, row, order))
            else:
                parts.append(part)
        failed = self._call(update, parts, due, records.fields, feeder) if parts else []
        apart += [(part.key, part.row, part.order) for part in failed]
        for key, row, order in apart:
            self._feed_key(feeder, key, row, due, [], order, beat, again=True)
        self._end_feed(feeder, len(due), router)
        router.took(self.number, perf_counter_ns() - began)

    def _records(self, due: Columns) -> _Records:
        """Reads the values; those that do not fit the declared type are noted."""
        form = self._form
        try:
            return _Records(form.records(due.values), frozenset())
        except FAILURES:
            fields: list[Any] = []
            unfit = set()
            for index, value in enumerate(due.values):
                try:
                    fields.append(form.record(value))
                except FAILURES:
                    fields.append(None)
                    unfit.add(index)
            return _Records(fields, frozenset(unfit))

    def _part(
        self, update: Update, key: str, row: bytes | None, order: list[int], times: list[int]
    ) -> KeyPart | None:
        """Returns a key's part in the call; None if it must be fed event by event."""
        first, last, ttl = times[order[0]], times[order[-1]], update.ttl
        slate: Any = None
        if row is not None:
            stored = unpack_slate(row)
            if ttl is None or first - stored.last <= ttl:
                try:
                    slate = read_slate(update, stored.version, stored.data)
                except FAILURES:
                    return None
                last = max(last, stored.last)
        if ttl is not None and last - first > ttl:
            since = first if slate is None else max(first, stored.last)
            reached = [max(times[index], since) for index in order]
            if any(later - earlier > ttl for earlier, later in pairwise(reached)):
                return None
        return KeyPart(key, row, order, self._codec.fresh() if slate is None else slate, last)

    def _call(
        self,
        update: Update,
        parts: list[KeyPart],
        due: Columns,
        records: Any,
        feeder: Feeder,
    ) -> list[KeyPart]:
        """Calls the function for these keys and keeps their slates; returns those that failed."""
        order = [index for part in parts for index in part.order]
        rows = [row for row, part in enumerate(parts) for _ in part.order]
        names, slates, version = self._plan.streams, self._slates, update.version
        events = TableEvents(
            rows,
            [due.ts[index] for index in order],
            [names[due.streams[index]] for index in order],
            [records[index] for index in order] if records else (),
        )
        try:
            new = self._form.call(
                update, events, [part.key for part in parts], [part.slate for part in parts]
            )
            encoded = self._form.encoded(new)
        except FAILURES:
            if len(parts) == 1:
                return parts
            half = len(parts) // 2
            return [
                *self._call(update, parts[:half], due, records, feeder),
                *self._call(update, parts[half:], due, records, feeder),
            ]
        failed = []
        for part, data in zip(parts, encoded, strict=True):
            if len(data) > feeder.limit:
                failed.append(part)
                continue
            feeder.note(part.key, len(data))
            slates[part.key] = pack_slate(part.last, data, {}, version)
            if part.row is None:
                self.made += 1
        return failed


class _Records(NamedTuple):
    """The values of events, read as the declared type."""

    fields: Any
    unfit: frozenset[int]
    """The indices of events whose values do not fit."""
