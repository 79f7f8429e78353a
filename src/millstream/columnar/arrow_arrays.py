"""Converts between lists, NumPy arrays and Arrow arrays, without pandas.

Arrow's own `pa.array`, `pa.scalar`, `to_numpy` and `group_by` import pandas, if it is installed, to
ask whether they were given something of it. That is 30 MiB in every worker, and time at its first
batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Integers = NDArray[np.int64]
_NUMPY = {pa.int32(): np.int32, pa.int64(): np.int64, pa.uint64(): np.uint64}


def integer_array(numbers: Integers) -> pa.Array:
    """Returns numbers as an Arrow array, without copying them."""
    data = np.ascontiguousarray(numbers, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(data), [None, pa.py_buffer(data)])


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """Returns an Arrow array of integers, none of them null, as NumPy's, without copying them."""
    kind = np.dtype(_NUMPY[array.type])
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize)


def text_array(texts: Sequence[str]) -> pa.Array:
    """Returns texts as an array of large_string."""
    joined = "".join(texts)
    if joined.isascii():
        return variable_array(pa.large_string(), _lengths(texts), joined.encode())
    encoded = [text.encode() for text in texts]
    return variable_array(pa.large_string(), _lengths(encoded), b"".join(encoded))


def bytes_array(items: Sequence[bytes]) -> pa.Array:
    """Returns items as an array of large_binary."""
    return variable_array(pa.large_binary(), _lengths(items), b"".join(items))


def variable_array(kind: pa.DataType, lengths: NDArray[Any], data: pa.Buffer | bytes) -> pa.Array:
    """Returns the array of items of these lengths, one after the other in `data`."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(lengths), buffers)


def offsets_of(array: pa.Array) -> Integers:
    """Returns where the items of an array of large_string or large_binary begin and end."""
    return np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)


def _lengths(items: Sequence[str] | Sequence[bytes]) -> Integers:
    return np.fromiter(map(len, items), np.int64, len(items))
