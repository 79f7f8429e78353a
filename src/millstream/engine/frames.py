"""The bytes of deliveries between the tasks of a batch: flat columns, read without a loop.

A column of integers is its least one and what each is greater than that, in as few bytes as the
greatest of these needs: none if all are the same, as streams mostly are, and one for the lengths of
short keys. The bytes pass through two processes of Python and a JVM, so fewer are faster.

Frames are read by the version that wrote them. What shards store is packed by `Columns.pack`.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from millstream.columnar.arrow_arrays import Integers, offsets_of, variable_array
from millstream.engine.columns import Columns
from millstream.engine.laid_values import LaidValues, ValueForm

_HEAD = struct.Struct("<QQI")
"""The number of deliveries, the bytes of their keys, and those of the form of laid values, which
follows."""
_COLUMN = struct.Struct("<qB")
"""The least item of a column, and the bytes of each item."""
_KINDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.int64}
_encode = msgspec.msgpack.Encoder().encode
_decode_form = msgspec.msgpack.Decoder(ValueForm).decode
Pieces = list[bytes | memoryview]


def frame_of(events: Columns) -> bytes:
    """Packs deliveries for another task."""
    parts = events.parts
    laid = [part.laid for part in parts]
    form = _form_of(laid)
    numbers: list[Integers] = [
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.stream_array for part in parts]),
    ]
    if form is not None:
        columns = zip(*(part.numbers for part in laid if part is not None), strict=True)
        numbers += map(np.concatenate, columns)
    key_lengths, keys = _flat([part.key_array for part in parts])
    numbers.append(key_lengths)
    values: Pieces = []
    if form is None or not form.whole:
        value_lengths, values = _flat([part.value_array for part in parts])
        numbers.append(value_lengths)
    packed = b"" if form is None else _encode(form)
    pieces: Pieces = [_HEAD.pack(len(events), sum(map(len, keys)), len(packed)), packed]
    for column in numbers:
        pieces += _narrowed(column)
    return b"".join((*pieces, *keys, *values))


def of_frame(frame: bytes) -> Columns:
    """Returns the deliveries of a frame; their keys and values refer to its bytes."""
    count, key_bytes, form_bytes = _HEAD.unpack_from(frame)
    at = _HEAD.size + form_bytes
    form = _decode_form(frame[_HEAD.size : at]) if form_bytes else None

    def numbers() -> Integers:
        nonlocal at
        least, width = _COLUMN.unpack_from(frame, at)
        at += _COLUMN.size
        if not width:
            return np.full(count, least, np.int64)
        column = np.frombuffer(frame, _KINDS[width], count, at).astype(np.int64)
        at += count * width
        column += least
        return column

    times, streams = numbers(), numbers()
    laid = None
    if form is not None:
        laid = LaidValues(form, tuple(numbers() for _ in form.numbers))
    key_lengths = numbers()
    value_lengths = numbers() if form is None or not form.whole else None
    data, values = pa.py_buffer(frame), None
    keys = variable_array(pa.large_string(), key_lengths, data.slice(at, key_bytes))
    if value_lengths is not None:
        values = variable_array(pa.large_binary(), value_lengths, data.slice(at + key_bytes))
    return Columns.of_arrays(streams, times, keys, values, laid)


def _narrowed(column: Integers) -> Pieces:
    """Returns the bytes of a column of integers."""
    if not len(column):
        return [_COLUMN.pack(0, 0)]
    least = int(column.min())
    span = int(column.max()) - least
    if not span:
        return [_COLUMN.pack(least, 0)]
    for width in (1, 2, 4):
        if span < 1 << 8 * width:
            return [_COLUMN.pack(least, width), (column - least).astype(_KINDS[width]).data]
    return [_COLUMN.pack(0, 8), np.ascontiguousarray(column).data]


def _flat(arrays: list[pa.Array]) -> tuple[Integers, Pieces]:
    """Returns the lengths of the items of binary arrays, and their bytes."""
    lengths: list[Integers] = [np.zeros(0, np.int64)]
    data: Pieces = []
    for array in arrays:
        if not len(array):
            continue
        offsets = offsets_of(array)
        lengths.append(np.diff(offsets))
        buffer = array.buffers()[2]
        if buffer is not None:
            data.append(memoryview(buffer)[offsets[0] : offsets[-1]])
    return np.concatenate(lengths), data


def _form_of(laid: list[LaidValues | None]) -> ValueForm | None:
    """Returns the form of values; None if they do not all have one."""
    forms = {None if part is None else part.form for part in laid}
    return forms.pop() if len(forms) == 1 else None
