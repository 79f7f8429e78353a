"""Changes a store's number of shards: moves every row to the shard that its key belongs to.

DESIGN
------
No driver may hold the store. The rows, as of the last committed batch, are written to new shards in
a separate folder, one old shard after the other. A note records which old shards are done, so that
an interrupted resharding continues with the next. Writing a row again changes nothing.

Slates, entries of tables and timers have a key, and simply move. Chunks of waiting events are split
by the keys of their events. Feedback events may be in any shard. The order of slates of updates
whose room is limited is left out: the application rebuilds it.

When everything is on disk, the new shards are compared with the old: they must have the same number
of rows of each kind, and the same sum of checksums. Only then does `store.json` name the new folder
and the new number, in one write: at this moment the change takes effect.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from zlib import crc32

import msgspec

from millstream.codec import shard_of, shards_of
from millstream.counted_nouns import counted
from millstream.durable import read_record, sync, write_record
from millstream.engine.cells.cell import stored_outbox
from millstream.engine.cells.queue import Queue
from millstream.engine.columns import Columns
from millstream.errors import StoreError
from millstream.stores.contract import View, after_prefix
from millstream.stores.home import Home
from millstream.stores.layout import (
    outbox_of,
    outbox_row,
    queue_directory,
    queue_lane,
    queue_row,
    waiting_of,
    waiting_row,
)
from millstream.stores.lmdb import LmdbStore
from millstream.stores.progress import Progress, decoded
from millstream.stores.shard_writer import ShardWriter

KEYED = (b"S", b"E", b"T")
"""The kinds of rows that belong to a key."""
CHUNK = 10_000
NOTE = "reshard.json"
Item = tuple[bytes, bytes]


class Resharding(msgspec.Struct):
    """The progress of a resharding."""

    shards: int
    batch: int
    folder: str
    done: list[int] = []
    """Old shards whose rows have been copied to the new ones."""


class RowCounts:
    """Counts the keyed rows of each kind, and sums their checksums."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.digest = 0

    def add(self, key: bytes, value: bytes) -> None:
        self.rows[key[:1].decode()] += 1
        self.digest = (self.digest + crc32(value, crc32(key))) & 0xFFFFFFFFFFFFFFFF

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowCounts) and (self.rows, self.digest) == (
            other.rows,
            other.digest,
        )

    __hash__ = None  # type: ignore[assignment]


def reshard(home: Home, shards: int, say: Callable[[str], None]) -> None:
    """Gives a store another number of shards; raises StoreError if that fails.

    After an error the store is as it was.
    """
    if home.soft is not None:
        raise StoreError(
            f"{home.path}: it has batches that are not flushed yet; run the application once with "
            'flush = "batch", stop it, and reshard then'
        )
    progress = decoded(home.read_progress())
    if shards == home.facts.shards:
        say(f"the store has {counted(shards, 'shard')} already")
        return
    note = begun(home, shards, progress.batch)
    epoch = home.raise_epoch()
    counts = write_resharded(home, progress, note, epoch, say)
    say(f"{counted(sum(counts.rows.values()), 'row')} moved, and compared")
    old = home.shards
    progress.last_batches = []
    home.write_progress(progress)
    home.facts.folder, home.facts.shards = note.folder, shards
    home.write_facts()
    (home.path / NOTE).unlink(missing_ok=True)
    shutil.rmtree(old, ignore_errors=True)


def begun(home: Home, shards: int, batch: int, prefix: str = "shards") -> Resharding:
    """Returns the interrupted resharding to continue, or a new one, in a folder of that prefix."""
    stored = read_record(home.path / NOTE)
    if stored is not None:
        note = msgspec.json.decode(stored, type=Resharding)
        if (note.shards, note.batch) == (shards, batch):
            return note
        shutil.rmtree(home.path / note.folder, ignore_errors=True)
    note = Resharding(shards, batch, f"{prefix}-{shards}-at-{batch}")
    shutil.rmtree(home.path / note.folder, ignore_errors=True)
    write_record(home.path / NOTE, msgspec.json.encode(note))
    return note


def write_resharded(
    home: Home, progress: Progress, note: Resharding, epoch: int, say: Callable[[str], None]
) -> RowCounts:
    """Writes all rows of a store to new shards, and compares them; returns their counts."""
    store = home.store()
    before = RowCounts()
    try:
        for number in range(store.shards):
            say(f"shard {number + 1} of {store.shards}")
            shard = store.shard(number)
            shard.roll_back(epoch, progress.batch)
            with shard.at(progress.batch) as view:
                _move(view, home.path / note.folder, note, before, number in note.done)
            if number not in note.done:
                note.done.append(number)
                write_record(home.path / NOTE, msgspec.json.encode(note))
        views = [store.shard(number).at(progress.batch) for number in range(store.shards)]
        waiting = _waiting(views, home.facts.functions, note.shards)
        for view in views:
            view.__exit__(None, None, None)
    finally:
        store.close()
    say("comparing")
    for number in range(note.shards):
        with ShardWriter(_folder(home.path / note.folder, number), progress.batch) as writer:
            if rows := waiting[number]:
                writer.put(rows)
            writer.finish(epoch, writer.counted(), synced=True)
    sync(home.path / note.folder)
    after = _counted(home.path / note.folder, note.shards, progress.batch)
    if after != before:
        raise StoreError(
            f"{home.path / note.folder}: the new shards must have the rows of the old, "
            f"{dict(before.rows)}; they have {dict(after.rows)}, or others: the store was left as "
            "it is; remove the folder and try again"
        )
    return after


