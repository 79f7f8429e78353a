"""Merges an aggregate's events where they are read, before they are sent to their shards.

DESIGN
------
A `Combiner` holds the partials of one aggregate in one task. Events are buffered and then merged
many at a time: `Algebra.gather` takes them in bulk. If there is no `gather`, or if it raises, the
events are lifted one by one, and an event that fails is a dead letter. The task sends on one
partial per key, so one key with most of the events costs no more than many keys (Muppet,
example 6).

Partials are sent as `Columns`, like deliveries: `streams` holds how many events each stands for,
`ts` the greatest time, `values` the encoded result of `write`; with a ttl, the least time comes
before it.

With a ttl the order of events matters: a slate that has expired starts afresh. So partials are then
kept separately for spans of `ttl + 1` microseconds. Two events within one span cannot be more than
`ttl` apart, so no slate expires inside it; whether one expires between two spans follows from their
least and greatest times.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from millstream.codec import decode_value, decode_values, encode_slates, slate_codec
from millstream.columnar.arrow_arrays import Integers, bytes_array, integer_array, text_array
from millstream.engine.columns import Columns
from millstream.engine.key_counts import KeyCounts, KeyRows
from millstream.engine.laid_values import LaidValues, number_form
from millstream.errors import FunctionError
from millstream.model.algebra import Algebra
from millstream.model.event import Event
from millstream.model.function import Update
from millstream.model.place import FAILURES, described

BUFFERED = 1 << 17
"""The number of events, with their values, that are buffered before they are merged."""
BUFFERED_KEYS = 1 << 18
"""The number of events without values that are buffered before they are merged."""
MOST_PARTIALS, MOST_COUNTS = 1 << 16, 1 << 18
"""The number of partials that are held before they are sent on; those of values may be large."""
MOST_TOTAL: Final = 1 << 62
"""Greater totals of whole numbers are added up as Python's ints."""
LEAST: Final = struct.Struct(">q")
Fail = Callable[[Event, BaseException], None]
"""Makes a dead letter of an event."""
FailPartial = Callable[[str, int, Any, int, BaseException], None]
"""Makes a dead letter of a partial: key, greatest time, partial, number of events, error."""
_encode: Final = slate_codec(dict).encode


class PartialSpan:
    """The partials of one span of time (without a ttl: of all time), by key."""

    __slots__ = ("marks", "partials", "totals")

    def __init__(self) -> None:
        self.partials: dict[str, Any] = {}
        self.marks = KeyCounts()
        self.totals = KeyCounts()
        """Of events of which only a number is needed; those above are without these."""


