"""Checks a whole shard, row by row, for damage.

Every row and journal is compared with its checksum, the order of keys, and the result of looking up
its key (which finds a damaged page above the rows too). All of them together are compared with the
tally in the shard's head. This takes about a microsecond a row.

LMDB may end the process on a damaged page, so this runs in a child process (`shard_checks`). It
imports only LMDB and the modules that the store itself needs.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator
from itertools import islice
from operator import lt

import lmdb
import msgspec

from millstream.counted_nouns import counted
from millstream.stores import rows
from millstream.stores.checks import NONE, Damaged, RowTally, check, check_all, digest_of
from millstream.stores.environment import MAX_READERS, Transaction
from millstream.stores.integrity.free_pages import free_pages_fault
from millstream.stores.layout import named
from millstream.stores.lmdb import MAP_SIZE
from millstream.stores.recent_rows import Get, count_of
from millstream.stores.shard_rows import HEAD_KEY, JOURNALS, Head, read_head

CHUNK = 4_096
TRIES = 5
_TXNID, _TXNID_AT = struct.Struct("<Q"), 144
"""The commit's number in a meta page of LMDB's file, and its offset in the page."""
MOST = 5
"""The most findings that are reported of one shard: more would add nothing."""


class CheckedShard(msgspec.Struct):
    """The result of checking a whole shard."""

    path: str
    rows: int = 0
    tombstones: int = 0
    journals: int = 0
    last: int = -1
    """Its last batch."""
    findings: list[str] = []


def check_shard(path: str) -> CheckedShard:
    """Checks all of the shard in a folder, as of now. The application may run meanwhile."""
    checked = CheckedShard(path)
    try:
        with _opened(path) as env:
            env.set_mapsize(0)  # the current size of the file's map
            if not _metas_follow(os.path.join(path, "data.mdb"), env.stat()["psize"]):
                checked.findings.append("its first two pages are not of consecutive commits")
                return checked
            with env.begin() as txn:
                findings = _findings(txn, checked)
                checked.findings = list(islice(findings, MOST))
                if not checked.findings:
                    file, page = os.path.join(path, "data.mdb"), env.stat()["psize"]
                    checked.findings += filter(None, [free_pages_fault(file, txn, page)])
    except (lmdb.Error, OSError) as error:
        checked.findings.append(f"LMDB cannot read it: {error}")
    return checked


def _opened(path: str) -> lmdb.Environment:
    try:
        return lmdb.open(
            path, map_size=MAP_SIZE, max_readers=MAX_READERS, create=False, readonly=True
        )
    except lmdb.Error as error:
        if error.code not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        # Without LMDB's lock, which is safe: nobody writes (`Home.check_readable`).
        return lmdb.open(path, map_size=MAP_SIZE, create=False, readonly=True, lock=False)


def _metas_follow(path: str, page: int) -> bool:
    """True if the two meta pages, which LMDB writes in turn, are of consecutive commits.

    With a flipped byte there, LMDB would show an older state of the shard, intact in itself.
    """
    for _ in range(TRIES):
        with open(path, "rb", buffering=0) as file:
            data = file.read(2 * page)
        if len(data) == 2 * page:
            even, odd = (_TXNID.unpack_from(data, at)[0] for at in (_TXNID_AT, page + _TXNID_AT))
            if (even % 2 == 0 and abs(even - odd) == 1) or even == odd == 0:
                return True
    return False  # after several tries, so a commit in progress is not the cause


def _findings(txn: Transaction, checked: CheckedShard) -> Iterator[str]:
    head: Head | None = None
    try:
        head = read_head(txn)
        checked.last = head.last
    except (Damaged, struct.error):
        yield "the shard's head is lost or does not fit its checksum"
    tally, before, recent = NONE, b"", 0
    cursor = txn.cursor()
    items = iter(cursor.iternext())
    while chunk := list(islice(items, CHUNK)):
        keys, values = [key for key, _ in chunk], [row for _, row in chunk]
        if not all(map(lt, [before, *keys], keys)):
            yield "the keys of its rows are out of order: a page is damaged"
            return
        before = keys[-1]
        if list(map(txn.get, keys)) != values:
            yield "rows are there that a look-up does not find: a page is damaged"
            return
        if keys[0] < rows.ROW:
            yield from _own(keys, values, head, checked)
        at = keys.index(HEAD_KEY) if keys[0] <= HEAD_KEY and HEAD_KEY in keys else None
        if at is not None:
            del keys[at], values[at]
        try:
            check_all(keys, values)
        except Damaged:
            for key, row in zip(keys, values, strict=True):
                try:
                    check(key, row)
                except Damaged:
                    yield f"{named(key)} does not fit its checksum"
        else:
            own = 0 if keys[:1] >= [rows.ROW] else sum(key < rows.ROW for key in keys)
            checked.tombstones += rows.tombstones(values[own:])
            hidden = [rows.ROW + key[1:] for key in keys if key >= rows.RECENT]
            recent += len(hidden)
            checked.rows += len(keys) - own - sum(txn.get(key) is not None for key in hidden)
        tally = RowTally(tally.count + len(keys), tally.digest + digest_of(values) & (1 << 64) - 1)
    yield from _miscounted(head, tally, recent, txn.get)


def _miscounted(head: Head | None, tally: RowTally, recent: int, get: Get) -> Iterator[str]:
    """Yields what the rows of the whole shard do not agree with: its head, or its note of recent
    rows."""
    if head is not None and head.tally.count != tally.count:
        held = counted(tally.count, "row")
        yield f"it has {held}, and its head says {head.tally.count:,}: a page was lost"
    elif head is not None and head.tally != tally:
        yield "its rows do not match the tally in its head: an old page replaces a new one"
    elif count_of(get) != recent:
        yield f"it has {counted(recent, 'recent row')}, and its note says {count_of(get):,}"


def _own(
    keys: list[bytes], blobs: list[bytes], head: Head | None, checked: CheckedShard
) -> Iterator[str]:
    """Yields what is wrong with the journals; their checksums are checked elsewhere."""
    for key, blob in zip(keys, blobs, strict=True):
        if key >= rows.ROW:
            return
        if not key.startswith(JOURNALS):
            continue
        checked.journals += 1
        try:
            batch = rows.journal_batch(rows.checked_journal(key, blob))
        except (Damaged, struct.error):
            continue
        if head is not None and batch > head.last:
            yield f"{named(key)} is of batch {batch}, and the shard's last one is {head.last}"


def main(paths: list[str]) -> None:
    """Check shards; print one line of JSON for each as soon as it is done."""
    for path in paths:
        line = msgspec.json.encode(check_shard(path)) + b"\n"
        os.write(sys.stdout.fileno(), line)


if __name__ == "__main__":
    main(sys.argv[1:])
