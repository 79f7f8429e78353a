"""The work of `millstream feeds verify`: checks consumers, each as of one batch, also over HTTP.

Each consumer is read as of the last batch at that moment: reads are short and block nothing,
however many consumers there are. The same batch decides if the tables of consumers and producers
can be compared with each other.

A server adds to the batch the records that the application has not processed yet. So its feeds are
compared only while these are views and marks of seen posts alone, which change no feed;
and only if its batch is the one as of which the tables were read.
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
from millstream.counted_nouns import counted
from millstream.errors import CommandError
from millstream.feeds.checks.differences import Difference
from millstream.feeds.checks.feed_check import (
    Posts,
    Verified,
    brute_force,
    compared,
    merged,
    verify_feed,
)
from millstream.log.reader import NOWHERE, LogReader
from millstream.stores.reader import SlateReader
from millstream.stores.soft import read_committed
from millstream.stores.tables import BatchTables

if TYPE_CHECKING:
    from millstream.client.client import Client

TRIES = 3
HTTP_PAGE = 100
HARMLESS = ("view", "seen")
"""Kinds of records that do not change what a feed shows."""


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
        """Verifies `count` random consumers, or all of them, in the order of their names."""
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
        """True if a server was to be compared, and none of its feeds could be."""
        return self._client is not None and self._consumers > 0 and not self._asked

    def words(self) -> str:
        """Summarizes in one line what was checked, and the result."""
        batches = sorted(self._batches)
        as_of = "" if not batches else f" as of batch {batches[0]:,}"
        as_of += f" to {batches[-1]:,}" if len(batches) > 1 else ""
        words = [f"looked at the feeds of {counted(self._consumers, 'consumer')}{as_of}"]
        words += [f"{counted(self._follows, 'pair')}, {counted(self._posts, 'post')}"]
        if self._unsettled:
            skipped_for = counted(self._unsettled, "consumer")
            words += [
                f"the producers' side of {skipped_for} was not checked: events were on their way"
            ]
        if self._client is not None:
            skipped = self._consumers - self._asked
            words += [f"{counted(self._asked, 'feed')} over HTTP ({skipped:,} skipped)"]
        if not self.differences and self.compared_none:
            result = (
                "in the store all is well, but nothing was compared over HTTP, because records are "
                "pending, or batches are committed too fast; try again when there is less traffic"
            )
            return "; ".join([*words, result])
        if not self.differences:
            return "; ".join([*words, "all is well"])
        wrong = counted(self._wrong, "feed")
        return "; ".join([*words, f"{counted(self.differences, 'difference')} in {wrong}"])

    def _verified(self, reader: SlateReader, consumer: str) -> Verified:
        progress = read_committed(self._store)
        is_settled = progress.pending.feedback == 0

        def look(tables: BatchTables) -> tuple[int, bool, Verified]:
            settled = is_settled and tables.batch == progress.batch
            verified = verify_feed(self._placed, tables, consumer, settled=settled)
            return tables.batch, settled, verified

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
        """Returns the differences in the server's feed; empty if it cannot be compared."""

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
            items = (item for page in pages for item in page.items)
            return tuple(compared(consumer, "over HTTP", expected, items))
        return ()

    def _is_idle(self) -> bool:
        """True if the application has processed all records that may change a feed."""
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


def _shown(consumers: list[str]) -> Iterable[str]:
    """Returns the consumers; iterating over them shows a bar on a terminal."""
    if not sys.stderr.isatty():
        return consumers
    from rich.console import Console
    from rich.progress import track

    return track(consumers, "millstream:", console=Console(stderr=True), transient=True)
