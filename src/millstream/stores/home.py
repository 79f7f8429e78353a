"""The directory of an application's store: its files, its lock and its committed batch.

store.json        the application, its shards and its updates
epoch             the number of the last driver start
lock              held by the driver that runs
progress          the last committed batch: writing this file commits a batch
soft.json, soft/  batches that are not flushed yet; progress.flushed: the last flushed one (`soft`)
shards/           the rows; shards-N after a vacuum: store.json names the folder
sources/          the logs of files taken in
staging/          output of committed batches that the sinks have not published yet
logs/             the event logs: of sources, of outputs, of late events and of dead letters
actions/          the progress of each action: what was carried out outside
packages/         code of Python jobs, for agents that fetch it
app.json          a description of the application, for servers of the store
server.lock       held by the server that serves it
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from uuid import uuid4

import msgspec

from millstream.column_types import ColumnType
from millstream.counted_nouns import counted
from millstream.durable import (
    read_record,
    sync,
    with_checksum,
    write_record,
    write_unsynced,
    write_whole,
)
from millstream.errors import StaleRead, StoreError
from millstream.places.place import Place
from millstream.stores.contract import Store
from millstream.stores.layered import LayeredStore
from millstream.stores.lmdb import LmdbStore
from millstream.stores.progress import Progress
from millstream.stores.soft import FLUSHED, SOFT, Flushed, Soft, read_committed, read_soft
from millstream.stores.store_lock import held as held
from millstream.stores.store_lock import is_held as is_held
from millstream.stores.store_lock import make_folders

FORMAT = 6
"""Raised when the stored format changes: 2 gave every row a checksum, 3 has no Spark files, in 4 an
update's rows may be stored under another name than its own, 5 has `progress` in parts, in 6 a
shard may have recent rows."""
READABLE = (2, 3, 4, 5, 6)
"""The first start upgrades a store of an older format (`driver.startup.format_upgrade`)."""
SHARDS = 16
"""The default number of shards of a new store: each costs every commit an fsync."""


class SlateShape(msgspec.Struct):
    """The form of an update's slates in the last run."""

    versions: list[int]
    """The versions that stored slates may have; the last is the update's own."""
    fields: dict[str, str] = {}
    """A dataclass's fields, each with its type as text."""
    digest: str = ""
    """A digest of everything known about the type: another form has another digest."""
    columns: ColumnType | None = None
    """A dataclass as columns, for tables of its slates."""


class Facts(msgspec.Struct):
    """The lasting facts about a store: the content of store.json."""

    app: str
    shards: int
    updates: dict[str, str]
    """Each update's kind of slate: dict, dataclass or table."""
    id: str = ""
    streams: list[str] = []
    """Every stream that ever existed. A stream's index is its number in stored events, for ever."""
    functions: list[str] = []
    """Every function that ever existed and may have stored events."""
    parts: dict[str, str] = {}
    """For each part of an application, such as a job: a text of what must not change while the
    store has its slates."""
    folder: str = "shards"
    """The folder of the rows; each `millstream vacuum` makes a new one."""
    slates: dict[str, SlateShape] = {}
    """The form of each update's slates; unknown for an update that is not listed."""
    stored_as: dict[str, str] = {}
    """Updates whose rows are stored under another name: one that they had before."""
    retired: list[str] = []
    """Updates that the application no longer has, as its owner has confirmed."""
    here: list[int] | None = None
    """The shards that are here, in a mirror of some shards of a shared store. None: all."""
    format: int = FORMAT

    def stored(self, update: str) -> str:
        """The name under which an update's rows are stored."""
        return self.stored_as.get(update, update)


