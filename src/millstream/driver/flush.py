"""When batches are forced to disk: each one, or those of an interval together.

With `flush = "batch"` there is nothing here to do: every part of a batch is forced to disk as it is
written. With an interval, batches go to the store's soft layer (`stores.layered`), their progress
and their staged output are written and not forced, and nothing is published. A **flush** then does
for all of them what else is done for each:

1. base takes the rows of the layer, in every shard; staged output is forced to disk;
2. `progress.flushed` is written: **the batches are flushed**; a cut of the power leaves them;
3. the layer is emptied;
4. the sinks and logs get the output of the batches, in order, and the staged files go.

The end of a process, however hard, takes nothing of this back: the next driver finds the layer,
undoes what is ahead of `progress` and flushes. A cut of the power does: the layer may be damaged,
so it is thrown away unread. Since nothing of its batches was published, and sources keep what was
not flushed, they are simply done again.
"""

from __future__ import annotations

import shutil
import time
from uuid import uuid4

from millstream.driver.publisher import Publisher
from millstream.durable import sync
from millstream.engine.points import reach
from millstream.errors import StoreError
from millstream.stores.contract import Store
from millstream.stores.home import Home, opened
from millstream.stores.progress import Progress, decoded
from millstream.stores.soft import FLUSHED, Flushed, Soft, boot_id, read_durable, read_flushed

MOST_BATCHES = 500
"""So many batches with output are flushed before their time: each progress lists their files."""


class Flushing:
    """What a driver flushes, and when. `interval` is in microseconds; None: every batch."""

    def __init__(self, home: Home, interval: int | None) -> None:
        self._home = home
        self._interval = interval
        self._epoch = -1
        self._last = time.monotonic()
        self._store: Store | None = None
        self._flushed = read_durable(home.path) if home.soft is not None else None

    @property
    def soft(self) -> Soft | None:
        """The layer that batches go to; None if they are flushed."""
        return self._home.soft

    def durable(self, progress: Progress) -> Progress:
        """What no cut of the power takes back, of what the driver has come to."""
        return progress if self._flushed is None else self._flushed

    def open(self) -> Store:
        """The store, with its layer if it has one."""
        self._store = opened(self._home.path, self._home.facts.shards, self.soft)
        return self._store

    def recover(self, epoch: int, progress: Progress) -> None:
        """Bring every shard back to the last committed batch. Whether that can be done was asked
        before (`recovery`): this changes the store."""
        self._epoch = epoch
        store = self._store or self.open()
        if store.layer is not None:  # the last driver may not have got to it
            store.layer.clear(epoch, self.durable(progress).batch)
        for number in range(store.shards):
            store.shard(number).roll_back(epoch, progress.batch)

    def last_batches(self) -> list[int]:
        """The last batch that changed each shard."""
        assert self._store is not None
        return [self._store.shard(number).last_batch for number in range(self._store.shards)]

    def settle(self, progress: Progress, publisher: Publisher) -> None:
        """Flush and publish what the last driver has left, and change to this run's way."""
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
        """Note in a new progress what is not flushed; then it is to be written."""
        if self.soft is not None:
            after.soft = self.soft.id
            after.unpublished = list(before.unpublished)
            if after.staged:
                after.unpublished.append((after.batch, after.staged))

    def due(self, progress: Progress) -> bool:
        """Whether there is something to flush, and it is time."""
        if self._interval is None or self._flushed is None:
            return False
        if progress.batch <= self._flushed.batch:
            return False
        passed = time.monotonic() - self._last
        return passed * 1e6 >= self._interval or len(progress.unpublished) >= MOST_BATCHES

    def flush(
        self,
        progress: Progress,
        publisher: Publisher,
        *,
        ended: bool = False,
        again: bool = False,
    ) -> None:
        """Flush up to `progress`, and publish. Done `again` at a start, it changes nothing twice;
        once `ended`, nothing more is to come."""
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
        """Let go of the store."""
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
        """From batches that were flushed one by one to a layer."""
        assert self._store is not None
        progress.soft, progress.staged, progress.last_batches = uuid4().hex, [], []
        self._record(progress, ended=False)
        self.close()
        self._home.write_soft(Soft(progress.soft, boot_id(), progress.batch))
        self._home.write_progress(progress)
        self.recover(self._epoch, progress)
        _remove_layers(self._home)

    def _end_layer(self, progress: Progress) -> None:
        """The layer is empty: let batches be flushed one by one."""
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
    """After a cut of the power: go back to the last flush. Gives a sentence on what is lost.

    Every step can be done again: only the last one says that they were done.
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
        found = decoded(home.read_progress())
        batches, records = found.batch - flushed.batch, found.events - flushed.events
        what = f"{batches:,} batches with {records:,} records that were not flushed are done again"
        if batches <= 0:
            what = "what came after it, if anything did, is done again"
    except (StoreError, ValueError):
        what = "what came after it is done again (the record of how much that is was lost too)"
    return (
        f"the machine was started anew since the last run, which had not ended: the store is as it "
        f"was at its last flush, at the end of batch {flushed.batch}; {what}. No output of it had "
        "been published"
    )


def _remove_layers(home: Home) -> None:
    """Remove the folders of layers that are no more."""
    kept = home.soft.id if home.soft is not None else ""
    for folder in (home.path / "soft").glob("*"):
        if folder.name != kept:
            shutil.rmtree(folder, ignore_errors=True)
