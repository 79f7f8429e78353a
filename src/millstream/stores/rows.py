"""The layout of a shard's rows in an ordered byte store with short keys: pure functions on bytes.

DESIGN
------
A row is `tag (u64) | length of the value (u32) | value | previous value | checksum (u32)`,
little-endian, where the tag is `batch << 3 | flags`. The batch is in the high bits, so one
comparison of tags tells whether a row is of a later batch. The previous value comes after the
value, so the value is one slice. The checksum covers the stored key too (see `checks`), and is
verified wherever a row is read: a row that does not match raises Damaged.

A key is stored with a prefix of one byte, `\\x01` for rows, `\\x02` for recent rows (see
`recent_rows`) and `\\x00` for the store's own keys, so that the empty key can be stored and no key
collides with the store's own. A key of more than 509 bytes is stored as its first 478 bytes and the
SHA-256 of the whole, 511 bytes in all; a stored key of 511 bytes is thus always a long one. The
whole key and its length (u32) follow the previous value. Stored keys sort as the keys do, except
within a run of keys that share their first 478 bytes; `in_order` sorts such runs.

A function's *journal* in a shard is `(batch, keys gone, keys changed)`: the stored keys whose rows
its last batch turned into tombstones, and those that it put. The function's next batch purges the
tombstones; a retry or a roll-back of the batch restores both.
"""

from __future__ import annotations

import struct
from array import array
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
    RowTally,
    check,
    check_all,
    digest_of,
    sealed,
    sealed_all,
)

OWN, ROW, RECENT = b"\x00", b"\x01", b"\x02"
MAX_SHORT, TRUNCATED = 509, 478
RUN = len(ROW) + TRUNCATED
"""Stored keys at least this long may be out of order among those that share their first RUN bytes.
"""

HEADER = struct.Struct("<QI")
BODY = HEADER.size
HAS_VALUE, HAS_PREVIOUS, LONG = 1, 2, 4
SHIFT, FLAGS = 3, 7
LENGTH = struct.Struct("<I")
_TAIL = LENGTH.size + CHECK
JOURNAL = struct.Struct("<qI")


class Journal(NamedTuple):
    """The stored keys that a function's last batch in a shard has changed."""

    batch: int
    gone: Sequence[bytes]
    changed: Sequence[bytes]


class Writes(NamedTuple):
    """The writes that a change needs in the byte store."""

    puts: Puts
    deletes: list[bytes]
    tally: RowTally
    """The tally of the puts, without the rows that they overwrite."""


class Current(NamedTuple):
    """Rows as they are before a commit changes them, and what was computed when they were read."""

    seeds: Sequence[int]
    """The keys' own checksums."""
    values: Sequence[bytes | None]
    """The values as of the batch before the commit."""
    ends: Sequence[int]
    """The checksum at the end of each row; ABSENT where there is none."""
    at: Sequence[bytes] | None = None
    """The stored key that each row is under, if some may be recent (`recent_rows`)."""
    batches: Sequence[int] = ()
    """With `at`: the batch that wrote each row; ABSENT where there is none."""


ABSENT = -1


def stored_key(key: bytes, space: bytes = ROW) -> bytes:
    """The key under which `key` is stored."""
    if len(key) <= MAX_SHORT:
        return space + key
    return space + key[:TRUNCATED] + sha256(key).digest()


def stored_keys(keys: Sequence[bytes]) -> list[bytes]:
    """`stored_key` of many; faster than a call for each key if all are short."""
    if keys and max(map(len, keys)) > MAX_SHORT:
        return [stored_key(key) for key in keys]
    return [ROW + key for key in keys]


def newest_tag(limit: int) -> int:
    """The highest tag of batch `limit`: a row with a higher tag is of a later batch."""
    return limit << SHIFT | FLAGS


def values(keys: Sequence[bytes], rows: Sequence[bytes | None], limit: int) -> list[bytes | None]:
    """The values of `rows`, stored under `keys`, as of the end of batch `limit`."""
    check_all(keys, rows)
    return _values(rows, limit)