class Combiner:
    """The partials of one aggregate in one task."""

    def __init__(
        self, update: Update, streams: tuple[str, ...], fail: Fail, fail_partial: FailPartial
    ) -> None:
        assert update.algebra is not None
        self._update = update
        self._algebra: Algebra = update.algebra
        self._streams = streams
        self._fail = fail
        self._fail_partial = fail_partial
        self._width = None if update.ttl is None else update.ttl + 1
        self._most = MOST_PARTIALS if self._algebra.needs_values else MOST_COUNTS
        self._spans: dict[int, PartialSpan] = {}
        self._events = Columns()
        self._values: list[Any] = []
        self._keys: list[pa.Array] = []
        self._times: list[Integers] = []
        self._waiting = 0
        """The number of events in these two."""
        self._greatest_total = 0
        """No total can be greater."""
        self._processed = 0

    @property
    def full(self) -> bool:
        """True if there are so many partials that they should be sent on."""
        partials = sum(len(span.marks) + len(span.totals) for span in self._spans.values())
        return partials >= self._most

    def add(self, events: Columns, decoded: list[Any] | None) -> None:
        """Takes events in. `decoded`: their values, if they are decoded and nobody changes them."""
        algebra = self._algebra
        if not events:
            return
        if not algebra.needs_values and algebra.gather is not None:
            self.add_keys(events.key_array, events.times)
            return
        if decoded is None and self._add_numbers(events):
            return
        if algebra.gather is None:
            decoded = None  # a user's lift may change them
        self._events.extend(events)
        self._values += decode_values(events.values) if decoded is None else decoded
        if len(self._events) >= BUFFERED:
            self._merge_events()

    def add_keys(self, keys: pa.Array, times: Integers) -> None:
        """Takes in events of which only key and time are needed; keys are large_string."""
        if self._algebra.counted is not None:
            for span, span_keys, span_times in self._by_span(keys, times):
                span.marks.add(span_keys, span_times)
            self._processed += len(keys)
            return
        self._keys.append(keys)
        self._times.append(times)
        self._waiting += len(keys)
        if self._waiting >= BUFFERED_KEYS:
            self._merge_keys()

    def _add_numbers(self, events: Columns) -> bool:
        """Takes events in by a column of whole numbers; False if they do not have it."""
        name, laid = self._algebra.number, events.laid
        numbers = None if name is None or laid is None else laid.number(name, events.times)
        if numbers is None:
            return False
        greatest = max(abs(int(numbers.min())), abs(int(numbers.max())))
        if self._greatest_total + greatest * len(numbers) >= MOST_TOTAL:
            return False
        self._greatest_total += greatest * len(numbers)
        keys, times = events.key_array, events.times
        for number, indices in self._numbers(times):
            totals = self._span(number).totals
            if indices is None:
                totals.add(keys, times, numbers)
            else:
                totals.add(keys.take(integer_array(indices)), times[indices], numbers[indices])
        self._processed += len(numbers)
        return True

    def take(self) -> Columns:
        """Takes out the partials so far; the combiner is empty then."""
        self._merge_events()
        self._merge_keys()
        out = Columns()
        for span in self._spans.values():
            if span.marks:
                rows = span.marks.rows()
                if self._algebra.counted is not None:
                    self._write_counted(rows, out)
                else:
                    self._write(rows, map(span.partials.__getitem__, rows.keys.tolist()), out)
            if span.totals:
                self._write_totals(span.totals.rows(), out)
        self._spans, self._greatest_total = {}, 0
        return out

    def take_processed(self) -> int:
        """Returns how many events were merged into partials since the last call."""
        processed, self._processed = self._processed, 0
        return processed

    def _span(self, number: int) -> PartialSpan:
        span = self._spans.get(number)
        if span is None:
            span = self._spans[number] = PartialSpan()
        return span

    def _merge_keys(self) -> None:
        if not self._waiting:
            return
        keys, times = pa.concat_arrays(self._keys), np.concatenate(self._times)
        self._keys, self._times, self._waiting = [], [], 0
        gather = self._algebra.gather
        assert gather is not None
        try:
            for span, span_keys, span_times in self._by_span(keys, times):
                held, merge = span.partials, self._algebra.merge
                for key, partial in gather(span_keys.to_pylist(), ()).items():
                    held[key] = merge(held[key], partial) if key in held else partial
                span.marks.add(span_keys, span_times)
        except FAILURES as error:
            raise FunctionError(
                f"{self._update.where}: an algebra that needs no values must not fail, and "
                f"{self._algebra.name!r} raised {described(error)}: say needs_values=True"
            ) from error
        self._processed += len(keys)

    def _merge_events(self) -> None:
        events, values = self._events, self._values
        if not events:
            return
        self._events, self._values = Columns(), []
        if self._algebra.gather is None:
            self._lift(events, values)
            return
        for number, indices in self._numbers(events.times):
            part = events if indices is None else events.pick(indices)
            part_values = values if indices is None else [values[i] for i in indices.tolist()]
            try:
                fresh = self._algebra.gather(part.keys, part_values)
            except FAILURES:  # one of them is wrong: lifting them one by one finds it
                self._lift(part, decode_values(part.values))
                continue
            self._processed += len(part)
            self._merge_fresh(self._span(number), fresh, part)

    def _merge_fresh(self, span: PartialSpan, fresh: dict[str, Any], events: Columns) -> None:
        partials, merge = span.partials, self._algebra.merge
        span.marks.add(events.key_array, events.times)
        for key, partial in fresh.items():
            if key not in partials:
                partials[key] = partial
                continue
            try:
                partials[key] = merge(partials[key], partial)
            except FAILURES as error:
                count = Counter(events.keys)[key]
                span.marks.take_back(key, count)
                self._processed -= count
                self._fail_partial(key, max(events.of(key).ts), partial, count, error)

    def _lift(self, events: Columns, values: list[Any]) -> None:
        """Lifts and merges events one by one; an event that fails is a dead letter."""
        lift, merge, width = self._algebra.lift, self._algebra.merge, self._width
        good: dict[int, tuple[list[str], list[int]]] = {}
        for stream, ts, key, encoded, value in zip(
            events.streams, events.ts, events.keys, events.values, values, strict=True
        ):
            number = 0 if width is None else ts // width
            partials = self._span(number).partials
            try:
                partial = lift(Event(self._streams[stream], ts, key, value))
                if key in partials:
                    partial = merge(partials[key], partial)
            except FAILURES as error:
                self._fail(Event(self._streams[stream], ts, key, decode_value(encoded)), error)
                continue
            partials[key] = partial
            keys, times = good.setdefault(number, ([], []))
            keys.append(key)
            times.append(ts)
        for number, (keys, times) in good.items():
            self._span(number).marks.add(text_array(keys), np.array(times, np.int64))
            self._processed += len(keys)

    def _by_span(
        self, keys: pa.Array, times: Integers
    ) -> Iterable[tuple[PartialSpan, pa.Array, Integers]]:
        for number, indices in self._numbers(times):
            if indices is None:
                yield self._span(number), keys, times
            else:
                yield self._span(number), keys.take(integer_array(indices)), times[indices]

    def _numbers(self, times: Integers) -> Iterable[tuple[int, Integers | None]]:
        """Returns each span with the indices of its events; None: all events are in it."""
        width = self._width
        if width is None:
            return [(0, None)]
        spans, of_spans, counts = np.unique(times // width, return_inverse=True, return_counts=True)
        if len(spans) == 1:
            return [(int(spans[0]), None)]
        order = np.argsort(of_spans, kind="stable")
        indices = np.split(order, np.cumsum(counts)[:-1])
        return list(zip(spans.tolist(), indices, strict=True))

    def _write_counted(self, rows: KeyRows, out: Columns) -> None:
        """Writes the partials of an algebra that only counts."""
        counted, whole = self._algebra.counted, self._algebra.whole
        assert counted is not None
        if whole is None or self._width is not None:
            self._write(rows, map(counted, rows.counts.tolist()), out)
        else:
            self._write_whole(whole, rows, rows.counts, out)

    def _write_totals(self, rows: KeyRows, out: Columns) -> None:
        """Writes the partials of events of which only a number was needed."""
        totalled, whole = self._algebra.totalled, self._algebra.whole
        assert totalled is not None
        if whole is None or self._width is not None:
            self._write(rows, map(totalled, rows.counts.tolist(), rows.totals.tolist()), out)
        else:
            self._write_whole(whole, rows, rows.totals, out)

    def _write_whole(self, name: str, rows: KeyRows, partials: Integers, out: Columns) -> None:
        """Writes partials that are whole numbers."""
        laid = LaidValues(number_form(name), (partials,))
        out.extend(Columns.of_arrays(rows.counts, rows.last, rows.keys, None, laid))

    def _write(self, rows: KeyRows, partials: Iterable[Any], out: Columns) -> None:
        values, bad = written(self._algebra, partials)
        if self._width is not None:
            pairs = zip(rows.least.tolist(), values, strict=True)
            values = [LEAST.pack(least) + value for least, value in pairs]
        columns = Columns.of_arrays(rows.counts, rows.last, rows.keys, bytes_array(values))
        if bad:
            for index, error in bad.items():
                events, key = columns.streams[index], columns.keys[index]
                self._processed -= events
                self._fail_partial(key, columns.ts[index], None, events, error)
            columns = columns.pick([i for i in range(len(values)) if i not in bad])
        out.extend(columns)


def written(
    algebra: Algebra, partials: Iterable[Any]
) -> tuple[list[bytes], dict[int, BaseException]]:
    """Encodes the slates of partials; also returns the errors of those that fail, by index."""
    write, held = algebra.write, list(partials)
    try:
        return encode_slates(list(map(write, held))), {}
    except FAILURES:  # at least one is wrong: encoding them one by one finds it
        pass
    values: list[bytes] = []
    bad: dict[int, BaseException] = {}
    for index, partial in enumerate(held):
        try:
            values.append(_encode(write(partial)))
        except FAILURES as error:
            values.append(b"")
            bad[index] = error
    return values, bad
