"""The work of `millstream feeds verify`: which consumers, each as of one batch, and over HTTP too.

Each consumer is read as of the batch that is the last one then: reads are short and hold up
nothing, however many consumers there are. Whether what consumers and producers know of each other
can be judged is asked of the same batch.

A server lays over the batch what the application has not taken in. So its feeds are compared only
while that is nothing but views and marks of what was seen, which change no feed; and if its batch
is the one that the tables were read as of.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec

from millstream.cli.stored_feeds import placed_in
from millstream.errors import CommandError
from millstream.feeds.differences import Difference
from millstream.feeds.items import Item
from millstream.feeds.verifying import Posts, Verified, brute_force, compared, merged, verify_feed
from millstream.log.reader import NOWHERE, LogReader
from millstream.stores.reader import SlateReader
from millstream.stores.soft import read_committed
from millstream.stores.tables import BatchTables

if TYPE_CHECKING:
    from millstream.client.client import Client

TRIES = 3
HTTP_PAGE = 100
HARMLESS = ("view", "seen")
"""Kinds of records that change what no feed shows."""


class Verifying:
    """One run of the command over a store, and over the server of `client` if there is one."""

    def __init__(self, store: Path, name: str | None, client: Client | None) -> None:
        self._store = store
        self._placed, description = placed_in(store, name)
        self._client = client
        sources = {source.name: source.log for source in description.sources}
        self._log = sources[self._placed.events]
        if client is not None and self._placed.name not in client.feeds.network():
            raise CommandError(
                f"the server has no feeds {self._placed.name!r}: it serves another application; "
                "name the one of this store with --url"
            )
        self.differences = 0
        self._consumers, self._posts, self._follows = 0, 0, 0
        self._wrong = 0
        self._asked = 0
        self._batches: set[int] = set()
        self._unsettled = 0

    def consumers(self, count: int | None, seed: int) -> Iterator[Verified]:
        """Look at so many consumers, or at all of them; in the order of their names."""
        if read_committed(self._store).batch < 0:
            return
        with SlateReader(self._store) as reader:
            known = sorted(reader.entries(self._placed.consumers, [])[1])
            if count is not None and count < len(known):
                known = sorted(Random(seed).sample(known, count))
            for consumer in _shown(known):
                verified = self._verified(reader, consumer)
                self._consumers += 1
                self._posts += verified.posts
                self._follows += verified.follows
                self.differences += len(verified.differences)
                self._wrong += bool(verified.differences)
                yield verified

    @property
    def compared_none(self) -> bool:
        """Whether a server was to be asked, and nothing that it said could be compared."""
        return self._client is not None and self._consumers > 0 and not self._asked

    def words(self) -> str:
        """What was looked at, and what came of it, in a line."""
        batches = sorted(self._batches)
        of = "" if not batches else f" as of batch {batches[0]:,}"
        of += f" to {batches[-1]:,}" if len(batches) > 1 else ""
        words = [f"looked at the feeds of {_counted(self._consumers, 'consumer')}{of}"]
        words += [f"{_counted(self._follows, 'pair')}, {_counted(self._posts, 'post')}"]
        if self._unsettled:
            of = _counted(self._unsettled, "consumer")
            words += [f"of {of} the producers' side was not judged, as events were on their way"]
        if self._client is not None:
            skipped = self._consumers - self._asked
            words += [f"{_counted(self._asked, 'feed')} over HTTP ({skipped:,} skipped)"]
        if not self.differences and self.compared_none:
            told = (
                "records are pending, or batches go by: nothing was compared over HTTP; try again"
            )
            return "; ".join([*words, f"in the store all is well, but {told} when it is calm"])
        if not self.differences:
            return "; ".join([*words, "all is well"])
        wrong = _counted(self._wrong, "feed")
        return "; ".join([*words, f"{_counted(self.differences, 'difference')} in {wrong}"])

    def _verified(self, reader: SlateReader, consumer: str) -> Verified:
        progress = read_committed(self._store)
        is_settled = progress.feedback == 0

        def look(tables: BatchTables) -> tuple[int, bool, Verified]:
            settled = is_settled and tables.batch == progress.batch
            found = verify_feed(self._placed, tables, consumer, settled=settled)
            return tables.batch, settled, found

        batch, settled, verified = reader.read_tables(look, progress.batch)
        self._batches.add(batch)
        self._unsettled += not settled
        if self._client is None:
            return verified
        more = self._over_http(self._client, reader, consumer)
        return replace(verified, differences=verified.differences + more)

    def _over_http(
        self, client: Client, reader: SlateReader, consumer: str
    ) -> tuple[Difference, ...]:
        """What differs in the feed that the server gives; nothing if that cannot be said."""

        def look(tables: BatchTables) -> tuple[int, Posts]:
            return tables.batch, merged(brute_force(self._placed, tables, consumer))

        feeds = client.feeds.named(self._placed.name)
        for _ in range(TRIES):
            if not self._is_idle():
                continue
            batch, expected = reader.read_tables(look)
            pages = [*feeds.older(consumer, limit=HTTP_PAGE, coherency="global", view=False)]
            of_batch = all(page.batch == batch and page.complete for page in pages)
            if not of_batch or not self._is_idle():
                continue
            self._asked += 1
            items = (
                Item(one.ts, one.producer, one.id, one.value, one.how, one.edited, one.via)
                for page in pages
                for one in page.items
            )
            return tuple(compared(consumer, "over HTTP", expected, items))
        return ()

    def _is_idle(self) -> bool:
        """Whether the application has taken in all that may change a feed."""
        if self._log is None:
            return True
        source = read_committed(self._store).sources.get(self._placed.events)
        taken = NOWHERE if source is None or source.position is None else source.position
        log = LogReader(self._log)
        try:
            lines = (line for block in log.blocks(taken[0], log.end[0]) for line in block.lines)
            return all(msgspec.json.decode(line, type=_Kind).kind in HARMLESS for line in lines)
        finally:
            log.close()


class _Kind(msgspec.Struct):
    kind: str = ""


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _shown(consumers: list[str]) -> Iterable[str]:
    """The consumers, with a bar on a terminal."""
    if not sys.stderr.isatty():
        return consumers
    from rich.console import Console
    from rich.progress import track

    return track(consumers, "millstream:", console=Console(stderr=True), transient=True)
