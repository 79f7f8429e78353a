"""Reads and packs the rows of many slates together, which takes less than one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.columnar.arrow_arrays import Integers, bytes_array, offsets_of, variable_array
from millstream.stores.layout import COMPRESS_FROM, PLAIN, SLATE_HEAD

_KIND, _LAST = "kind", "last"
_HEAD = np.dtype([(_KIND, "u1"), (_LAST, ">i8")])


def unpack_plain(rows: Sequence[bytes]) -> tuple[Integers, list[bytes]] | None:
    """Returns the times of the last updates and the data of slates; None if a row has more than
    these."""
    heads = np.frombuffer(b"".join([row[:SLATE_HEAD] for row in rows]), _HEAD)
    if not bool((heads[_KIND] == PLAIN).all()):
        return None
    return heads[_LAST].astype(np.int64), [row[SLATE_HEAD:] for row in rows]


def pack_plain(last: Integers, data: pa.Array) -> list[bytes] | None:
    """Packs slates of version 1 without timers, given their data as large_binary; None if one is so
    large that it is compressed."""
    if np.diff(offsets_of(data)).max(initial=0) >= COMPRESS_FROM:
        return None
    heads = np.empty(len(last), _HEAD)
    heads[_KIND], heads[_LAST] = PLAIN, last
    lengths = np.full(len(last), SLATE_HEAD)
    packed = variable_array(pa.large_binary(), lengths, heads.tobytes())
    between = bytes_array([b""])[0]
    rows: list[bytes] = pc.binary_join_element_wise(packed, data, between).to_pylist()
    return rows
