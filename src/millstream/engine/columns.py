"""Holds many deliveries at once as columns, and packs them to bytes.

DESIGN
------
A delivery is one event on its way to one function. Its columns are NumPy and Arrow arrays (stream
numbers, times, keys as text, encoded values as bytes) or lists of Python objects. Each column is
turned from one form into the other when it is first asked for in it. So events that a source reads
as arrays are routed, sent on, grouped and ordered without an object for each, until they are fed.
At most `FEW` events stay lists if they are lists: a call of NumPy or Arrow costs more than they do.
Values may be columns of numbers too, `laid`; then their bytes may have to be made (`laid_values`).

Columns are values: only `extend` changes them. It holds on to the parts that it is given, and joins
them once, when the columns are used. A caller must not change a list or an array that it gets.

`pack` is what shards store: one call of msgpack each way. `frames` is what passes between tasks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.columnar.arrow_arrays import Integers, bytes_array, integer_array, text_array
from millstream.engine.laid_values import LaidValues, in_turn
from millstream.model.event import Event

_event = partial(tuple.__new__, Event)
Packed = tuple[list[int], list[int], list[str], list[bytes]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Packed).decode
_STREAMS, _TS, _KEYS, _VALUES = range(4)
_COLUMNS = (_STREAMS, _TS, _KEYS, _VALUES)
FEW = 64


class TakenItems:
    """Items of an array that are copied only if they are asked for; keys often are not."""

    __slots__ = ("_array", "_order")

    def __init__(self, array: pa.Array, order: NDArray[Any]) -> None:
        self._array, self._order = array, order

    def __getitem__(self, part: slice) -> TakenItems:
        return TakenItems(self._array, self._order[part])

    def copied(self) -> pa.Array:
        return self._array.take(integer_array(self._order))


class Columns:
    """Deliveries to one function: stream numbers, times, keys and encoded values, side by side."""

    __slots__ = ("_arrays", "_count", "_laid", "_lists", "_parts")

    def __init__(
        self,
        streams: list[int] | None = None,
        ts: list[int] | None = None,
        keys: list[str] | None = None,
        values: list[bytes] | None = None,
    ) -> None:
        self._count = len(ts or ())
        self._lists: list[Any] = [
            [] if column is None else column for column in (streams, ts, keys, values)
        ]
        self._arrays: list[Any] = [None] * len(_COLUMNS)
        self._laid: LaidValues | None = None
        self._parts: list[Columns] = []
        """Columns that are not joined yet; the forms above are of no meaning while there are."""

    @classmethod
    def of_arrays(
        cls,
        streams: Integers,
        ts: Integers,
        keys: pa.Array | TakenItems,
        values: pa.Array | None,
        laid: LaidValues | None = None,
    ) -> Columns:
        """Returns columns of arrays: keys are of Arrow's large_string, values of large_binary.

        `values` may be None if they can be made of `laid`.
        """
        return cls._of([None] * len(_COLUMNS), [streams, ts, keys, values], len(ts), laid)

    @classmethod
    def on_stream(cls, stream: int, ts: list[int], keys: list[str], values: list[bytes]) -> Columns:
        """Returns columns of lists, all deliveries on one stream."""
        count = len(ts)
        if count <= FEW:
            return cls([stream] * count, ts, keys, values)
        streams = np.full(count, stream, np.int64)
        return cls._of([None, ts, keys, values], [streams, None, None, None], count)

    @classmethod
    def _of(
        cls, lists: list[Any], arrays: list[Any], count: int, laid: LaidValues | None = None
    ) -> Columns:
        columns = cls.__new__(cls)
        columns._lists, columns._arrays, columns._laid = lists, arrays, laid
        columns._count, columns._parts = count, []
        return columns

    def __len__(self) -> int:
        return self._count

    @property
    def streams(self) -> list[int]:
        return self._list(_STREAMS)

    @property
    def ts(self) -> list[int]:
        return self._list(_TS)

    @property
    def keys(self) -> list[str]:
        return self._list(_KEYS)

    @property
    def values(self) -> list[bytes]:
        return self._list(_VALUES)

    @property
    def stream_array(self) -> Integers:
        return self._array(_STREAMS)  # type: ignore[no-any-return]

    @property
    def times(self) -> Integers:
        return self._array(_TS)  # type: ignore[no-any-return]

    @property
    def key_array(self) -> pa.Array:
        return self._array(_KEYS)

    @property
    def value_array(self) -> pa.Array:
        return self._array(_VALUES)

    @property
    def parts(self) -> Sequence[Columns]:
        """The columns of which these consist, if they are not joined yet."""
        return self._parts or (self,)

    @property
    def laid(self) -> LaidValues | None:
        """The values as columns of numbers, if they have come so."""
        if self._parts:
            self._join()
        return self._laid

    @property
    def few(self) -> bool:
        """True if the deliveries are best handled as lists."""
        return self._count <= FEW

    @property
    def least(self) -> int:
        """The least time; there must be deliveries."""
        return min(self.ts) if self.few else int(self.times.min())

    @property
    def greatest(self) -> int:
        """The greatest time; there must be deliveries."""
        return max(self.ts) if self.few else int(self.times.max())

    @property
    def only_stream(self) -> int | None:
        """The stream of all deliveries; None if there are several."""
        if self.few:
            return self.streams[0] if len({*self.streams}) == 1 else None
        streams = self.stream_array
        first = int(streams[0])
        return first if bool((streams == first).all()) else None

    def made(
        self, values: list[Any], streams: tuple[str, ...], keys: Iterable[str] | None = None
    ) -> Iterator[Event]:
        """Makes the events, given their decoded values, without a loop in Python.

        `keys` are those of the events, if they are at hand.
        """
        only = self.only_stream if self else None
        names = map(streams.__getitem__, self.streams) if only is None else repeat(streams[only])
        columns = zip(names, self.ts, self.keys if keys is None else keys, values, strict=False)
        return map(_event, columns)

    def extend(self, other: Columns) -> None:
        if not other:
            return
        if self._parts:
            self._parts += other._parts or [other._shared()]
        elif self:
            self._parts = [self._shared(), *(other._parts or [other._shared()])]
        else:
            self._parts = [*other._parts]
            self._lists, self._arrays = [*other._lists], [*other._arrays]
            self._laid = other._laid
        self._count += len(other)

    def slice(self, start: int, stop: int) -> Columns:
        if self._parts:
            self._join()
        lists, arrays = self._lists, self._arrays
        return Columns._of(
            [
                lists[n][start:stop] if arrays[n] is None and lists[n] is not None else None
                for n in _COLUMNS
            ],
            [None if array is None else array[start:stop] for array in arrays],
            max(0, min(stop, self._count) - start),
            None if self._laid is None else self._laid.pick(slice(start, stop)),
        )

    def by_time(self) -> Columns:
        """Returns the same deliveries in order of time."""
        times = self.times
        if bool((times[1:] >= times[:-1]).all()):
            return self
        return self.pick(np.argsort(times, kind="stable"))

    def until(self, time: int) -> int:
        """Counts the deliveries with a time up to `time`; the columns must be in order of time."""
        return bisect_right(self.ts, time)

    def with_stream(self, stream: int, later: int = 0) -> Columns:
        """Returns the deliveries on another stream, at a later time."""
        streams = np.full(len(self), stream, np.int64)
        return Columns.of_arrays(streams, self.times + later, self.key_array, self.value_array)

    def pack(self) -> bytes:
        return _encode((self.streams, self.ts, self.keys, self.values))

    @classmethod
    def unpack(cls, packed: bytes) -> Columns:
        return cls(*_decode(packed))

    def split(self, to: NDArray[Any] | list[int], parts: int) -> list[Columns | None]:
        """Splits the deliveries into parts, given each delivery's part; None for an empty part."""
        if self.few and self.laid is None:
            return self._split_lists(to, parts)
        numbers = np.asarray(to, np.uint16)
        counts = np.bincount(numbers, minlength=parts).tolist()
        if self._count in counts:
            return [self if count else None for count in counts]
        ordered = self.pick(np.argsort(numbers, kind="stable"))
        split: list[Columns | None] = []
        start = 0
        for count in counts:
            split.append(ordered.slice(start, start + count) if count else None)
            start += count
        return split

    def _split_lists(self, to: NDArray[Any] | list[int], parts: int) -> list[Columns | None]:
        split: list[Columns | None] = [None] * parts
        rows = zip(self.streams, self.ts, self.keys, self.values, strict=True)
        numbers = to if isinstance(to, list) else to.tolist()
        for part, (stream, ts, key, value) in zip(numbers, rows, strict=True):
            columns = split[part]
            if columns is None:
                columns = split[part] = Columns([], [], [], [])
            streams, times, keys, values = columns._lists
            streams.append(stream)
            times.append(ts)
            keys.append(key)
            values.append(value)
            columns._count += 1
        return split

    def of(self, key: str) -> Columns:
        """Returns the deliveries of one key."""
        return self.pick([index for index, other in enumerate(self.keys) if other == key])

    def pick(self, indices: NDArray[Any] | Sequence[int]) -> Columns:
        """Returns the deliveries at these indices, in this order."""
        laid = self.laid
        if self.few and laid is None:
            lists = self.streams, self.ts, self.keys, self.values
            picked: list[Any] = [[column[index] for index in indices] for column in lists]
            return Columns(*picked)
        order = np.asarray(indices, np.int64)
        taken = integer_array(order)
        return Columns.of_arrays(
            self.stream_array[order],
            self.times[order],
            TakenItems(self.key_array, order),
            None if laid is not None and laid.form.whole else self.value_array.take(taken),
            None if laid is None else laid.pick(order),
        )

    def _list(self, column: int) -> list[Any]:
        if self._parts:
            self._join()
        held: list[Any] | None = self._lists[column]
        if held is None:
            held = self._lists[column] = self._array(column).tolist()
        return held

    def _array(self, column: int) -> Any:
        if self._parts:
            self._join()
        held = self._arrays[column]
        if isinstance(held, TakenItems):
            held = self._arrays[column] = held.copied()
        elif held is None:
            items = self._lists[column]
            if items is not None:
                held = _array_of(column, items)
            else:  # values that are not made yet
                assert self._laid is not None
                held = self._laid.values(self.times, self.key_array)
            self._arrays[column] = held
        return held

    def _shared(self) -> Columns:
        return Columns._of([*self._lists], [*self._arrays], self._count, self._laid)

    def _join(self) -> None:
        parts, self._parts = self._parts, []
        self._lists, self._arrays = [None] * len(_COLUMNS), [None] * len(_COLUMNS)
        self._laid = in_turn([part._laid for part in parts])
        for column in _COLUMNS:
            if column == _VALUES and self._laid is not None and self._laid.form.whole:
                continue
            if all(
                part._arrays[column] is None and part._lists[column] is not None for part in parts
            ):
                self._lists[column] = [item for part in parts for item in part._lists[column]]
            else:
                arrays = [part._array(column) for part in parts]
                joined = np.concatenate if column in (_STREAMS, _TS) else pa.concat_arrays
                self._arrays[column] = joined(arrays)


def _array_of(column: int, items: list[Any]) -> Any:
    if column == _KEYS:
        return text_array(items)
    return bytes_array(items) if column == _VALUES else np.array(items, np.int64)
