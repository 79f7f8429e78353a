"""The feeds of the served application: found in its description, read as of one batch.

A read uses the tables as of the last committed batch, overlaid with the records that are pending
after exactly that batch. If another batch was committed meanwhile, the read starts over.

Most reads take less time than handing them to another thread, and run on the event loop's thread.
The read of a consumer who follows many producers goes through as many tables, and runs in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from millstream.description import Description
from millstream.errors import (
    CursorConflict,
    CursorUnknown,
    DefinitionError,
    InputError,
    StaleRead,
    StoreError,
)
from millstream.feeds.names import META
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.tables import Tables
from millstream.feeds.records import check_name
from millstream.nearest import did_you_mean
from millstream.server.feeds.feed_costs import FeedCosts
from millstream.server.feeds.feed_log import FeedLog, FeedMoment
from millstream.server.http.answers import Refusal
from millstream.server.service import Service
from millstream.server.streams.catalogue import Catalogue
from millstream.stores.progress import Progress
from millstream.stores.reader import SlateReader
from millstream.stores.tables import BatchTables

T = TypeVar("T")
MANY = 200
"""Producers. The feed of a consumer who follows more is read in a thread."""
TRIES = 20
HOLD = 0.1
"""Seconds that shards stay open for further reads."""


@dataclass(frozen=True, slots=True)
class DatedValue(Generic[T]):
    """The result of a read, with the progress record of its batch."""

    value: T
    progress: Progress
    trouble: str | None
    """Why the result is not complete; None if it is."""
    cpu: float
    """Seconds of CPU time that the read took."""


class ServedFeeds:
    """The feeds of one name."""

    def __init__(self, service: Service, placed: PlacedFeeds, path: Path | None) -> None:
        self.placed, self.path = placed, path
        self.log = FeedLog(service, placed.events, path)
        self.costs = FeedCosts(placed)
        self._service = service
        self._seen: Progress | None = None
        self._holding: SlateReader | None = None
        """The reader whose shards are open, and will be closed soon."""

    @property
    def name(self) -> str:
        return self.placed.name

    async def read(self, consumer: str, make: Callable[[Tables, Pending], T]) -> DatedValue[T]:
        """Returns the result of `make` on the tables and the pending records.

        `make` may be called more than once, and in a thread.
        """
        store = self._service.store

        def here(tables: Tables, pending: Pending) -> T:
            meta = tables.get(self.placed.consumers, consumer, META)
            follows = (meta or {}).get("follows", 0) + len(pending.follows.get(consumer, ()))
            if follows > MANY:
                raise _TooMany
            return make(tables, pending)

        for _ in range(TRIES):
            moment = await self.log.now()
            if moment.progress is not self._seen:
                self._seen = moment.progress
                self.costs.progressed(moment.progress)
            reader = store.reader
            self._let_go_soon(reader)
            try:
                return _read(reader, moment, here, hold=True)
            except _TooMany:
                pass
            except (_MovedOn, StaleRead):
                continue
            moment = await self.log.now(shared=True)
            try:
                with store.lease() as reader:
                    return await self._service.in_thread(_read, reader, moment, make)
            except (_MovedOn, StaleRead):
                continue
        raise StaleRead(
            f"feeds {self.name!r}: batches are committed faster than a feed can be read; try again"
        )

    def _let_go_soon(self, reader: SlateReader) -> None:
        """Schedules the closing of shards that reads leave open, `HOLD` seconds from the first."""
        if self._holding is not reader:
            self._holding = reader
            asyncio.get_running_loop().call_later(HOLD, self._let_go, reader)

    def _let_go(self, reader: SlateReader) -> None:
        reader.let_go()
        if self._holding is reader:
            self._holding = None


class _TooMany(Exception):
    """The consumer follows too many producers for a read on the event loop's thread."""


class _MovedOn(Exception):
    """The store no longer has the batch that was to be read."""


def _read(
    reader: SlateReader,
    moment: FeedMoment,
    make: Callable[[Tables, Pending], T],
    *,
    hold: bool = False,
) -> DatedValue[T]:
    started = time.thread_time()
    value = _as_of(reader, moment, lambda tables: make(tables, moment.pending), hold)
    return DatedValue(value, moment.progress, moment.trouble, time.thread_time() - started)


def _as_of(
    reader: SlateReader, moment: FeedMoment, read: Callable[[BatchTables], T], hold: bool
) -> T:
    """Reads the moment's own batch: its pending records are right for no other batch."""

    def read_batch(tables: BatchTables) -> T:
        if tables.batch != moment.progress.batch:
            raise _MovedOn
        return read(tables)

    return reader.read_tables(read_batch, moment.progress.batch, hold=hold)


class Networks:
    """All feeds of the served application. One per server."""

    def __init__(self, service: Service, catalogue: Catalogue) -> None:
        self.service, self._catalogue = service, catalogue
        self._of: Description | None = None
        self._networks: dict[str, ServedFeeds] = {}

    def all(self) -> dict[str, ServedFeeds]:
        """Returns the current feeds of the application, by name."""
        description = self.service.store.description()
        if description is not self._of:
            known, self._networks = self._networks, {}
            for name, part in (description.parts if description else {}).items():
                if part.get("kind") == "feeds":
                    self._networks[name] = self._network(name, part, known)
            for network in known.values():
                if network not in self._networks.values():
                    network.log.close()
            self._of = description
        return self._networks

    def named(self, name: str | None) -> ServedFeeds:
        """Returns the feeds of that name, or the only ones if it is None; raises Refusal if
        there are no such feeds."""
        networks = self.all()
        if not networks:
            raise Refusal(
                404,
                "the application has no feeds; add some with app.add(ms.feeds.Feeds(), "
                'name="feeds") and start it',
            )
        if name is None:
            if len(networks) > 1:
                raise Refusal(
                    400,
                    f"the application has several feeds, {', '.join(networks)}: say which with "
                    "parameter 'feeds'",
                )
            return next(iter(networks.values()))
        if name not in networks:
            hint = did_you_mean(name, networks)
            raise Refusal(404, f"there are no feeds {name[:100]!r}; {hint}")
        return networks[name]

    async def close(self) -> None:
        for network in self._networks.values():
            network.log.close()

    def _network(
        self, name: str, part: dict[str, Any], known: dict[str, ServedFeeds]
    ) -> ServedFeeds:
        """Returns the network of a description's part; the known one if nothing has changed."""
        try:
            placed = PlacedFeeds.read(name, part)
        except DefinitionError as error:
            raise StoreError(
                f"{self.service.store.path}: the description of feeds {name!r} cannot be "
                f"understood ({error}); run the application with this version of Millstream"
            ) from error
        stream = self._catalogue.streams().get(placed.events)
        path = stream.log if stream is not None and stream.posts else None
        before = known.get(name)
        if before is not None and (before.placed, before.path) == (placed, path):
            return before
        return ServedFeeds(self.service, placed, path)


def refused_request(error: InputError) -> Refusal:
    """Returns the refusal of a request for a feed that cannot be read."""
    status = {CursorUnknown: 404, CursorConflict: 409}.get(type(error), 400)
    return Refusal(status, str(error))


def name_in(request_names: dict[str, str], role: str) -> str:
    """Returns the consumer or producer in a path; raises Refusal if the name is not valid."""
    name = request_names[role]
    try:
        check_name(role, name)
    except InputError as error:
        raise Refusal(400, str(error)) from None
    return name