class Home:
    """A store's directory."""

    def __init__(self, path: Path, facts: Facts, soft: Soft | None = None) -> None:
        self.path = path
        self.facts = facts
        self.soft = soft
        """The layer of batches that are not flushed; None if every batch is flushed."""
        self._seen_epoch = 0

    @property
    def place(self) -> Place | None:
        """The place of a shared store; None if the store is this folder."""
        return None

    @property
    def name(self) -> str:
        """The store's name for the user."""
        return str(self.path)

    @classmethod
    def open(cls, path: Path) -> Home:
        """Opens an existing store; StoreError if there is none."""
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
                f"reads formats {READABLE[0]} to {READABLE[-1]}; run it with the version that "
                "wrote it, or begin a new store with --store and replay the sources"
            )
        return cls(path, facts, read_soft(path))

    @classmethod
    def make(cls, path: Path, app: str, shards: int | None, updates: dict[str, str]) -> Home:
        """Opens the application's store; creates it if missing. The number of shards is fixed."""
        make_folders(path, path / "sources", path / "staging")
        if read_record(path / "store.json") is None:
            _check_empty(path)
            facts = Facts(app, shards or SHARDS, updates, id=uuid4().hex)
            # Written first: so a store that has no progress has lost it.
            write_record(path / "progress", msgspec.json.encode(Progress()))
            write_record(path / "store.json", msgspec.json.encode(facts))
        home = cls.open(path)
        make_folders(home.shards)
        home.fit(app, shards)
        return home

    def fit(self, app: str, shards: int | None) -> None:
        """Refuse another application than the store's, and another number of shards."""
        if self.facts.app != app:
            raise StoreError(
                f"{self.name}: this is the store of app {self.facts.app!r}, not of {app!r}; name "
                "another with --store"
            )
        if shards is not None and self.facts.shards != shards:
            raise StoreError(
                f"{self.name}: the store has {counted(self.facts.shards, 'shard')}, and the number "
                f"is fixed; this run asks for {shards}: leave --shards out, or change it with "
                "`millstream reshard`"
            )

    def know_slates(
        self,
        updates: Mapping[str, str],
        shapes: Mapping[str, SlateShape],
        renamed: Mapping[str, str],
        retired: Iterable[str],
    ) -> None:
        """Record the updates, with the kind and the form of their slates.

        `renamed` has the former name of each update that takes over the slates of that name.
        """
        facts = self.facts
        before = msgspec.json.encode(facts)
        for name, former in renamed.items():
            stored = facts.stored_as.pop(former, former)
            facts.updates.pop(former, None)
            facts.slates.pop(former, None)
            if stored != name:
                facts.stored_as[name] = stored
        for name in updates:
            others = {facts.stored(other) for other in facts.updates if other != name}
            if name not in facts.updates and name not in renamed and name in others:
                free = (f"{name}~{number}" for number in count(2))  # its own name is taken
                facts.stored_as[name] = next(stored for stored in free if stored not in others)
        facts.updates = {**facts.updates, **updates}
        facts.slates = {**facts.slates, **shapes}
        facts.retired = sorted({*facts.retired, *retired} - set(updates))
        if msgspec.json.encode(facts) != before:
            self.write_facts()

    def number_streams(self, names: Iterable[str]) -> None:
        """Give every stream a number that it keeps, however the application changes."""
        self._know(self.facts.streams, names)

    def know_functions(self, names: Iterable[str]) -> None:
        """Record the functions that may have stored events."""
        self._know(self.facts.functions, names)

    def know_parts(self, lasting: Mapping[str, str]) -> None:
        """Record what must not change in each part."""
        if not lasting.items() <= self.facts.parts.items():
            self.facts.parts.update(lasting)
            self.write_facts()

    def _know(self, known: list[str], names: Iterable[str]) -> None:
        fresh = [name for name in names if name not in known]
        if fresh:
            known.extend(fresh)
            self.write_facts()

    def write_facts(self) -> None:
        """Write the current facts to store.json."""
        write_record(self.path / "store.json", self._stored_facts())

    def _stored_facts(self) -> bytes:
        """Returns the facts as they are stored, with the present format: from format 3 on, rows are
        the same, and `progress` is only written as it is now."""
        if self.facts.format > 2:
            self.facts.format = FORMAT
        return msgspec.json.encode(self.facts)

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
        """Opens the rows, to read the committed batch."""
        self.check_readable()
        soft = self.soft if self.soft is not None and self.soft.survives() else None
        return opened(self.path, self.facts.shards, soft)

    def check_readable(self) -> None:
        """Raises StoreError if the rows cannot be read now for want of rights."""
        # A store that is being created has no folder of shards yet, and no slate.
        unwritable = self.shards.exists() and not os.access(self.shards, os.W_OK)
        if unwritable and is_held(self.path):
            raise StoreError(
                f"{self.path}: its application runs, and a reader beside it must be able to write "
                "to the store (LMDB's lock); read it as the application's user, ask its server, or "
                "wait until it has stopped"
            )

    def at_least_epoch(self, seen: int) -> None:
        """Make the next epoch higher than `seen`, an epoch that a shard has seen.

        The file `epoch` may be lost or damaged.
        """
        self._seen_epoch = seen

    def raise_epoch(self) -> int:
        """Returns an epoch higher than that of any driver before; it is on disk by then."""
        try:
            data = read_record(self.path / "epoch")
            last = int(data) if data else 0
        except (StoreError, ValueError):
            last = 0  # every driver has left its number in every shard
        epoch = 1 + max(last, self._seen_epoch)
        write_record(self.path / "epoch", str(epoch).encode())
        return epoch

    def take_over(self, progress: Progress) -> int:
        """Make this process the only one that can commit batches after `progress`.

        Returns its epoch.
        """
        return self.raise_epoch()

    def stage(self, name: str, data: bytes, *, synced: bool = True) -> None:
        """Keep output of a batch until the sinks have it."""
        (write_whole if synced else write_unsynced)(self.staging / name, with_checksum(data))

    def fetch_staged(self, names: list[str]) -> None:
        """Bring staged files into the staging folder, if they exist anywhere."""

    def drop_staged(self, names: list[str]) -> None:
        """Remove staged files: the sinks have published them."""
        for name in names:
            (self.staging / name).unlink(missing_ok=True)

    def write_progress(self, progress: Progress, *, synced: bool = True) -> None:
        """Commit a batch: readers see it from now on."""
        write_record(self.path / "progress", msgspec.json.encode(progress), synced=synced)

    def read_progress(self) -> bytes | None:
        """The progress that the driver wrote last, flushed or not."""
        return read_record(self.path / "progress")

    def write_flushed(self, flushed: Flushed) -> None:
        """Record a flush: from now on the batch survives a power cut."""
        write_record(self.path / FLUSHED, msgspec.json.encode(flushed))

    def write_soft(self, soft: Soft | None) -> None:
        """Use this layer from now on, or none."""
        if soft is not None:
            write_record(self.path / SOFT, msgspec.json.encode(soft))
        else:
            (self.path / SOFT).unlink(missing_ok=True)
            sync(self.path)
        self.soft = soft

    def committed(self) -> int:
        """The last committed batch that this `Home`, as it was opened, can read; -1 if none."""
        return self.batch_of(read_committed(self.path))

    def batch_of(self, progress: Progress) -> int:
        """The batch of a progress; StaleRead if its layer or folder is not the opened one."""
        if progress.soft != (self.soft.id if self.soft else "") and progress.batch >= 0:
            raise StaleRead(
                f"{self.path}: the application was started with another flush setting since the "
                "store was opened; open it again"
            )
        if progress.folder and progress.folder != self.facts.folder:
            raise StaleRead(
                f"{self.path}: the mirror was loaded anew since it was opened; open it again"
            )
        return progress.batch


def opened(path: Path, shards: int, soft: Soft | None) -> Store:
    """Opens the rows of a store, with its layer if there is one."""
    folder = Home.open(path).shards
    if soft is None:
        return LmdbStore(folder, shards)
    return LayeredStore(folder, soft.folder(path), shards, soft.since)


def _check_empty(path: Path) -> None:
    """Refuse to create a store in a folder that holds one without its store.json."""
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
    """The folder of a stream's event log, unless the log's address names another place."""
    return store / "logs" / stream
