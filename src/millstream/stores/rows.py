"""How a shard's rows lie in an ordered byte store whose keys are short: pure functions on bytes.

DESIGN
------
A row is `tag (u64) | length of the value (u32) | value | previous value | checksum (u32)`,
little-endian, where the tag is `batch << 3 | flags`. With the batch on top, one comparison of tags
tells whether a row is of a later batch, and with the previous value behind it, the value is one
slice. The checksum covers the stored key too (see `checks`), and is verified wherever a row is
read: Damaged is raised for one that does not fit.

A key is stored behind one byte, `\\x01` for rows and `\\x00` for the store's own, so that the empty
key can be stored and none can collide with ours. A key of more than 509 bytes is stored as its
first 478 bytes and the SHA-256 of the whole, 511 bytes in all; a stored key of 511 bytes is thus
always a long one. The whole key and its length (u32) follow the previous value. Stored keys keep
the order of keys except within the run of those that share their first 478 bytes; `in_order` sorts
such runs.

A function's *journal* in a shard is `(batch, keys gone, keys changed)`: the stored keys whose rows
its last batch made tombstones of, and those that it put. The first are purged by its next batch,
both are restored when the batch is tried again or rolled back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import NamedTuple
from zlib import crc32

from millstream.stores.checks import (
    CHECK,
    WHOLE,
    Damaged,
    Puts,
    Tally,
    check_all,
    sealed,
    sealed_all,
    unsealed,
)

OWN, ROW = b"\x00", b"\x01"
MAX_SHORT, TRUNCATED = 509, 478
RUN = len(ROW) + TRUNCATED
"""Stored keys at least this long may be out of order, among those that share this many bytes."""

HEADER = struct.Struct("<QI")
BODY = HEADER.size
HAS_VALUE, HAS_PREVIOUS, LONG = 1, 2, 4
SHIFT, FLAGS = 3, 7
LENGTH = struct.Struct("<I")
_TAIL = LENGTH.size + CHECK
JOURNAL = struct.Struct("<qI")


class Journal(NamedTuple):
    """What a function's last batch in a shard left behind, as stored keys."""

    batch: int
    gone: Sequence[bytes]
    changed: Sequence[bytes]


class Writes(NamedTuple):
    """What to do to the byte store."""

    puts: Puts
    deletes: list[bytes]
    replaced: list[bytes]
    """The rows that the puts overwrite."""
    tally: Tally
    """Of the puts."""


def stored_key(key: bytes, space: bytes = ROW) -> bytes:
    """The key under which `key` is stored."""
    if len(key) <= MAX_SHORT:
        return space + key
    return space + key[:TRUNCATED] + sha256(key).digest()


def stored_keys(keys: Sequence[bytes]) -> list[bytes]:
    """`stored_key` of many, without a call a key where all are short."""
    if keys and max(map(len, keys)) > MAX_SHORT:
        return [stored_key(key) for key in keys]
    return [ROW + key for key in keys]


def newest_tag(limit: int) -> int:
    """Rows with a higher tag are of a later batch than `limit`."""
    return limit << SHIFT | FLAGS


def values(keys: Sequence[bytes], rows: Sequence[bytes | None], limit: int) -> list[bytes | None]:
    """The values of `rows`, which lie under `keys` (stored), as of the end of batch `limit`."""
    check_all(keys, rows)
    newest = newest_tag(limit)
    unpack = HEADER.unpack_from
    found: list[bytes | None] = []
    add = found.append
    for row in rows:
        if row is None:
            add(None)
            continue
        tag, length = unpack(row)
        if tag > newest:
            add(previous(row))
        else:
            add(row[BODY : BODY + length] if tag & HAS_VALUE else None)
    return found


def value(key: bytes, row: bytes, limit: int) -> bytes | None:
    """The value of one row, which lies under `key` (stored)."""
    if crc32(key + row) != WHOLE:
        raise Damaged(key)
    tag, length = HEADER.unpack_from(row)
    if tag > newest_tag(limit):
        return previous(row)
    return row[BODY : BODY + length] if tag & HAS_VALUE else None


