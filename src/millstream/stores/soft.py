"""What is known of a store's soft layer (`layered`): which one it is, and what was flushed last.

soft.json           there is a layer: its folder under `soft/`, the boot it is of, since which batch
progress.flushed    the progress of the last flushed batch

A layer is not to be trusted after the machine was started anew: its files were never flushed. So it
is known by the system's boot id, and one of another boot is not opened, by nobody. Until a driver
has thrown it away (`driver.flush`), whoever reads the store sees the last flushed batch.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from millstream.durable import read_record
from millstream.stores.progress import Progress, decoded

SOFT = "soft.json"
FLUSHED = "progress.flushed"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Soft(msgspec.Struct, frozen=True):
    """A soft layer."""

    id: str
    """Its folder; no other layer ever had it, so a task of an old driver cannot write to it."""
    boot: str
    since: int
    """The batch up to which base had everything when the layer was begun."""

    def survives(self) -> bool:
        """Whether its files are as they were written: no power was cut since.

        Where the system has no boot id that is not known, and the answer is no.
        """
        return self.boot != "" and self.boot == boot_id()

    def folder(self, store: Path) -> Path:
        return store / "soft" / self.id


class Flushed(msgspec.Struct):
    """The last flush: what a cut of the power takes the application back to."""

    progress: Progress
    ended: bool = False
    """Whether nothing was to come after it: the driver ended by itself."""
    base_batches: list[int] = []
    """The last flush that changed each shard of base, as base counts: one that knows less has lost
    it."""


@cache
def boot_id() -> str:
    """What is another at each start of the machine; empty where the system does not say."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def read_soft(store: Path) -> Soft | None:
    """The store's layer; None if it has none, as when every batch is flushed."""
    data = read_record(store / SOFT)
    return None if data is None else msgspec.json.decode(data, type=Soft)


def read_flushed(store: Path) -> Flushed:
    """The last flush; of a store that has none yet, that of before the first batch."""
    data = read_record(store / FLUSHED)
    return Flushed(Progress()) if data is None else msgspec.json.decode(data, type=Flushed)


def read_durable(store: Path) -> Progress:
    """The progress that no cut of the power takes back: what the sources need not keep."""
    layered = read_soft(store) is not None
    return read_flushed(store).progress if layered else decoded(read_record(store / "progress"))


def read_committed(store: Path) -> Progress:
    """The progress of the batch that the store is to be read as of."""
    soft = read_soft(store)
    if soft is None or soft.survives():
        return decoded(read_record(store / "progress"))
    return read_flushed(store).progress
