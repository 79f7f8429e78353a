"""The keys of a shard's rows, and the format of a slate's row.

A shard holds seven kinds of rows, each kind a key range of each function:

    S function 0 key                    a slate: last update, timers, data
    E function 0 key' 0 0 entry         one entry of a table slate (key' = key with 0 as 0 ff)
    T function 0 clock time key         the index of timers: the keys that have one, by time
    W function 0 time batch number      a chunk of events that wait for the horizon
    O function 0 batch number           a chunk of feedback events for the next batch
    Q function 0                        the lanes of events that were too many for a batch
    Q function 0 lane' 0 0 batch number a chunk of such a lane (lane' = lane with 0 as 0 ff)
    P function 0 i priority last key    the order of slates, the least important first: its bytes
    P function 0 r key                  a slate's rank: its position in that order, and its bytes
    P function 0 t                      the number of slates in the order, and their bytes

Function names hold no zero byte, so ranges of two functions never overlap. Times are encoded so
that their bytes sort as the times do. A slate's row starts with a format byte, so that the format
can change: format 1 is a slate of version 1; format 2 has the slate's version after the time of the
last update. The order of slates exists only for updates with limited room: see `ranks`.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, NamedTuple

import msgspec

from millstream.errors import StoreError
from millstream.model.event import Clock

_SIGN: Final = 1 << 63
_MOST: Final = (1 << 64) - 1
_TIME: Final = struct.Struct(">Q")
_CHUNK: Final = struct.Struct(">QI")
_HEAD: Final = struct.Struct(">Bq")
_LENGTH: Final = struct.Struct(">I")
_VERSION: Final = struct.Struct(">H")
PLAIN, VERSIONED, COMPRESSED, WITH_TIMERS = 0x10, 0x20, 0x01, 0x02
COMPRESS_FROM: Final = 2_048
CLOCKS: Final[dict[Clock, bytes]] = {"event": b"e", "wall": b"w"}
Timers = dict[str, tuple[Clock, int]]
SLATE_HEAD: Final = _HEAD.size
slate_head: Final = _HEAD.unpack_from
"""(kind, last update) of a slate's row; of kind PLAIN, all that follows is its data."""


def _sortable(ts: int) -> bytes:
    # Clamped: a limit of a range may lie outside the times that can be stored.
    return _TIME.pack(min(max(ts + _SIGN, 0), _MOST))


def slates_of(function: str) -> bytes:
    """The prefix of a function's slates; the key's own bytes follow."""
    return b"S" + function.encode() + b"\x00"


def table_of(function: str, key: str) -> bytes:
    """The prefix of the entries of one table; the entry's own bytes follow."""
    escaped = key.encode().replace(b"\x00", b"\x00\xff")
    return b"E" + function.encode() + b"\x00" + escaped + b"\x00\x00"


def timers_of(function: str, clock: Clock) -> bytes:
    return b"T" + function.encode() + b"\x00" + CLOCKS[clock]


def timer_row(prefix: bytes, at: int, key: str) -> bytes:
    return prefix + _sortable(at) + key.encode()


def timer_parts(prefix: bytes, row: bytes) -> tuple[int, str]:
    """(time, key) of a row of the timer index."""
    start = len(prefix)
    return _TIME.unpack_from(row, start)[0] - _SIGN, row[start + 8 :].decode()


def timers_until(prefix: bytes, at: int) -> bytes:
    """The end of the index rows with a time up to `at`."""
    return prefix + _sortable(at + 1)


def waiting_of(function: str) -> bytes:
    return b"W" + function.encode() + b"\x00"


def waiting_row(prefix: bytes, least: int, batch: int, number: int) -> bytes:
    return prefix + _sortable(least) + _CHUNK.pack(batch, number)


def waiting_chunk(prefix: bytes, row: bytes) -> tuple[int, int]:
    """The batch that brought the events of a chunk, and the chunk's number in it."""
    batch, number = _CHUNK.unpack_from(row, len(prefix) + _TIME.size)
    return batch, number


def waiting_least(prefix: bytes, row: bytes) -> int:
    """The least time in a chunk of waiting events, from its key alone."""
    return int(_TIME.unpack_from(row, len(prefix))[0]) - _SIGN


def outbox_of(function: str) -> bytes:
    return b"O" + function.encode() + b"\x00"


