"""Rewriting a store's shards: without what has expired, without tombstones, in few pages.

DESIGN
------
For a store that no driver holds. What a driver that died has left ahead of the committed batch is
undone first, as at every start. Then the rows, as of that batch, are copied to new shards in a
folder of their own; their values only, since nothing before the batch is asked for any more. Once
all is on disk, `store.json` is replaced by one that names the new folder: this is the moment, for
all shards at once. A crash before it leaves the old ones, after it the new; what is left over goes
at the next vacuum. Whoever serves the store opens it anew when store.json changes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import lmdb

from millstream.durable import sync
from millstream.errors import StoreError
from millstream.stores import rows
from millstream.stores.checks import NONE
from millstream.stores.contract import Fence, View, after_prefix
from millstream.stores.environment import explained
from millstream.stores.home import Home
from millstream.stores.layout import slate_head, slates_of
from millstream.stores.lmdb import HEAD_KEY, MAP_SIZE, Head
from millstream.stores.progress import Progress, decoded
from millstream.stores.shard_checks import finish_checks, start_checks

CHUNK = 10_000
Item = tuple[bytes, bytes]


@dataclass(slots=True)
class Vacuumed:
    """What went, and what is left."""

    before: int = 0
    """Bytes of the shards' files."""
    after: int = 0
    tombstones: int = 0
    expired: dict[str, int] = field(default_factory=dict)
    """Slates that had expired, by update."""
    slates: dict[str, int] = field(default_factory=dict)
    """Slates that are there now."""
    files: int = 0
    """Files and folders left over by what died."""


def vacuum(home: Home, ages: Mapping[str, tuple[int, int]], say: Callable[[str], None]) -> Vacuumed:
    """Rewrite a store that is held.

    `ages` has, by update, how far event time has come and the ttl: which slates have expired.
    """
    if home.soft is not None:
        raise StoreError(
            f"{home.path}: it has batches that are not flushed yet; run the application once with "
            'flush = "batch", stop it, and vacuum then'
        )
    progress, done = decoded(home.read_progress()), Vacuumed()
    with start_checks(home) as checks:
        say("checking")
        done.tombstones = sum(checked.tombstones for checked in finish_checks(checks))
    if progress.batch >= 0:
        _rewrite(home, progress, ages, done, say)
    _clear(home, progress, done)
    return done


def _rewrite(
    home: Home,
    progress: Progress,
    ages: Mapping[str, tuple[int, int]],
    done: Vacuumed,
    say: Callable[[str], None],
) -> None:
    old, epoch = home.shards, home.raise_epoch()
    new = home.path / f"shards-{epoch}"
    done.before = _size(old)
    store = home.store()
    try:
        for number in range(store.shards):
            say(f"shard {number + 1} of {store.shards}")
            shard = store.shard(number)
            shard.roll_back(epoch, progress.batch)
            with shard.at(progress.batch) as view:
                gone = _expired(view, ages)
                kept = _kept(view, home.facts.updates, gone, done)
                where = f"shard {number} of the store {new}"
                with explained(where, "nothing was changed"):
                    _write(new / f"shard-{number:04d}", kept, epoch, progress.batch)
            for update, keys in gone.items():
                done.expired[update] = done.expired.get(update, 0) + len(keys)
    finally:
        store.close()
    sync(new)
    sync(home.path)
    home.facts.folder = new.name
    home.write_facts()
    progress.slates = {name: done.slates.get(name, 0) for name in home.facts.updates}
    home.write_progress(progress)
    done.after = _size(new)


def _expired(view: View, ages: Mapping[str, tuple[int, int]]) -> dict[str, set[bytes]]:
    """The keys of the slates that have expired, by update."""
    gone: dict[str, set[bytes]] = {}
    for update, (until, ttl) in ages.items():
        prefix = slates_of(update)
        gone[update] = {
            row[len(prefix) :]
            for row, data in view.scan(prefix, after_prefix(prefix))
            if until - slate_head(data)[1] > ttl
        }
    return gone


def _kept(
    view: View, updates: Mapping[str, str], gone: Mapping[str, set[bytes]], done: Vacuumed
) -> Iterator[Item]:
    """Every row but those of the slates that have gone: the slate, its entries and its timers.

    Where some have gone, the order of slates goes too: the application makes it anew.
    """
    for row, value in view.scan(b""):
        kind = row[:1]
        if kind == b"P" and gone.get(row[1:].partition(b"\x00")[0].decode(errors="replace")):
            continue
        if kind in (b"S", b"E", b"T"):
            owner, _, rest = row[1:].partition(b"\x00")
            update = owner.decode(errors="replace")
            if kind == b"E":
                rest = rest.partition(b"\x00\x00")[0].replace(b"\x00\xff", b"\x00")
            elif kind == b"T":
                rest = rest[9:]
            if rest in gone.get(update, ()):
                continue
            if kind == b"S" and update in updates:
                done.slates[update] = done.slates.get(update, 0) + 1
        yield row, value


def _write(folder: Path, kept: Iterator[Item], epoch: int, batch: int) -> None:
    """A new shard with these rows, on disk when this returns."""
    folder.mkdir(parents=True)
    tally = NONE
    with lmdb.open(str(folder), map_size=MAP_SIZE, sync=False) as env:
        while chunk := list(islice(kept, CHUNK)):
            keys = [key for key, _ in chunk]
            stored = rows.stored_keys(keys)
            long = {
                short: key
                for short, key in zip(stored, keys, strict=True)
                if len(key) > rows.MAX_SHORT
            }
            values = [value for _, value in chunk]
            writes, _ = rows.replace(batch, stored, values, [None] * len(chunk), long)
            with env.begin(write=True) as txn:
                txn.cursor().putmulti(writes.puts)
            tally = tally.changed(writes.tally, ())
        # As after a roll-back: the batches before this one are forgotten.
        head = Head(Fence(epoch, batch + 1, 0), batch + 1, tally)
        with env.begin(write=True) as txn:
            txn.put(HEAD_KEY, head.pack())
        env.sync(True)
    sync(folder)


def _clear(home: Home, progress: Progress, done: Vacuumed) -> None:
    """Remove what is left over: other shards, output of tries that failed, half-written files."""
    for folder in home.path.glob("shards*"):
        if folder.is_dir() and folder != home.shards:
            shutil.rmtree(folder)
            done.files += 1
    left = [path for path in home.staging.glob("*.rows") if path.name not in progress.staged]
    left += [*home.staging.glob(".*.tmp"), *home.path.glob(".*.tmp")]
    for path in left:
        path.unlink(missing_ok=True)
        done.files += 1
    sync(home.path)


def _size(folder: Path) -> int:
    """Bytes that the shards take on disk."""
    return sum(os.stat(path).st_size for path in folder.glob("*/data.mdb"))