def previous(row: bytes) -> bytes | None:
    """The value of `row` before its batch."""
    tag, length = HEADER.unpack_from(row)
    if not tag & HAS_PREVIOUS:
        return None
    end = len(row) - _tail_length(row) if tag & LONG else -CHECK
    return row[BODY + length : end]


def tombstones(rows: Iterable[bytes]) -> int:
    """How many rows were deleted, and can still be restored."""
    return [row[0] & HAS_VALUE for row in rows].count(0)


def replace(
    batch: int,
    keys: Sequence[bytes],
    new: Iterable[bytes | None],
    rows: Sequence[bytes | None],
    long: dict[bytes, bytes],
) -> tuple[Writes, Journal]:
    """Give `keys` (stored) the values `new` as of `batch`; `rows` is what they have now.

    `long` has the whole key of every stored key that is a long one.
    """
    seeds = check_all(keys, rows)
    here = batch << SHIFT
    both, only, tombstone = here | HAS_VALUE | HAS_PREVIOUS, here | HAS_VALUE, here | HAS_PREVIOUS
    pack, unpack, join = HEADER.pack, HEADER.unpack_from, b"".join
    puts: Puts = []
    put = puts.append
    deletes: list[bytes] = []
    gone: list[bytes] = []
    replaced: list[bytes] = []
    for key, value, row in zip(keys, new, rows, strict=True):
        before = None
        if row is not None:
            tag, length = unpack(row)
            if tag >= here:
                before = previous(row)
            elif tag & HAS_VALUE:
                before = row[BODY : BODY + length]
        if value is not None:
            if before is None:
                put((key, pack(only, len(value)) + value))
            else:
                put((key, join((pack(both, len(value)), value, before))))
        elif before is not None:
            put((key, pack(tombstone, 0) + before))
            gone.append(key)
        else:
            if row is not None:
                deletes.append(key)
            continue
        if row is not None:
            replaced.append(row)
    if gone:
        absent = set(gone)
        changed = [key for key, _ in puts if key not in absent]
    else:
        changed = [key for key, _ in puts]
    if long:
        puts = [(key, _lengthen(row, long[key]) if key in long else row) for key, row in puts]
    whole, tally = sealed_all(puts, seeds if len(puts) == len(keys) else None)
    return Writes(whole, deletes, replaced, tally), Journal(batch, gone, changed)


def restore(batch: int, keys: Sequence[bytes], rows: Sequence[bytes | None]) -> Writes:
    """Take back what `batch` did to `keys` (stored); `rows` is what they have now.

    A restored row is given the batch before, whose true batch is no longer known: no view that is
    still allowed can tell the difference.
    """
    check_all(keys, rows)
    puts: Puts = []
    deletes: list[bytes] = []
    replaced: list[bytes] = []
    for key, row in zip(keys, rows, strict=True):
        if row is None:
            continue
        before = previous(row)
        if before is None:
            deletes.append(key)
            continue
        restored = HEADER.pack((batch - 1) << SHIFT | HAS_VALUE, len(before)) + before
        (tag,) = struct.unpack_from("<Q", row)
        puts.append((key, _lengthen(restored, _whole_key(row)) if tag & LONG else restored))
        replaced.append(row)
    whole, tally = sealed_all(puts)
    return Writes(whole, deletes, replaced, tally)