def outbox_row(prefix: bytes, batch: int, number: int) -> bytes:
    return prefix + _CHUNK.pack(batch, number)


def queue_directory(function: str) -> bytes:
    """The row that lists the lanes of a function's queue and their lengths."""
    return b"Q" + function.encode() + b"\x00"


def queue_lane(function: str, lane: str) -> bytes:
    """The prefix of the chunks of one lane."""
    return queue_directory(function) + lane.encode().replace(b"\x00", b"\x00\xff") + b"\x00\x00"


def queue_row(prefix: bytes, batch: int, number: int) -> bytes:
    return prefix + _CHUNK.pack(batch, number)


class SlateRow(NamedTuple):
    """A slate as it is stored. `data` is its JSON (empty for a table)."""

    last: int
    """The greatest ts that updated it."""
    data: bytes
    timers: Timers
    version: int = 1


def pack_slate(last: int, data: bytes, timers: Timers, version: int = 1) -> bytes:
    """The bytes of a slate's row."""
    if len(data) < COMPRESS_FROM and not timers and version == 1:  # nearly always
        return _HEAD.pack(PLAIN, last) + data
    kind = PLAIN if version == 1 else VERSIONED
    if len(data) >= COMPRESS_FROM:
        kind |= COMPRESSED
        data = zlib.compress(data, 1)
    if timers:
        kind |= WITH_TIMERS
        listed = msgspec.json.encode([[n, c, at] for n, (c, at) in sorted(timers.items())])
        data = _LENGTH.pack(len(listed)) + listed + data
    head = _HEAD.pack(kind, last)
    return head + data if version == 1 else head + _VERSION.pack(version) + data


_KINDS: Final = {
    b"S": "slate of",
    b"E": "entry of a table of",
    b"T": "timer of",
    b"W": "waiting events of",
    b"O": "feedback events of",
    b"Q": "events too many for a batch of",
    b"P": "rank of",
}


def named(stored: bytes) -> str:
    """Describes a stored key in words: the kind of row, its function and its key.

    >>> named(b"\\x01Scount\\x00Walmart")
    "the slate of 'count', key 'Walmart',"
    >>> named(b"\\x00h"), named(b"\\x00jcount")
    ("the shard's head", "the journal of 'count'")
    """
    space, kind, rest = stored[:1], stored[1:2], stored[2:]
    if space == b"\x00":
        function = rest.decode(errors="replace")
        own = {
            b"h": "the shard's head",
            b"f": "the note of the last flush",
            b"r": "the note of the recent rows",
        }
        return own.get(kind, f"the journal of {function!r}")
    if space not in (b"\x01", b"\x02") or kind not in _KINDS:
        return f"a row with the key {stored[1:]!r}"
    owner, _, key = rest.partition(b"\x00")
    name = owner.decode(errors="replace")
    if kind in b"WOQ":
        return f"a chunk of {_KINDS[kind]} {name!r}"
    if kind == b"P" and key == b"t":
        return f"the totals of the slates of {name!r}"
    before = 9 if kind == b"T" else 0 if kind != b"P" else 1 if key[:1] == b"r" else 17
    text = key[before:].decode(errors="replace")
    return f"the {_KINDS[kind]} {name!r}, key {text!r},"


def unpack_slate(row: bytes) -> SlateRow:
    """Parses a slate's row; StoreError if this version cannot read its format."""
    kind, last = _HEAD.unpack_from(row)
    if kind == PLAIN:
        return SlateRow(last, row[SLATE_HEAD:], {})
    start, timers, version = SLATE_HEAD, {}, 1
    if kind & 0xF0 == VERSIONED:
        (version,) = _VERSION.unpack_from(row, start)
        start += _VERSION.size
    elif kind & 0xF0 != PLAIN:
        raise StoreError(
            f"a slate is stored in format {kind >> 4}; this version of Millstream reads formats 1 "
            "and 2: upgrade Millstream, or restore the store from a copy"
        )
    if kind & WITH_TIMERS:
        (length,) = _LENGTH.unpack_from(row, start)
        start += 4
        timers = {n: (c, at) for n, c, at in msgspec.json.decode(row[start : start + length])}
        start += length
    data = row[start:]
    return SlateRow(last, zlib.decompress(data) if kind & COMPRESSED else data, timers, version)
