"""Computes the shards of a column of keys: `codec.shards_of`, many keys at a time.

The hash of a key is a crc32. NumPy computes it for all keys at once, a byte of each at a time; this
is faster than a call for each key as long as keys are short.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.codec import shards_of
from millstream.columnar.arrow_arrays import offsets_of

LONGEST = 16
"""Keys of more bytes are hashed one by one."""
FEW = 32
_ONES = np.uint32(0xFFFFFFFF)


def key_shards(function: str, keys: pa.Array, shards: int) -> NDArray[Any]:
    """Returns the shards of a function's keys, an array of large_string."""
    offsets = offsets_of(keys)
    lengths = np.diff(offsets)
    if len(keys) < FEW or lengths.max() > LONGEST:
        return np.array(shards_of(function, keys.to_pylist(), shards), np.uint16)
    table, data = _table(), np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    start = np.uint32(crc32(function.encode() + b"\x00")) ^ _ONES
    crcs = np.full(len(keys), start, np.uint32)
    at, least = offsets[:-1], int(lengths.min())
    for place in range(int(lengths.max())):
        if place < least:
            crcs = table[(crcs ^ data[at + place]) & 0xFF] ^ (crcs >> 8)
        else:
            longer = np.flatnonzero(lengths > place)
            held = crcs[longer]
            crcs[longer] = table[(held ^ data[at[longer] + place]) & 0xFF] ^ (held >> 8)
    return ((crcs ^ _ONES) % np.uint32(shards)).astype(np.uint16)


@cache
def _table() -> NDArray[np.uint32]:
    """Returns what a crc32 adds for each byte (ISO 3309)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, np.uint32(0xEDB88320) ^ (table >> 1), table >> 1)
    return table.astype(np.uint32)
