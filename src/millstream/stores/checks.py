"""Checksums of a shard's rows: LMDB has none, so a flipped byte would go unnoticed.

DESIGN
------
*A row* ends with the crc32 of its stored key and of all its bytes before. A crc over data that
includes its own crc is always the same number. So a check is one call and one comparison, with no
slicing, and the checks of many rows never leave C.

*A shard* keeps in its head the number of its rows and journals, and the sum of their checksums.
This finds a lost part of the tree, or an old page in the place of a new one, even though every
remaining row is intact. It is a sum and not an exclusive or, because crc32 is linear: equal changes
of an even number of rows would cancel out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from operator import add
from struct import Struct, unpack
from typing import NamedTuple
from zlib import crc32

CHECK = 4
"""Bytes of a checksum; it comes last."""
WHOLE = 0x2144DF1C
"""The crc32 of any data that is followed by its own crc32."""
_MOD = (1 << 64) - 1
_pack = Struct("<I").pack


class Damaged(ValueError):
    """The data under a stored key does not match its checksum."""

    def __init__(self, key: bytes) -> None:
        super().__init__(f"checksum of {key!r}")
        self.key = key


class RowTally(NamedTuple):
    """The number of rows, and the sum of their checksums."""

    count: int = 0  # type: ignore[assignment]  # hides tuple.count
    digest: int = 0

    def changed(self, put: RowTally, gone: Sequence[bytes]) -> RowTally:
        """The tally after some rows were put and others were deleted.

        `put` is without the rows that those replaced.
        """
        digest = self.digest + put.digest - digest_of(gone)
        return RowTally(self.count + put.count - len(gone), digest & _MOD)


NONE = RowTally()


def digest_of(rows: Sequence[bytes]) -> int:
    """The sum of the rows' checksums."""
    return sum(unpack(f"<{len(rows)}I", b"".join([row[-CHECK:] for row in rows])))


def sealed(key: bytes, body: bytes) -> bytes:
    """Appends the checksum to a row.

    >>> row = sealed(b"key", b"value")
    >>> crc32(b"key" + row) == WHOLE
    True
    """
    return body + _pack(crc32(body, crc32(key)))


Puts = list[tuple[bytes, bytes]]


def sealed_all(
    keys: Sequence[bytes], bodies: Sequence[bytes], seeds: Iterable[int]
) -> tuple[Puts, RowTally]:
    """Appends its checksum to each row; returns the rows, with their keys, and their tally.

    `seeds` are the keys' own checksums.
    """
    sums = list(map(crc32, bodies, seeds))
    whole = map(add, bodies, map(_pack, sums))
    return list(zip(keys, whole, strict=True)), RowTally(len(sums), sum(sums))


def check(key: bytes, row: bytes) -> None:
    """Raise Damaged unless the row matches its checksum."""
    if crc32(row, crc32(key)) != WHOLE:  # without a copy: a journal may be large
        raise Damaged(key)


def check_all(keys: Sequence[bytes], rows: Sequence[bytes | None]) -> list[int]:
    """Raise Damaged for the first row that does not match its checksum; None means no row.

    Returns the keys' own checksums, the seeds.
    """
    seeds = list(map(crc32, keys))
    distinct = set(map(crc32, filter(None, rows), compress(seeds, rows)))
    if distinct - {WHOLE} or b"" in rows:
        for key, row in zip(keys, rows, strict=True):
            if row is not None:
                check(key, row)
    return seeds


def unsealed(key: bytes, row: bytes) -> bytes:
    """Strips the checksum of a row; Damaged if the row does not match it."""
    check(key, row)
    return row[:-CHECK]
