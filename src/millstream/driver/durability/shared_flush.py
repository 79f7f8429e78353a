"""Replaces flushing on a shared store, which has none: a batch is durable once its commit exists.

Instead, this keeps the number of the store's objects small. Shards whose changes outweigh their
base get a new base, written by the tasks that hold their copies. Long sequences of changes objects
are packed by a background thread of the driver. A later commit names both, so they cost the batches
no time.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from millstream.driver.durability.disk_flush import Flushing
from millstream.driver.job import SharedJob
from millstream.driver.outputs.publisher import Publisher
from millstream.engine.progress import Report
from millstream.errors import MillstreamError
from millstream.places.host_cache import cache_folder
from millstream.stores.contract import Store
from millstream.stores.progress import Progress
from millstream.stores.shared.changes_object import write_pack
from millstream.stores.shared.copies import Copies
from millstream.stores.shared.manifest import ChangesSegment, PackRef
from millstream.stores.shared.shared_home import SharedHome
from millstream.stores.shared.shared_store import SharedStore

BASES_AT_ONCE = 4
"""The most bases that are requested at a time."""
ASK_AGAIN_SECONDS = 120.0
"""A base that is not finished by then is requested again: its process may have ended."""


class SharedFlushing(Flushing):
    """The replacement of flushing, for a driver on a shared store."""

    def __init__(self, home: SharedHome) -> None:
        super().__init__(home, None)
        self._shared = home
        self._copies: Copies | None = None
        self._asked: dict[int, float] = {}
        """The time at which the base of each shard was requested."""
        self._packer = ThreadPoolExecutor(1, thread_name_prefix="pack")
        self._packing: Future[PackRef | None] | None = None

    def open(self) -> Store:
        """Opens the store as of the last commit, in copies on this host."""
        home = self._shared
        if self._copies is None:
            folder = cache_folder(home.cache) / "copies"
            self._copies = Copies(home.place, home.facts.id, folder)
        batch = home.committed_progress().batch + 1
        return SharedStore(home.place, self._copies, batch, home.lineages)

    def next_store(self) -> Store:
        return self.open()

    def shared_job(self) -> SharedJob:
        home, now = self._shared, time.monotonic()
        for shard, asked_at in [*self._asked.items()]:
            if now - asked_at > ASK_AGAIN_SECONDS:
                del self._asked[shard]
        for shard in home.manifest.due_bases(BASES_AT_ONCE):
            if len(self._asked) < BASES_AT_ONCE:
                self._asked.setdefault(shard, now)
        bases = frozenset(self._asked)
        return SharedJob(home.place.address, home.facts.id, home.cache, home.lineages, bases)

    def written(self, reports: list[Report]) -> None:
        changes = [ref for report in reports for ref in report.changes]
        bases = [ref for report in reports for ref in report.bases]
        for base in bases:
            self._asked.pop(base.shard, None)
        self._shared.name_written(changes, bases, self._packed())

    def _packed(self) -> list[PackRef]:
        """Returns the finished pack, if any; otherwise starts the next pack or sweep if due."""
        if self._packing is not None:
            if not self._packing.done():
                return []
            pack = self._packing.result()
            self._packing = None
            if pack is not None:
                return [pack]  # the next one can start once this one is committed
        due = self._shared.manifest.due_pack()
        if due:
            self._packing = self._packer.submit(self._pack, due)
        elif self._shared.is_to_be_swept(time.monotonic()):
            self._packing = self._packer.submit(self._sweep)
        return []

    def _pack(self, segments: list[ChangesSegment]) -> PackRef | None:
        try:
            return write_pack(self._shared.place, segments)
        except MillstreamError:
            return None  # it will be tried again

    def _sweep(self) -> None:
        try:
            self._shared.sweep(time.monotonic())
        except MillstreamError:
            pass  # `millstream vacuum` sweeps the rest

    def recover(self, epoch: int, progress: Progress) -> None:
        """Does nothing: objects that no commit names do not count."""

    def last_batches(self) -> list[int]:
        return []

    def settle(self, progress: Progress, publisher: Publisher) -> None:
        """Publishes what the last driver has left unpublished."""
        publisher.publish_all(progress.unpublished, again=True)
        progress.unpublished = []
        publisher.clear()

    def close(self) -> None:
        self._packer.shutdown(wait=True, cancel_futures=True)
        if self._copies is not None:
            self._copies.close()
            self._copies = None
