"""The directory of an application's store: what lies where, who holds it, what is committed.

store.json        the application, its shards and its updates; fixed when it is made
epoch             the number of the last driver start
lock              held by the driver that runs
progress          the last committed batch: writing it is what commits a batch
soft.json, soft/  batches that are not flushed yet, and progress.flushed the last that is (`soft`)
shards/           the rows; shards-N after a vacuum, as store.json says
sources/          the logs of files taken in
staging/          output of committed batches that the sinks have not published yet
logs/             the event logs: of sources, of outputs, of late events and of dead letters
actions/          how far each action is: what was carried out outside
packages/         code of Python jobs, for agents that fetch it
app.json          the application in words, for whoever serves the store
server.lock       held by the server that serves it
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from millstream.durable import read_record, sync, write_record
from millstream.errors import StaleRead, StoreError, StoreLocked
from millstream.stores.contract import Store
from millstream.stores.layered import LayeredStore
from millstream.stores.lmdb import LmdbStore
from millstream.stores.progress import Progress
from millstream.stores.soft import FLUSHED, SOFT, Flushed, Soft, read_committed, read_soft

FORMAT = 3
"""Raised when what is stored changes: 2 gave every row a checksum, 3 has no files of Spark's."""
READABLE = (2, 3)
"""A store of an older one is carried over by the first start (`driver.format_upgrade`)."""
SHARDS = 16
"""How many shards a new store has unless it is told: each is an fsync of every commit."""


class Facts(msgspec.Struct):
    """What a store is, for as long as it lives."""

    app: str
    shards: int
    updates: dict[str, str]
    """Each update's kind of slate: dict, dataclass or table."""
    id: str = ""
    streams: list[str] = []
    """Every stream there ever was: its place is its number in stored events, for ever."""
    functions: list[str] = []
    """Every function there ever was that may have stored events."""
    parts: dict[str, str] = {}
    """Of each part of an application, such as a job, what must not change while its slates are
    here, in words."""
    folder: str = "shards"
    """The folder of the rows: another one after each `millstream vacuum`."""
    format: int = FORMAT


