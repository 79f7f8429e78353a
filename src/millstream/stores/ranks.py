"""The rows that order the slates of an update with limited room (see `engine.cells.room`).

    P function 0 i priority last key    the order, the least important first; holds the slate's size
    P function 0 r key                  the slate's rank: priority, last update and size
    P function 0 t                      the totals: the order's mark, slates, bytes

The rank identifies the slate's row in the order, so that its former priority need not be computed
again. The totals show when there is no room. All three are derived from the slates, and are
committed with them.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

_SIGN: Final = 1 << 63
_MOST: Final = (1 << 64) - 1
_WHOLE: Final = struct.Struct(">Q")
_NUMBER: Final = struct.Struct(">d")
_RANK: Final = struct.Struct(">8sqQQ")
_TOTALS: Final = struct.Struct(">8sQQ")


def room_of(function: str) -> bytes:
    """The prefix of all rows that order a function's slates."""
    return b"P" + function.encode() + b"\x00"


def order_of(function: str) -> bytes:
    """The prefix of the order; the bytes of priority, last update and key follow."""
    return room_of(function) + b"i"


def ranks_of(function: str) -> bytes:
    """The prefix of the ranks; the key's own bytes follow."""
    return room_of(function) + b"r"


def totals_row(function: str) -> bytes:
    return room_of(function) + b"t"


def sortable(number: float) -> bytes:
    """Encodes a number so that the bytes sort as the numbers do.

    >>> sorted([3.5, -1.0, float("-inf"), 0.0, -2.5], key=sortable)
    [-inf, -2.5, -1.0, 0.0, 3.5]
    """
    bits = int(_WHOLE.unpack(_NUMBER.pack(number + 0.0))[0])  # -0.0 is 0.0
    return _WHOLE.pack(bits ^ _MOST if bits & _SIGN else bits | _SIGN)


class Rank(NamedTuple):
    """A slate's position in the order, and its size."""

    priority: bytes
    """As `sortable` encodes it."""
    last: int
    """The greatest ts that updated it."""
    slate: int
    """Bytes of its row, the key included."""
    entries: int = 0
    """Bytes of its entries' rows, if it is a table."""

    @property
    def size(self) -> int:
        return self.slate + self.entries

    def pack(self) -> bytes:
        return _RANK.pack(*self)

    @classmethod
    def unpack(cls, row: bytes) -> Rank:
        return cls(*_RANK.unpack(row))

    def place(self, prefix: bytes, key: bytes) -> bytes:
        """The row of the order, under the prefix of `order_of`."""
        return prefix + self.priority + _WHOLE.pack(self.last + _SIGN) + key


def place_key(prefix: bytes, row: bytes) -> bytes:
    """The key of a row of the order."""
    return row[len(prefix) + 16 :]


def pack_size(size: int) -> bytes:
    """The value of a row of the order."""
    return _WHOLE.pack(size)


def unpack_size(value: bytes) -> int:
    return int(_WHOLE.unpack(value)[0])


class Totals(NamedTuple):
    """The number of slates in the order, and their bytes."""

    mark: bytes
    """Eight bytes that identify what the order was made by."""
    slates: int = 0
    size: int = 0

    def pack(self) -> bytes:
        return _TOTALS.pack(*self)

    @classmethod
    def unpack(cls, row: bytes) -> Totals:
        return cls(*_TOTALS.unpack(row))


def slate_size(prefix: bytes, key: bytes, row: bytes) -> int:
    """The bytes of a slate's row, without its entries; `prefix` as from `slates_of`."""
    return len(prefix) + len(key) + len(row)