def _folder(parent: Path, number: int) -> Path:
    return parent / f"shard-{number:04d}"


def _move(view: View, folder: Path, note: Resharding, counts: RowCounts, done: bool) -> None:
    """Counts the keyed rows of an old shard, and writes them to the new ones unless `done`."""
    for kind in KEYED:
        rows = view.scan(kind, after_prefix(kind))
        while chunk := list(islice(rows, CHUNK)):
            parts: dict[int, list[Item]] = {}
            for key, value in chunk:
                counts.add(key, value)
                if not done:
                    parts.setdefault(shard_of_row(key, note.shards), []).append((key, value))
            for number, items in parts.items():
                with ShardWriter(_folder(folder, number), note.batch) as writer:
                    writer.put(items)


def shard_of_row(row: bytes, shards: int) -> int:
    """Returns the shard that a keyed row belongs to.

    >>> shard_of_row(b"Scount\\x00Walmart", 16) == shard_of("count", "Walmart", 16)
    True
    """
    function, _, rest = row[1:].partition(b"\x00")
    if row[:1] == b"E":
        rest = rest.partition(b"\x00\x00")[0].replace(b"\x00\xff", b"\x00")
    elif row[:1] == b"T":
        rest = rest[9:]
    return shard_of(function.decode(), rest.decode(), shards)


def _counted(folder: Path, shards: int, batch: int) -> RowCounts:
    counts, store = RowCounts(), LmdbStore(folder, shards)
    try:
        for number in range(shards):
            with store.shard(number).at(batch) as view:
                for kind in KEYED:
                    for key, value in view.scan(kind, after_prefix(kind)):
                        if shard_of_row(key, shards) != number:
                            raise StoreError(f"{folder}: a row lies in the wrong shard {number}")
                        counts.add(key, value)
    finally:
        store.close()
    return counts


def _waiting(views: list[View], functions: list[str], shards: int) -> list[list[Item]]:
    """Returns, for each new shard, the rows of waiting events and of feedback."""
    rows: list[list[Item]] = [[] for _ in range(shards)]
    for function in functions:
        for number, item in _waiting_rows(views, function, shards):
            rows[number].append(item)
        for number, item in _queued_rows(views, function, shards):
            rows[number].append(item)
        for old, view in enumerate(views):
            for chunk, (target, events) in enumerate(stored_outbox(view, function)):
                packed = msgspec.msgpack.encode((target, events.pack()))
                key = outbox_row(outbox_of(function), 0, old << 16 | chunk)
                rows[old % shards].append((key, packed))
    return rows


def _divided(function: str, events: Columns, shards: int) -> Iterator[tuple[int, Columns]]:
    """Splits events by the new shard that their keys belong to."""
    parts = events.split(shards_of(function, events.keys, shards), shards)
    return ((number, part) for number, part in enumerate(parts) if part is not None)


def _waiting_rows(views: list[View], function: str, shards: int) -> Iterator[tuple[int, Item]]:
    prefix = waiting_of(function)
    for old, view in enumerate(views):
        for chunk, (_, packed) in enumerate(view.scan(prefix, after_prefix(prefix))):
            for number, events in _divided(function, Columns.unpack(packed), shards):
                key = waiting_row(prefix, events.ts[0], 0, old << 20 | chunk)
                yield number, (key, events.pack())


def _queued_rows(views: list[View], function: str, shards: int) -> Iterator[tuple[int, Item]]:
    lengths: list[Counter[str]] = [Counter() for _ in range(shards)]
    for old, view in enumerate(views):
        for lane in Queue(view, function).lanes:
            prefix = queue_lane(function, lane)
            for chunk, (row, packed) in enumerate(view.scan(prefix, after_prefix(prefix))):
                batch = int.from_bytes(row[len(prefix) : len(prefix) + 8])
                for number, events in _divided(function, Columns.unpack(packed), shards):
                    lengths[number][lane] += len(events)
                    key = queue_row(queue_lane(function, lane), batch, old << 20 | chunk)
                    yield number, (key, events.pack())
    for number, counts in enumerate(lengths):
        if counts:
            yield number, (queue_directory(function), msgspec.msgpack.encode(dict(counts)))
