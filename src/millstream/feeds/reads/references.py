"""Resolves references: the posts of other producers in the stream of an aggregated producer.

A reader shows a reference only if it is valid as of the batch that is read, with the pending
records: the post exists in its origin's table, and the origin is a source of the aggregated
producer. Posts of a producer that the consumer follows itself are shown as such, and not also
through others. Posts of a blocked producer are not shown.

An aggregated producer is told of a post one batch after its source has it. Until then the post is
`ON_WAY`, and before that it is pending at the source. This module finds both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from msgspec import convert

from millstream.feeds.names import (
    SEP,
    Position,
    after,
    entry,
    on_way_entry,
    parts,
    post_entry,
    prefix,
)
from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.tables import Tables
from millstream.feeds.stored_rows import PostRow, ReferenceRow, read_row
from millstream.feeds.updates.fanouts import ON_WAY, SOURCES

END = "\U0010ffff"
INTO = prefix("into")


class References:
    """Looks up the posts behind references, for one read."""

    def __init__(
        self,
        producers: str,
        fanouts: str,
        tables: Tables,
        pending: Pending,
        is_hidden: Callable[[str], bool],
    ) -> None:
        """`producers` and `fanouts` are the updates that own the tables. `is_hidden` is True for an
        origin whose posts the consumer is not shown through others."""
        self._fanouts = fanouts
        self._producers, self._tables, self._pending = producers, tables, pending
        self._is_hidden = is_hidden
        self._since: dict[tuple[str, str], int | None] = {}

    def stored(
        self, via: str, origin: str, ts: int, post: str, reference: ReferenceRow
    ) -> PostRow | None:
        """Returns a post from its origin's table; None if the reference must not be shown."""
        if self._shown_since(via, origin) != reference.since:
            return None
        stored = self._tables.get(self._producers, origin, post_entry(ts, post))
        return read_row(stored, PostRow)

    @property
    def waited_for(self) -> list[str]:
        """The aggregated producers that posts are on their way to."""
        return self._tables.once(f"{self._fanouts} waited for", self._waited_for)

    def _waited_for(self) -> list[str]:
        producers, start = list[str](), ""
        while True:
            rows = self._tables.scan(self._fanouts, ON_WAY, start, END)
            name = next((name for name, _ in rows), None)
            if name is None:
                return producers
            producers.append(parts(name)[0])
            start = after(prefix(producers[-1]))

    @cached_property
    def posting(self) -> list[tuple[str, str]]:
        """The sources with pending posts, each with an aggregated producer that will get the posts
        and shows them to the consumer."""
        posts = [producer for producer, fresh in self._pending.posts.items() if fresh]
        if not posts or not self._tables.once(f"{self._fanouts} sources", self._has_sources):
            return []
        pairs = []
        for source in posts:
            if self._tables.get(self._fanouts, SOURCES, source) is None:
                continue
            for name, since in self._tables.scan(self._producers, source, INTO, after(INTO)):
                into = name[len(INTO) :]
                if self._shown_since(into, source) == since:
                    pairs.append((into, source))
        return pairs

    def is_aggregated(self, producer: str) -> bool:
        """True if a producer has sources."""
        if not self._tables.once(f"{self._fanouts} sources", self._has_sources):
            return False
        sources = prefix("source")
        return any(self._tables.scan(self._producers, producer, sources, after(sources)))

    def _has_sources(self) -> bool:
        """True if any producer is a source of an aggregated producer."""
        return any(True for _ in self._tables.scan(self._fanouts, SOURCES, "", END))

    def on_way(
        self, via: str, than: Position | None, before: Position | None, *, newest_first: bool
    ) -> Iterator[tuple[int, str, str, ReferenceRow]]:
        """Yields the posts that are on their way to an aggregated producer: time, origin, id and
        reference."""
        begin = prefix(via)
        start = begin if than is None else on_way_entry(via, *than) + SEP
        stop = after(begin) if before is None else on_way_entry(via, *before)
        rows = self._tables.scan(self._fanouts, ON_WAY, start, stop, reverse=newest_first)
        for name, stored in rows:
            _, ts, origin, post = parts(name)
            yield int(ts), origin, post, convert(stored, ReferenceRow)

    def _shown_since(self, via: str, origin: str) -> int | None:
        """The time at which an origin became a source of an aggregated producer; None if it is not
        a source, or if its posts must not be shown."""
        pair = via, origin
        if pair not in self._since:
            self._since[pair] = self._source_since(via, origin)
        return self._since[pair]

    def _source_since(self, via: str, origin: str) -> int | None:
        pending = self._pending.sources.get(via)
        if self._is_hidden(origin) or (pending is not None and origin not in pending):
            return None
        since: int | None = self._tables.get(self._producers, via, entry("source", origin))
        return since