def examined(keys: Sequence[bytes], rows: Sequence[bytes | None], limit: int) -> Current:
    """Checks rows, and returns what a commit of the batch after `limit` must know of them."""
    seeds = array("I", check_all(keys, rows))
    if all(rows):
        packed = b"".join([row[-CHECK:] for row in rows if row])
        ends = array("q", struct.unpack(f"<{len(rows)}I", packed))
    else:
        unpack = LENGTH.unpack_from
        ends = array("q", [ABSENT if r is None else unpack(r, len(r) - CHECK)[0] for r in rows])
    return Current(seeds, _values(rows, limit), ends)


def _values(rows: Sequence[bytes | None], limit: int) -> list[bytes | None]:
    newest = newest_tag(limit)
    unpack = HEADER.unpack_from
    result: list[bytes | None] = []
    add = result.append
    for row in rows:
        if row is None:
            add(None)
            continue
        tag, length = unpack(row)
        if tag > newest:
            add(previous(row))
        else:
            add(row[BODY : BODY + length] if tag & HAS_VALUE else None)
    return result


def value(key: bytes, row: bytes, limit: int) -> bytes | None:
    """The value of one row, stored under `key`, as of the end of batch `limit`."""
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


def batch_of(row: bytes) -> int:
    """The batch that wrote a row."""
    return int(HEADER.unpack_from(row)[0]) >> SHIFT


def is_tombstone(row: bytes) -> bool:
    """True if the row was deleted and can still be restored."""
    return not row[0] & HAS_VALUE


def tombstones(rows: Iterable[bytes]) -> int:
    """The number of rows that were deleted and can still be restored."""
    return [row[0] & HAS_VALUE for row in rows].count(0)


def replace(
    batch: int,
    keys: Sequence[bytes],
    new: Sequence[bytes | None],
    current: Current,
    long: dict[bytes, bytes],
) -> tuple[Writes, Journal]:
    """Give stored `keys` the values `new` as of `batch`; `current` are their rows as of before.

    `long` maps every stored key that is a long one to its whole key.
    """
    seeds, values, ends = current.seeds, current.values, current.ends
    deletes: list[bytes] = []
    gone: list[bytes] = []
    if not all(new):
        places: list[int] = []
        for place, (key, value, before) in enumerate(zip(keys, new, values, strict=True)):
            if value is not None or before is not None:
                places.append(place)
                if value is None:
                    gone.append(key)
            elif ends[place] != ABSENT:
                deletes.append(key)
        keys, new = [keys[place] for place in places], [new[place] for place in places]
        values = [values[place] for place in places]
        seeds, ends = [seeds[place] for place in places], [ends[place] for place in places]
    bodies = _bodies(batch, new, values)
    absent = set(gone)
    changed = [key for key in keys if key not in absent] if gone else keys
    puts, tally = sealed_all(keys, _lengthened(keys, bodies, long), seeds)
    replaced = [end for end in ends if end != ABSENT] if ABSENT in ends else ends
    tally = RowTally(tally.count - len(replaced), tally.digest - sum(replaced))
    return Writes(puts, deletes, tally), Journal(batch, gone, changed)


def _bodies(batch: int, new: Sequence[bytes | None], values: Sequence[bytes | None]) -> list[bytes]:
    """The rows of `batch` with `new` values and the ones before them, up to the checksum."""
    here = batch << SHIFT
    both, only, tombstone = here | HAS_VALUE | HAS_PREVIOUS, here | HAS_VALUE, here | HAS_PREVIOUS
    pack = HEADER.pack
    return [
        pack(tombstone, 0) + (before or b"")
        if value is None
        else pack(only, len(value)) + value
        if before is None
        else pack(both, len(value)) + value + before
        for value, before in zip(new, values, strict=True)
    ]


