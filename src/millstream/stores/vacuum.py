"""Rewrites a store's shards without expired slates and tombstones, in few pages.

DESIGN
------
For a store that no driver holds. First the changes that a dead driver has left after the committed
batch are undone, as at every start. Then the rows, as of that batch, are copied to new shards in a
new folder: only their values, since nothing will read an earlier batch. Once all is on disk,
`store.json` is replaced by one that names the new folder. This switches all shards at once. A crash
before it leaves the old shards, after it the new ones; the next vacuum removes what is left over.
Servers reopen the store when store.json changes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from millstream.durable import sync
from millstream.errors import StoreError
from millstream.stores.contract import View, after_prefix
from millstream.stores.environment import explained
from millstream.stores.function_counts import FunctionCounts
from millstream.stores.home import Home
from millstream.stores.integrity.shard_checks import finish_checks, start_checks
from millstream.stores.layout import slate_head, slates_of
from millstream.stores.progress import Progress, decoded
from millstream.stores.shard_writer import write_shard

Item = tuple[bytes, bytes]


@dataclass(slots=True)
class Vacuumed:
    """The result of a vacuum: what it has removed, and what is left."""

    before: int = 0
    """Bytes of the shards' files."""
    after: int = 0
    tombstones: int = 0
    expired: dict[str, int] = field(default_factory=dict)
    """Slates that had expired, by update."""
    slates: dict[str, int] = field(default_factory=dict)
    """Slates that are left, by the name that their update is stored under."""
    files: int = 0
    """Leftover files and folders that were removed."""


def vacuum(home: Home, ages: Mapping[str, tuple[int, int]], say: Callable[[str], None]) -> Vacuumed:
    """Rewrite a store whose lock this process holds.

    `ages` has for each update the current event time and the ttl, which tell the expired slates.
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
                gone = _expired(view, {home.facts.stored(name): age for name, age in ages.items()})
                kept = _kept(view, {*map(home.facts.stored, home.facts.updates)}, gone, done)
                where = f"shard {number} of the store {new}"
                with explained(where, "nothing was changed"):
                    write_shard(new / f"shard-{number:04d}", kept, epoch, progress.batch)
            for update in ages:
                keys = gone[home.facts.stored(update)]
                done.expired[update] = done.expired.get(update, 0) + len(keys)
    finally:
        store.close()
    sync(new)
    sync(home.path)
    home.facts.folder = new.name
    home.write_facts()
    stored = home.facts.stored
    for name in home.facts.updates:
        counts = progress.functions.setdefault(name, FunctionCounts())
        counts.slates = done.slates.get(stored(name), 0)
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
    view: View, updates: Collection[str], gone: Mapping[str, set[bytes]], done: Vacuumed
) -> Iterator[Item]:
    """Yields every row except those of expired slates: the slate, its entries and its timers.

    If some slates of an update have expired, its order of slates is dropped too: the application
    builds it again.
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


def _clear(home: Home, progress: Progress, done: Vacuumed) -> None:
    """Remove leftovers: other shards, output of failed attempts, half-written files."""
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