class Home:
    """A store's directory."""

    def __init__(self, path: Path, facts: Facts, soft: Soft | None = None) -> None:
        self.path = path
        self.facts = facts
        self.soft = soft
        """The layer of batches that are not flushed; None if each is."""
        self._seen_epoch = 0

    @classmethod
    def open(cls, path: Path) -> Home:
        """A store that is there; StoreError if there is none."""
        data = read_record(path / "store.json")
        if data is None:
            raise StoreError(
                f"{path}: no store is there; run the application first, or name its store "
                "with --store"
            )
        facts = msgspec.json.decode(data, type=Facts)
        if facts.format not in READABLE:
            raise StoreError(
                f"{path}: the store has format {facts.format}, and this version of Millstream "
                f"reads formats {READABLE[0]} to {FORMAT}; run it with the version that wrote it, "
                "or begin a new store with --store and replay the sources"
            )
        return cls(path, facts, read_soft(path))

    @classmethod
    def make(cls, path: Path, app: str, shards: int | None, updates: dict[str, str]) -> Home:
        """The application's store, made if it is not there. Its shards stay as they are."""
        _make_folders(path, path / "sources", path / "staging")
        if read_record(path / "store.json") is None:
            _check_empty(path)
            facts = Facts(app, shards or SHARDS, updates, id=uuid4().hex)
            # First, so that a store without it has lost it.
            write_record(path / "progress", msgspec.json.encode(Progress()))
            write_record(path / "store.json", msgspec.json.encode(facts))
        home = cls.open(path)
        _make_folders(home.shards)
        if home.facts.app != app:
            raise StoreError(
                f"{path}: this is the store of app {home.facts.app!r}, not of {app!r}; name "
                "another with --store"
            )
        if shards is not None and home.facts.shards != shards:
            raise StoreError(
                f"{path}: the store has {home.facts.shards} shards, and they are fixed; this run "
                f"asks for {shards}: leave --shards out, or begin a new store"
            )
        for name, kind in updates.items():
            stored = home.facts.updates.get(name, kind)
            if stored != kind:
                raise StoreError(
                    f"{path}: the slates of update {name!r} are stored as {stored}, and the "
                    f"application now says {kind}; give the update a new name="
                )
        merged = {**home.facts.updates, **updates}
        if merged != home.facts.updates:
            home.facts.updates = merged
            home.write_facts()
        return home

    def number_streams(self, names: Iterable[str]) -> None:
        """Give every stream a number that it keeps, however the application is changed."""
        self._know(self.facts.streams, names)

    def know_functions(self, names: Iterable[str]) -> None:
        """Remember which functions may have stored events."""
        self._know(self.facts.functions, names)

    def know_parts(self, lasting: Mapping[str, str]) -> None:
        """Remember what must not change of the parts."""
        if not lasting.items() <= self.facts.parts.items():
            self.facts.parts.update(lasting)
            self.write_facts()

    def _know(self, known: list[str], names: Iterable[str]) -> None:
        fresh = [name for name in names if name not in known]
        if fresh:
            known.extend(fresh)
            self.write_facts()

    def write_facts(self) -> None:
        """Let the facts be what they are now."""
        write_record(self.path / "store.json", msgspec.json.encode(self.facts))

    @property
    def shards(self) -> Path:
        return self.path / self.facts.folder

    @property
    def staging(self) -> Path:
        return self.path / "staging"

    def source_log(self, source: str) -> Path:
        return self.path / "sources" / f"{source}.log"

    def log_of(self, stream: str) -> Path:
        return log_of(self.path, stream)

    def store(self) -> Store:
        """For whoever reads the committed batch."""
        soft = self.soft if self.soft is not None and self.soft.survives() else None
        return opened(self.path, self.facts.shards, soft)

    def at_least_epoch(self, seen: int) -> None:
        """Let the next epoch be above what a shard has seen: the file may be lost or damaged."""
        self._seen_epoch = seen

    def raise_epoch(self) -> int:
        """A number higher than that of every driver before, on disk when this returns."""
        try:
            data = read_record(self.path / "epoch")
            last = int(data) if data else 0
        except (StoreError, ValueError):
            last = 0  # every driver has left its number in every shard
        epoch = 1 + max(last, self._seen_epoch)
        write_record(self.path / "epoch", str(epoch).encode())
        return epoch

    def write_progress(self, progress: Any, *, synced: bool = True) -> None:
        """Commit a batch: from here on readers see it."""
        write_record(self.path / "progress", msgspec.json.encode(progress), synced=synced)

    def read_progress(self) -> bytes | None:
        """What the driver wrote last, be it flushed or not."""
        return read_record(self.path / "progress")

    def write_flushed(self, flushed: Flushed) -> None:
        """Flush: no cut of the power takes the batch back from here on."""
        write_record(self.path / FLUSHED, msgspec.json.encode(flushed))

    def write_soft(self, soft: Soft | None) -> None:
        """Have this layer from here on, or none."""
        if soft is not None:
            write_record(self.path / SOFT, msgspec.json.encode(soft))
        else:
            (self.path / SOFT).unlink(missing_ok=True)
            sync(self.path)
        self.soft = soft

    def committed(self) -> int:
        """The last committed batch that this, as it was opened, can read; -1 if there is none."""
        return self.batch_of(read_committed(self.path))

    def batch_of(self, progress: Progress) -> int:
        """The batch of a progress; StaleRead if the store has another layer than it had."""
        if progress.soft != (self.soft.id if self.soft else "") and progress.batch >= 0:
            raise StaleRead(
                f"{self.path}: the application was started with another flush setting since the "
                "store was opened; open it again"
            )
        return progress.batch


def opened(path: Path, shards: int, soft: Soft | None) -> Store:
    """The rows of a store, with its layer if there is one."""
    folder = Home.open(path).shards
    if soft is None:
        return LmdbStore(folder, shards)
    return LayeredStore(folder, soft.folder(path), shards, soft.since)


def _check_empty(path: Path) -> None:
    """Refuse to make a store where another has lost its facts."""
    for name in ("progress", FLUSHED, SOFT):
        data = read_record(path / name)
        if data is not None and (name != "progress" or msgspec.json.decode(data)["batch"] >= 0):
            raise StoreError(
                f"{path / 'store.json'}: is missing, and {name} says that there was a store; "
                "restore the file, or the whole store from a copy, or begin a new one with --store"
            )
    if any(path.glob("shards*/shard-*/data.mdb")):
        raise StoreError(
            f"{path / 'store.json'}: is missing, and there are shards; restore the file, or the "
            "whole store from a copy, or begin a new one with --store"
        )


def log_of(store: Path, stream: str) -> Path:
    """Where the event log of a stream lies, unless its address says another place."""
    return store / "logs" / stream


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a store: one driver at a time. Freed by the system if the driver dies."""
    _make_folders(path)
    try:
        handle = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"{path / 'lock'}: cannot be opened: {error.strerror}; a run needs the right to write "
            "to its store, and room for it: give it, or name another with --store (the slates that "
            "are there can be read meanwhile)"
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 32).decode(errors="replace").strip()
            raise StoreLocked(
                f"{path}: another driver holds this store (process {holder or 'unknown'}); "
                "stop it first, or name another store with --store"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
        os.ftruncate(handle, 0)  # a driver that ended by itself; of one that died, its id stays
    finally:
        os.close(handle)


def _make_folders(*paths: Path) -> None:
    for path in paths:
        try:
            if not path.is_dir():
                path.mkdir(parents=True)
                sync(path.parent)
        except OSError as error:
            raise StoreError(
                f"{path}: the store cannot be made: {error.strerror or error}; name another with "
                "--store"
            ) from error