def in_order(
    items: Iterable[tuple[bytes, bytes]],
    limit: int,
    start: bytes,
    stop: bytes | None,
    reverse: bool,
) -> Iterator[tuple[bytes, bytes]]:
    """The true keys and values of stored `items`, in true order, as of the end of `limit`.

    `items` come in the (reversed) order of stored keys, bounded by `bounds(start, stop)`. Lazy, but
    for a run of keys that share their first 478 bytes, which is gathered and sorted.
    """
    newest = newest_tag(limit)
    unpack = HEADER.unpack_from
    run: list[tuple[bytes, bytes]] = []
    shared = b""
    for key, row in items:
        if crc32(key + row) != WHOLE:
            raise Damaged(key)
        tag, length = unpack(row)
        if tag > newest:
            value = previous(row)
        else:
            value = row[BODY : BODY + length] if tag & HAS_VALUE else None
        if value is None:
            continue
        if len(key) >= RUN:
            if key[:RUN] != shared:
                yield from _sorted_run(run, start, stop, reverse)
                run, shared = [], key[:RUN]
            run.append((_whole_key(row) if tag & LONG else key[1:], value))
            continue
        if run:
            yield from _sorted_run(run, start, stop, reverse)
            run, shared = [], b""
        yield key[1:], value
    yield from _sorted_run(run, start, stop, reverse)


def bounds(start: bytes, stop: bytes | None) -> tuple[bytes, bytes]:
    """Stored keys between which every row with `start <= key < stop` lies (the last excluded)."""
    if stop is None:
        return ROW + start[:TRUNCATED], b"\x02"
    if len(stop) <= TRUNCATED:  # nearly always
        return ROW + start[:TRUNCATED], ROW + stop
    # A stop inside a run: take the whole run, `in_order` cuts it. (`\x01` leads, so this ends.)
    run = (ROW + stop[:TRUNCATED]).rstrip(b"\xff")
    return ROW + start[:TRUNCATED], run[:-1] + bytes([run[-1] + 1])


def pack_journal(key: bytes, journal: Journal) -> bytes:
    """A journal as one blob, the keys gone first: they alone are needed by the next batch.

    `key` is the one that it is stored under, which its checksum covers too.
    """
    gone = _pack_keys(journal.gone)
    packed = JOURNAL.pack(journal.batch, len(gone)) + gone + _pack_keys(journal.changed)
    return sealed(key, packed)


def unpack_journal(key: bytes, blob: bytes) -> bytes:
    """A packed journal, for the functions below, without its checksum; Damaged if that is wrong."""
    return unsealed(key, blob)


def journal_batch(blob: bytes) -> int:
    """The batch of a packed journal."""
    return int(JOURNAL.unpack_from(blob)[0])


def journal_gone(blob: bytes) -> list[bytes]:
    """The keys gone of a packed journal."""
    return _unpack_keys(blob, JOURNAL.size)


def journal_keys(blob: bytes) -> list[bytes]:
    """All keys of a packed journal, in order."""
    changed = _unpack_keys(blob, JOURNAL.size + JOURNAL.unpack_from(blob)[1])
    return sorted(journal_gone(blob) + changed)


def _pack_keys(keys: Sequence[bytes]) -> bytes:
    return struct.pack(f"<I{len(keys)}H", len(keys), *map(len, keys)) + b"".join(keys)


def _unpack_keys(blob: bytes, at: int) -> list[bytes]:
    (count,) = LENGTH.unpack_from(blob, at)
    at += LENGTH.size
    lengths = struct.unpack_from(f"<{count}H", blob, at)
    ends = accumulate(lengths, initial=at + 2 * count)
    return [blob[begin:end] for begin, end in pairwise(ends)]


def _sorted_run(
    run: list[tuple[bytes, bytes]], start: bytes, stop: bytes | None, reverse: bool
) -> Iterator[tuple[bytes, bytes]]:
    run.sort(reverse=reverse)
    return (item for item in run if start <= item[0] and (stop is None or item[0] < stop))


def _lengthen(row: bytes, key: bytes) -> bytes:
    """A row that is not sealed yet, with its whole key."""
    tag, length = HEADER.unpack_from(row)
    return b"".join((HEADER.pack(tag | LONG, length), row[BODY:], key, LENGTH.pack(len(key))))


def _tail_length(row: bytes) -> int:
    """Bytes of the whole key, its length and the checksum, which end the row of a long key."""
    return int(LENGTH.unpack_from(row, len(row) - _TAIL)[0]) + _TAIL


def _whole_key(row: bytes) -> bytes:
    return row[len(row) - _tail_length(row) : -_TAIL]
