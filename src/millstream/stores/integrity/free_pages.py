"""Checks a shard's list of free pages.

LMDB writes new rows into pages of that list. The list has no checksum, and reading rows never looks
at it. So a flipped byte in it would show only after a page in use was overwritten. This module
gathers the pages in use from the file itself: every page except the first two must be either free
or in use, exactly once.

The layout is that of LMDB 0.9: a page has a head of 16 bytes (its flags at byte 10, the start of
its free space at byte 12), then the offsets of its nodes; a node is four 16-bit numbers, key and
data.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from struct import Struct, unpack_from

from millstream.stores.environment import Transaction

_HEAD, _NODE, _NUMBER = Struct("<HH"), Struct("<HHHH"), Struct("<Q")
_BRANCH, _LEAF, _BIG = 1, 2, 1
_NO_PAGE = (1 << 64) - 1
_FREE_ROOT, _MAIN_ROOT, _LAST, _ID = 80, 128, 136, 144
"""Offsets in a meta page: the roots of the two trees, the last page and the commit's number."""


def free_pages_fault(path: str, txn: Transaction, page_bytes: int) -> str:
    """Describes what is wrong with the list, as of a read transaction; empty if nothing is.

    Also empty if a commit has followed meanwhile: LMDB does not keep an old list for readers.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        big = bool(txn.stat()["overflow_pages"])
        meta = max(0, page_bytes, key=lambda at: _number(data, at))
        try:
            fault = _fault(data, meta, page_bytes, big)
        except (IndexError, ValueError, struct.error):
            fault = "its list of free pages, or a page above its rows, cannot be read"
        # Checked last: until the next commit is done, none of these pages is overwritten.
        is_last = max(_number(data, 0), _number(data, page_bytes)) == txn.id()
        return fault if is_last else ""


def _number(data: mmap.mmap, meta: int) -> int:
    number: int = _NUMBER.unpack_from(data, meta + _ID)[0]
    return number


def _fault(data: mmap.mmap, meta: int, page_bytes: int, big: bool) -> str:
    """Describes what is wrong; `big`: some rows are so large that they have their own pages."""
    used: list[int] = []
    free: list[int] = []
    file = _File(data, page_bytes, used)
    for _ in file.values(_NUMBER.unpack_from(data, meta + _MAIN_ROOT)[0], big):
        pass  # only the pages matter
    for value in file.values(_NUMBER.unpack_from(data, meta + _FREE_ROOT)[0], True):
        free += unpack_from(f"<{_NUMBER.unpack_from(value)[0]}Q", value, 8)
    both = len(used) + len(free) - len({*used, *free})
    if both:
        return f"{both} of its pages are free and in use, or free twice: a page is damaged"
    last = _NUMBER.unpack_from(data, meta + _LAST)[0]
    if len(used) + len(free) + 2 != last + 1 or not all(2 <= page <= last for page in free):
        return "some of its pages are neither free nor in use, or not its own: a page is damaged"
    return ""


class _File:
    """The pages of a file; every page that is visited is added to `used`."""

    def __init__(self, data: mmap.mmap, page_bytes: int, used: list[int]) -> None:
        self._data = data
        self._page_bytes = page_bytes
        self._used = used

    def values(self, root: int, leaves: bool) -> Iterator[bytes]:
        """The values of a tree; without `leaves`, only collects its pages, which is faster."""
        if root == _NO_PAGE:
            return
        ahead = [root]
        while ahead:
            page = ahead.pop()
            self._used.append(page)
            if len(self._used) * self._page_bytes > len(self._data):
                raise ValueError("a page is there twice")
            at = page * self._page_bytes
            flags, room = _HEAD.unpack_from(self._data, at + 10)
            if not flags & (_BRANCH | _LEAF):
                raise ValueError(f"page {page} is of no tree")
            if flags & _LEAF and not leaves:
                continue
            for place in unpack_from(f"<{(room - 16) // 2}H", self._data, at + 16):
                low, high, more, key = _NODE.unpack_from(self._data, at + place)
                if flags & _BRANCH:
                    ahead.append(low | high << 16 | more << 32)
                else:
                    yield self._value(at + place + 8 + key, low | high << 16, bool(more & _BIG))

    def _value(self, at: int, size: int, big: bool) -> bytes:
        if not big:
            return self._data[at : at + size]
        first = _NUMBER.unpack_from(self._data, at)[0]
        # A value that replaced a longer one may have more pages than it needs.
        (count,) = unpack_from("<I", self._data, first * self._page_bytes + 12)
        if count * self._page_bytes > len(self._data):
            raise ValueError(f"page {first} is of no value")
        self._used.extend(range(first, first + count))
        start = first * self._page_bytes + 16
        return self._data[start : start + size]
