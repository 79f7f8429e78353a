"""Flushes batches to disk: each by itself, or all batches of an interval together.

With `flush = "batch"` this module has nothing to do: every part of a batch is synced to disk as it
is written. With an interval, batches go to the store's soft layer (`stores.layered`). Their
progress and their staged output are written without a sync, and nothing is published. A **flush**
then does for all of these batches what is otherwise done for each:

1. in every shard, copy the rows of the layer to the base; sync the staged output;
2. write `progress.flushed`: **the batches are flushed**, and survive a power failure;
3. empty the layer;
4. publish the output of the batches to sinks and logs, in order, and delete the staged files.

If the process dies, even by a kill, nothing of this is lost: the next driver finds the layer,
undoes what is ahead of `progress`, and flushes. After a power failure the layer may be damaged, so
it is discarded unread. None of its batches was published, and sources keep what was not flushed, so
these batches are processed again.
"""

from __future__ import annotations

import shutil
import time
from uuid import uuid4

from millstream.counted_nouns import counted, verb
from millstream.driver.job import SharedJob
from millstream.driver.outputs.publisher import Publisher
from millstream.durable import sync
from millstream.engine.points import reach
from millstream.engine.progress import Report
from millstream.errors import StoreError
from millstream.stores.contract import Store
from millstream.stores.home import Home, opened
from millstream.stores.progress import Progress, decoded
from millstream.stores.soft import FLUSHED, Flushed, Soft, boot_id, read_durable, read_flushed

MOST_BATCHES = 500
"""Flush early when this many batches have output: each progress lists their files."""


