"""The feeds of the application that is served: found in its description, read as of one batch.

A read looks at the tables as of the last committed batch, with what is pending after exactly that
one laid over them. If the store has moved on meanwhile it begins again, with both.

Most reads take less than passing them to another thread, and are done on the event loop's. That of
a consumer who follows many goes through as many tables, and is done beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from millstream.description import Description
from millstream.errors import DefinitionError, InputError, StaleRead, StoreError
from millstream.feeds.names import META
from millstream.feeds.pending import Pending
from millstream.feeds.placing import PlacedFeeds
from millstream.feeds.records import check_name
from millstream.feeds.tables import Tables
from millstream.nearest import did_you_mean
from millstream.server.answers import Refusal
from millstream.server.catalogue import Catalogue
from millstream.server.feed_costs import FeedCosts
from millstream.server.feed_log import FeedLog, Moment
from millstream.server.service import Service
from millstream.stores.progress import Progress
from millstream.stores.reader import SlateReader
from millstream.stores.tables import BatchTables

T = TypeVar("T")
MANY = 200
"""Producers; a consumer who follows more is read beside the event loop."""
TRIES = 20
HOLD = 0.1
"""Seconds that shards stay open for the reads that follow."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What was read, and of when it is."""

    value: T
    progress: Progress
    trouble: str | None
    """Why it is not complete; None if it is."""
    cpu: float
    """Seconds of processor time that the read took."""


class Network:
    """The feeds of one name."""

    def __init__(self, service: Service, placed: PlacedFeeds, path: Path | None) -> None:
        self.placed, self.path = placed, path
        self.log = FeedLog(service, placed.events, path)
        self.costs = FeedCosts(placed)
        self._service = service
        self._seen: Progress | None = None
        self._holding: SlateReader | None = None
        """What reads have left open, and is to be let go."""

    @property
    def name(self) -> str:
        return self.placed.name

    async def read(self, consumer: str, make: Callable[[Tables, Pending], T]) -> Found[T]:
        """What `make` makes of the tables and what is pending; it may be called more than once,
        and in a thread."""
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
        """Close what reads leave open, `HOLD` seconds after the first of them."""
        if self._holding is not reader:
            self._holding = reader
            asyncio.get_running_loop().call_later(HOLD, self._let_go, reader)

    def _let_go(self, reader: SlateReader) -> None:
        reader.let_go()
        if self._holding is reader:
            self._holding = None


class _TooMany(Exception):
    """The consumer follows too many to be read on the event loop's thread."""


class _MovedOn(Exception):
    """The store has forgotten the batch that was to be read."""


def _read(
    reader: SlateReader,
    moment: Moment,
    make: Callable[[Tables, Pending], T],
    *,
    hold: bool = False,
) -> Found[T]:
    begun = time.thread_time()
    value = _as_of(reader, moment, lambda tables: make(tables, moment.pending), hold)
    return Found(value, moment.progress, moment.trouble, time.thread_time() - begun)


def _as_of(reader: SlateReader, moment: Moment, read: Callable[[BatchTables], T], hold: bool) -> T:
    """What is read of the moment's own batch; what is pending is right for no other."""

    def one(tables: BatchTables) -> T:
        if tables.batch != moment.progress.batch:
            raise _MovedOn
        return read(tables)

    return reader.read_tables(one, moment.progress.batch, hold=hold)


class Networks:
    """All feeds of what a service serves. One a server."""

    def __init__(self, service: Service, catalogue: Catalogue) -> None:
        self.service, self._catalogue = service, catalogue
        self._of: Description | None = None
        self._networks: dict[str, Network] = {}

    def all(self) -> dict[str, Network]:
        """By their names, as the application is now."""
        description = self.service.store.description()
        if description is not self._of:
            known, self._networks = self._networks, {}
            for name, part in (description.parts if description else {}).items():
                if part.get("kind") == "feeds":
                    self._networks[name] = self._network(name, part, known)
            for one in known.values():
                if one not in self._networks.values():
                    one.log.close()
            self._of = description
        return self._networks

    def named(self, name: str | None) -> Network:
        """The feeds of that name, or the only ones; Refusal if there are none such."""
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

    def _network(self, name: str, part: dict[str, Any], known: dict[str, Network]) -> Network:
        """The one that there was, if it is still the same."""
        try:
            placed = PlacedFeeds.read(name, part)
        except DefinitionError as error:
            raise StoreError(
                f"{self.service.store.path}: the description of feeds {name!r} says something "
                f"unknown ({error}); run the application with this version of Millstream"
            ) from error
        stream = self._catalogue.streams().get(placed.events)
        path = stream.log if stream is not None and stream.posts else None
        before = known.get(name)
        if before is not None and (before.placed, before.path) == (placed, path):
            return before
        return Network(self.service, placed, path)


def name_in(request_names: dict[str, str], what: str) -> str:
    """A consumer or producer of a path; Refusal if it cannot be one."""
    name = request_names[what]
    try:
        check_name(what, name)
    except InputError as error:
        raise Refusal(400, str(error)) from None
    return name
