"""Checksums of what a shard stores: LMDB has none, so a flipped byte would be silently wrong.

DESIGN
------
*A row* ends with the crc32 of its stored key and of all its bytes before. A crc that covers its own
bytes is always the same number, so a check is one call and one comparison, with nothing cut out,
and the checks of many rows never leave C.

*A shard* keeps in its head how many rows and journals it has, and the sum of their checksums: so a
part of the tree that was lost, or an old page in the place of a new one, is found though every row
that is left is whole. A sum, and not the exclusive or: crc32 is linear, so that equal changes of an
even number of rows would cancel out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from struct import Struct, unpack
from typing import NamedTuple
from zlib import crc32

CHECK = 4
"""Bytes of a checksum, the last ones of whatever has it."""
WHOLE = 0x2144DF1C
"""The crc32 of anything that is followed by its own crc32."""
_MOD = (1 << 64) - 1
_pack = Struct("<I").pack


class Damaged(ValueError):
    """What lies under a stored key does not fit its checksum."""

    def __init__(self, key: bytes) -> None:
        super().__init__(f"checksum of {key!r}")
        self.key = key


class Tally(NamedTuple):
    """How many rows there are, and the sum of their checksums."""

    count: int = 0  # type: ignore[assignment]  # hides tuple.count
    digest: int = 0

    def changed(self, put: Tally, gone: Sequence[bytes]) -> Tally:
        """The tally after rows were put and others, replaced or deleted, have gone."""
        digest = self.digest + put.digest - digest_of(gone)
        return Tally(self.count + put.count - len(gone), digest & _MOD)


NONE = Tally()


def digest_of(rows: Sequence[bytes]) -> int:
    """The sum of the rows' checksums."""
    return sum(unpack(f"<{len(rows)}I", b"".join([row[-CHECK:] for row in rows])))


def sealed(key: bytes, body: bytes) -> bytes:
    """The row with its checksum.

    >>> row = sealed(b"key", b"value")
    >>> crc32(b"key" + row) == WHOLE
    True
    """
    return body + _pack(crc32(body, crc32(key)))


Puts = list[tuple[bytes, bytes]]


def sealed_all(puts: Puts, seeds: Sequence[int] | None = None) -> tuple[Puts, Tally]:
    """Rows under their keys, each with its checksum, and their tally.

    `seeds` are the keys' own checksums, where they are known.
    """
    if seeds is None:
        seeds = [crc32(key) for key, _ in puts]
    found, pack = [crc32(body, seed) for (_, body), seed in zip(puts, seeds, strict=True)], _pack
    whole = [(key, body + pack(one)) for (key, body), one in zip(puts, found, strict=True)]
    return whole, Tally(len(found), sum(found))


def check(key: bytes, row: bytes) -> None:
    """Raise Damaged unless the row is whole."""
    if crc32(key + row) != WHOLE:
        raise Damaged(key)


def check_all(keys: Sequence[bytes], rows: Sequence[bytes | None]) -> list[int]:
    """Raise Damaged for the first row that is not whole; None is no row. Gives the keys' seeds."""
    seeds = list(map(crc32, keys))
    found = set(map(crc32, filter(None, rows), compress(seeds, rows)))
    if found - {WHOLE} or b"" in rows:
        for key, row in zip(keys, rows, strict=True):
            if row is not None:
                check(key, row)
    return seeds


def unsealed(key: bytes, row: bytes) -> bytes:
    """What was sealed; Damaged if it is not whole."""
    check(key, row)
    return row[:-CHECK]
