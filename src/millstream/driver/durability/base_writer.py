"""Writes bases in the background, while the tasks of this process continue.

The driver tells a task which of its shards need a new base. The task takes a snapshot of the local
copy, which costs nothing, and continues; a thread writes the rows to the place. A later report of
the same process names the finished bases. If the process ends first, the driver asks again.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from millstream.errors import MillstreamError
from millstream.places.place import Place
from millstream.stores.lmdb import LmdbView
from millstream.stores.shared.manifest import BaseRef, Lineage
from millstream.stores.shared.shard_base import write_base
from millstream.stores.shared.shared_store import PATIENCE

MOST_AT_ONCE = 2
"""The maximum of open snapshots: while one is open, its copy cannot reuse freed space."""


class BaseWriting:
    """The bases that a process is writing."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="base")
        self._writing: dict[int, Future[BaseRef | None]] = {}

    def takes(self, shard: int) -> bool:
        """True if a base of the shard can be started now."""
        return len(self._writing) < MOST_AT_ONCE and shard not in self._writing

    def begin(self, shard: int, batch: int, lineage: Lineage, view: LmdbView) -> None:
        """Starts writing a base from `view`, which shows the end of `batch`, and then closes it."""
        self._writing[shard] = self._pool.submit(self._write, shard, batch, lineage, view)

    def finished(self) -> list[BaseRef]:
        """Returns the bases that were finished since the last call."""
        done = {shard: future for shard, future in self._writing.items() if future.done()}
        for shard in done:
            del self._writing[shard]
        refs = [future.result() for future in done.values()]
        return [ref for ref in refs if ref is not None]

    def close(self) -> None:
        """Cancels the bases that have not been started, and waits for the one being written."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _write(self, shard: int, batch: int, lineage: Lineage, view: LmdbView) -> BaseRef | None:
        with view:
            try:
                return write_base(self._place, shard, batch, lineage, view, PATIENCE)
            except MillstreamError:
                return None  # the partial object is garbage; the driver asks again
