"""What a reader shows of references: the posts of other producers in an aggregated one's stream.

Only as much as is true as of the batch that is read, with what is pending: the post as its origin's
table has it, while the origin is a source of the aggregated producer. What a consumer follows
itself it is shown as such, and not by way of others too; what it blocks it is not shown at all.

An aggregated producer is told of a post a batch after its source has it. Until then the post is
`ON_WAY`, and before that pending at the source: both are found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from millstream.feeds.fanouts import ON_WAY, SOURCES
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
from millstream.feeds.pending import Pending
from millstream.feeds.tables import Tables

END = "\U0010ffff"
INTO = prefix("into")


class References:
    """Looks up what references are to, for one read."""

    def __init__(
        self,
        producers: str,
        fanouts: str,
        tables: Tables,
        pending: Pending,
        is_hidden: Callable[[str], bool],
    ) -> None:
        """`producers` and `fanouts` are the updates whose tables these are; `is_hidden` says of an
        origin whether the consumer is shown nothing of it by way of others."""
        self._fanouts = fanouts
        self._producers, self._tables, self._pending = producers, tables, pending
        self._is_hidden = is_hidden
        self._since: dict[tuple[str, str], int | None] = {}

    def stored(
        self, via: str, origin: str, ts: int, post: str, kept: dict[str, Any]
    ) -> dict[str, Any] | None:
        """A post as its origin's table has it; None if the reference is not to be shown."""
        if self._shown_since(via, origin) != kept["s"]:
            return None
        found: dict[str, Any] | None = self._tables.get(
            self._producers, origin, post_entry(ts, post)
        )
        return found

    @property
    def waited_for(self) -> list[str]:
        """The aggregated producers that something is on its way to."""
        return self._tables.once(f"{self._fanouts} waited for", self._waited_for)

    def _waited_for(self) -> list[str]:
        found, start = list[str](), ""
        while True:
            rows = self._tables.scan(self._fanouts, ON_WAY, start, END)
            name = next((name for name, _ in rows), None)
            if name is None:
                return found
            found.append(parts(name)[0])
            start = after(prefix(found[-1]))

    @cached_property
    def posting(self) -> list[tuple[str, str]]:
        """The sources that have pending posts, each with an aggregated producer that will have
        them and shows them to the consumer."""
        posts = [one for one, fresh in self._pending.posts.items() if fresh]
        if not posts or not self._tables.once(f"{self._fanouts} sources", self._has_sources):
            return []
        found = []
        for source in posts:
            if self._tables.get(self._fanouts, SOURCES, source) is None:
                continue
            for name, since in self._tables.scan(self._producers, source, INTO, after(INTO)):
                into = name[len(INTO) :]
                if self._shown_since(into, source) == since:
                    found.append((into, source))
        return found

    def _has_sources(self) -> bool:
        """Whether anybody is a source of an aggregated producer."""
        return any(True for _ in self._tables.scan(self._fanouts, SOURCES, "", END))

    def on_way(
        self, via: str, than: Position | None, before: Position | None, *, newest_first: bool
    ) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
        """What is on its way to an aggregated producer: time, origin, id and the reference."""
        begin = prefix(via)
        start = begin if than is None else on_way_entry(via, *than) + SEP
        stop = after(begin) if before is None else on_way_entry(via, *before)
        rows = self._tables.scan(self._fanouts, ON_WAY, start, stop, reverse=newest_first)
        for name, kept in rows:
            _, ts, origin, post = parts(name)
            yield int(ts), origin, post, kept

    def _shown_since(self, via: str, origin: str) -> int | None:
        """Since when an origin is a source of an aggregated producer; None if it is not, or if
        nothing of it is to be shown."""
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