class Flushing:
    """Decides when a driver flushes, and does it.

    `interval` is in microseconds; None: each batch is flushed by itself.
    """

    def __init__(self, home: Home, interval: int | None) -> None:
        self._home = home
        self._interval = interval
        self._epoch = -1
        self._last = time.monotonic()
        self._store: Store | None = None
        self._flushed = read_durable(home.path) if home.soft is not None else None

    @property
    def soft(self) -> Soft | None:
        """The layer that batches go to; None if each batch is flushed."""
        return self._home.soft

    def shared_job(self) -> SharedJob | None:
        """Returns the shared store's part of the next batch's job; None if not a shared store."""
        return None

    def written(self, reports: list[Report]) -> None:
        """Records what the tasks of a batch have written to a shared store, before the commit."""

    def durable(self, progress: Progress) -> Progress:
        """Returns the progress that survives a power failure, given the driver's current one."""
        return progress if self._flushed is None else self._flushed

    def open(self) -> Store:
        """Opens the store, with its layer if it has one."""
        self._store = opened(self._home.path, self._home.facts.shards, self.soft)
        return self._store

    def next_store(self) -> Store:
        """Returns the store for the next batch, for a driver that runs the batch itself."""
        return self._store or self.open()

    def recover(self, epoch: int, progress: Progress) -> None:
        """Rolls every shard back to the last committed batch.

        This changes the store; `recovery` has checked before that it is possible.
        """
        self._epoch = epoch
        store = self._store or self.open()
        if store.layer is not None:  # the last driver may have ended before it did this
            store.layer.clear(epoch, self.durable(progress).batch)
        for number in range(store.shards):
            store.shard(number).roll_back(epoch, progress.batch)

    def last_batches(self) -> list[int]:
        """Returns the last batch that changed each shard."""
        assert self._store is not None
        return [self._store.shard(number).last_batch for number in range(self._store.shards)]

    def settle(self, progress: Progress, publisher: Publisher) -> None:
        """Flushes and publishes what the last driver left; switches to this run's flush mode."""
        if self.soft is not None:
            self.flush(progress, publisher, again=True)
        else:
            publisher.publish(progress.batch, progress.staged, again=True)
        publisher.clear()
        if self._interval is None and self.soft is not None:
            self._end_layer(progress)
        elif self._interval is not None and self.soft is None:
            self._begin_layer(progress)
        elif self.soft is not None:
            progress.soft = self.soft.id
            self._record(progress, ended=False)

    def committed(self, before: Progress, after: Progress) -> None:
        """Adds to a new progress which batches are not flushed. Called before it is written."""
        if self.soft is not None:
            after.soft = self.soft.id
            after.unpublished = list(before.unpublished)
            if after.staged:
                after.unpublished.append((after.batch, after.staged))

    def due(self, progress: Progress) -> bool:
        """True if there is something to flush and it is time to."""
        if self._interval is None or self._flushed is None:
            return False
        if progress.batch <= self._flushed.batch:
            return False
        passed = time.monotonic() - self._last
        return passed * 1e6 >= self._interval or len(progress.unpublished) >= MOST_BATCHES

    def flush(
        self, progress: Progress, publisher: Publisher, *, ended: bool = False, again: bool = False
    ) -> None:
        """Flushes up to `progress`, and publishes.

        `again`: a repeat at a start; what was done before is not done twice. `ended`: no further
        batch follows.
        """
        layer = self._store.layer if self._store is not None else None
        flushed = self.durable(progress).batch
        if layer is None:
            return
        if progress.batch > flushed:
            layer.write_base(self._epoch, flushed, progress.batch)
            for _, names in progress.unpublished:
                for name in names:
                    sync(self._home.staging / name)
            sync(self._home.staging)
            reach("flush-begun", progress.batch)
            self._record(progress, ended=ended)
            reach("flush-recorded", progress.batch)
            layer.clear(self._epoch, progress.batch)
        elif ended:
            self._record(progress, ended=True)
        publisher.publish_all(progress.unpublished, again=again)
        progress.unpublished = []
        self._last = time.monotonic()
        reach("flush-published", progress.batch)

    def close(self) -> None:
        """Closes the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _record(self, progress: Progress, *, ended: bool) -> None:
        assert self._store is not None
        layer = self._store.layer
        base = self.last_batches() if layer is None else layer.base_batches()
        self._home.write_flushed(Flushed(progress, ended, base))
        self._flushed = progress

    def _begin_layer(self, progress: Progress) -> None:
        """Switches from flushing each batch to a layer."""
        assert self._store is not None
        progress.soft, progress.staged, progress.last_batches = uuid4().hex, [], []
        self._record(progress, ended=False)
        self.close()
        self._home.write_soft(Soft(progress.soft, boot_id(), progress.batch))
        self._home.write_progress(progress)
        self.recover(self._epoch, progress)
        _remove_layers(self._home)

    def _end_layer(self, progress: Progress) -> None:
        """Switches from the layer, which is empty, to flushing each batch."""
        assert self._store is not None
        layer = self._store.layer
        progress.soft, progress.staged = "", []
        progress.last_batches = [] if layer is None else layer.base_batches()
        self.close()
        self._home.write_progress(progress)
        self._home.write_soft(None)
        self._flushed = None
        (self._home.path / FLUSHED).unlink(missing_ok=True)
        _remove_layers(self._home)
        self.recover(self._epoch, progress)


def take_back(home: Home) -> str | None:
    """Goes back to the last flush after a power failure. Returns a message on what is repeated.

    Every step can be repeated: only the last one records that all were done.
    """
    soft = home.soft
    if soft is None or soft.survives():
        return None
    flushed = read_flushed(home.path)
    sentence = None if flushed.ended else _taken_back(home, flushed.progress)
    progress, fresh = flushed.progress, uuid4().hex
    progress.soft = fresh
    progress.last_batches = []
    home.write_flushed(flushed)
    home.write_progress(progress)
    home.write_soft(Soft(fresh, boot_id(), progress.batch))
    _remove_layers(home)
    return sentence


def _taken_back(home: Home, flushed: Progress) -> str | None:
    try:
        last = decoded(home.read_progress())
        batches, records = last.batch - flushed.batch, last.events - flushed.events
        were, are = verb(batches, "was", "were"), verb(batches, "is", "are")
        amount = f"{counted(batches, 'batch', 'batches')} with {counted(records, 'record')}"
        repeated = f"{amount} that {were} not flushed {are} processed again"
        if batches <= 0:
            repeated = "later batches, if there were any, are processed again"
    except (StoreError, ValueError):
        repeated = "later batches are processed again (their number was lost too)"
    return (
        "the machine was restarted while the last run was active: the store is at its last flush, "
        f"at the end of batch {flushed.batch}; {repeated}. No output of it had been published"
    )


def _remove_layers(home: Home) -> None:
    """Removes the folders of layers that are no longer used."""
    kept = home.soft.id if home.soft is not None else ""
    for folder in (home.path / "soft").glob("*"):
        if folder.name != kept:
            shutil.rmtree(folder, ignore_errors=True)
