"""The records of a store's soft layer (`layered`): its identity, and the last flush.

soft.json           only if there is a layer: its folder in `soft/`, its boot id, since which batch
progress.flushed    the progress of the last flushed batch

A layer cannot be trusted after the machine has rebooted: its files were never flushed. So its
record has the system's boot id, and nobody opens a layer of another boot. Until a driver has thrown
it away (`driver.durability.disk_flush`), readers of the store see the last flushed batch.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from millstream.durable import boot_id as boot_id
from millstream.durable import read_record
from millstream.stores.progress import Progress, decoded

SOFT = "soft.json"
FLUSHED = "progress.flushed"


class Soft(msgspec.Struct, frozen=True):
    """A soft layer."""

    id: str
    """The name of its folder; never reused, so that an old driver's task cannot write to it."""
    boot: str
    since: int
    """The batch up to which base had everything when the layer was begun."""

    def survives(self) -> bool:
        """True if its files are as they were written: the machine has not rebooted since.

        False on a system without a boot id, where this is not known.
        """
        return self.boot != "" and self.boot == boot_id()

    def folder(self, store: Path) -> Path:
        return store / "soft" / self.id


class StoredFlush(msgspec.Struct):
    """The content of `progress.flushed`; `decoded` reads the progress, also an earlier form."""

    progress: msgspec.Raw
    ended: bool = False
    base_batches: list[int] = []


class Flushed(msgspec.Struct):
    """The last flush: the state that the application has after a power cut."""

    progress: Progress
    ended: bool = False
    """True if the driver ended by itself: nothing was committed after this flush."""
    base_batches: list[int] = []
    """The last flush that changed each shard of base, as base counts: a shard with a lower number
    has lost that flush."""


def read_soft(store: Path) -> Soft | None:
    """The store's layer; None if every batch is flushed."""
    data = read_record(store / SOFT)
    return None if data is None else msgspec.json.decode(data, type=Soft)


def read_flushed(store: Path) -> Flushed:
    """The last flush; before the first one, a flush with no batch."""
    data = read_record(store / FLUSHED)
    if data is None:
        return Flushed(Progress())
    flushed = msgspec.json.decode(data, type=StoredFlush)
    return Flushed(decoded(flushed.progress), flushed.ended, flushed.base_batches)


def read_durable(store: Path) -> Progress:
    """The progress that survives a power cut: sources need not keep the records before it."""
    layered = read_soft(store) is not None
    return read_flushed(store).progress if layered else decoded(read_record(store / "progress"))


def read_committed(store: Path) -> Progress:
    """The progress of the batch as of which to read the store."""
    soft = read_soft(store)
    if soft is None or soft.survives():
        return decoded(read_record(store / "progress"))
    return read_flushed(store).progress