def restore(batch: int, keys: Sequence[bytes], rows: Sequence[bytes | None]) -> Writes:
    """Undo the changes of `batch` to stored `keys`; `rows` are their current rows.

    A restored row gets the number of the batch before, since its true batch is no longer known. No
    view that is still allowed can tell the difference.
    """
    check_all(keys, rows)
    restored: list[bytes] = []
    bodies: list[bytes] = []
    deletes: list[bytes] = []
    replaced: list[bytes] = []
    for key, row in zip(keys, rows, strict=True):
        if row is None:
            continue
        before = previous(row)
        if before is None:
            deletes.append(key)
            continue
        body = HEADER.pack((batch - 1) << SHIFT | HAS_VALUE, len(before)) + before
        (tag,) = struct.unpack_from("<Q", row)
        restored.append(key)
        bodies.append(_lengthen(body, _whole_key(row)) if tag & LONG else body)
        replaced.append(row)
    puts, tally = sealed_all(restored, bodies, map(crc32, restored))
    tally = RowTally(tally.count - len(replaced), tally.digest - digest_of(replaced))
    return Writes(puts, deletes, tally)


def in_order(
    items: Iterable[tuple[bytes, bytes]],
    limit: int,
    start: bytes,
    stop: bytes | None,
    reverse: bool,
) -> Iterator[tuple[bytes, bytes]]:
    """The true keys and values of stored `items`, in true order, as of the end of `limit`.

    `items` come in the (reversed) order of stored keys, bounded by `bounds(start, stop)`. Lazy,
    except that a run of keys that share their first 478 bytes is gathered and sorted.
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
            if key[1:RUN] != shared:
                yield from _sorted_run(run, start, stop, reverse)
                run, shared = [], key[1:RUN]
            run.append((_whole_key(row) if tag & LONG else key[1:], value))
            continue
        if run:
            yield from _sorted_run(run, start, stop, reverse)
            run, shared = [], b""
        yield key[1:], value
    yield from _sorted_run(run, start, stop, reverse)


def bounds(start: bytes, stop: bytes | None) -> tuple[bytes, bytes]:
    """The range of stored keys (end excluded) that has every row with `start <= key < stop`."""
    if stop is None:
        return ROW + start[:TRUNCATED], b"\x02"
    if len(stop) <= TRUNCATED:  # nearly always
        return ROW + start[:TRUNCATED], ROW + stop
    # A stop inside a run: take the whole run, `in_order` cuts it. (It starts with `\x01`, so
    # rstrip leaves at least one byte.)
    run = (ROW + stop[:TRUNCATED]).rstrip(b"\xff")
    return ROW + start[:TRUNCATED], run[:-1] + bytes([run[-1] + 1])


def pack_journal(key: bytes, journal: Journal) -> bytes:
    """Packs a journal into one blob, the keys gone first: the next batch needs only these.

    It is stored under `key`, which its checksum covers too.
    """
    gone = _pack_keys(journal.gone)
    packed = JOURNAL.pack(journal.batch, len(gone)) + gone + _pack_keys(journal.changed)
    return sealed(key, packed)


def checked_journal(key: bytes, blob: bytes) -> bytes:
    """Checks a packed journal, for the functions below; Damaged if its checksum is wrong."""
    check(key, blob)
    return blob


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


def _lengthened(
    keys: Sequence[bytes], bodies: list[bytes], long: dict[bytes, bytes]
) -> list[bytes]:
    """Appends their whole keys to the rows of long keys."""
    if not long:
        return bodies
    return [
        _lengthen(body, long[key]) if key in long else body
        for key, body in zip(keys, bodies, strict=True)
    ]


def _lengthen(row: bytes, key: bytes) -> bytes:
    """Appends the whole key to a row that has no checksum yet."""
    tag, length = HEADER.unpack_from(row)
    return b"".join((HEADER.pack(tag | LONG, length), row[BODY:], key, LENGTH.pack(len(key))))


def _tail_length(row: bytes) -> int:
    """The size of the end of a long key's row: the whole key, its length and the checksum."""
    return int(LENGTH.unpack_from(row, len(row) - _TAIL)[0]) + _TAIL


def _whole_key(row: bytes) -> bytes:
    return row[len(row) - _tail_length(row) : -_TAIL]
