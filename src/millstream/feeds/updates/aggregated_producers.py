"""Aggregated producers (Feeding Frenzy, 2.4): producers that show their sources' posts with their
own.

A record `aggregate` names the sources. A later one replaces them; an empty list ends the
aggregation. A source's table records the aggregated producers that its posts go `into`; the table
of the aggregated producer records its sources. The aggregated producer is told of each new post of
a source, and keeps a *reference* to it among its own posts. It is pushed and pulled like any
producer, so it also has a rate and followers.

A reference contains nothing of the post. Readers take the post from the origin's table, as of the
same batch (see `references`). So readers see an edit, a delete, a block or the end of the
aggregation at once, although the aggregated producer learns of it a batch later.

The upstream edges always push. "If we decide to push for a given edge, we cannot decide to pull for
any adjacent upstream edges" (3.4). So each downstream edge may be either, is decided on its own,
and the lemmas hold for it.

- The aggregated producer is told of a post in the batch after the one that took it in. Until then
  the post is `ON_WAY` (see `fanouts`), where readers find it. So a feed shows it at once, in the
  right place.
- A new source brings its newest `backfill` posts, and all posts after it has joined.
- Aggregation is one level deep: an aggregated producer that is a source passes on its own posts,
  not its references.
- References to a former source are not shown. They are deleted from the aggregated producer's table
  in steps, newest first. In feeds they stay until the feeds are trimmed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from msgspec import convert

from millstream.feeds.messages import (
    FeedMessage,
    Referred,
    ReferredPost,
    SourceJoined,
    SourceParted,
    TableEntry,
)
from millstream.feeds.names import (
    after,
    is_reference,
    on_way_entry,
    parts,
    post_entry,
    prefix,
    reference,
    referred_to,
    time_text,
)
from millstream.feeds.records import AggregateRecord
from millstream.feeds.stored_rows import PostKey, ReferenceRow, read_row
from millstream.feeds.updates.fanouts import ON_WAY
from millstream.feeds.updates.fanouts import SOURCES as SOURCES_KEY
from millstream.model.event import Emit, emit
from millstream.model.slate import Table

INTO, POSTS, SOURCES = prefix("into"), prefix("post"), prefix("source")
TOGETHER = 100
"""The maximum number of posts in one event."""
LOOKED_AT = 1_000
"""The number of entries that a new source scans for its own posts, which may lie between
references."""


@dataclass(frozen=True, slots=True)
class Aggregating:
    """The part of a producer's table about its sources, and about the producers whose source it
    is."""

    name: str
    key: str
    table: Table

    def replaced(self, record: AggregateRecord) -> Generator[Emit, None, bool]:
        """At an aggregated producer: replaces the sources. Returns True if any source was
        removed."""
        since, named = record.at, set(record.sources)
        known = {name[len(SOURCES) :]: at for name, at in self.table.scan(SOURCES, after(SOURCES))}
        for source, at in known.items():
            if source not in named:
                del self.table[SOURCES + source]
                yield self._tell(source, SourceParted(into=self.key, since=at))
        for source in sorted(named - known.keys()):
            self.table[SOURCES + source] = since
            yield self._tell(source, SourceJoined(into=self.key, since=since))
        return not known.keys() <= named

    def joined(self, message: SourceJoined, backfill: int) -> Iterator[Emit]:
        """At a source: records the aggregated producer, and sends the posts that it brings."""
        into, since = message.into, message.since
        if not self.is_source():
            yield self._keep(SOURCES_KEY, self.key, 1)
        self.table[INTO + into] = since
        divide = POSTS + time_text(since)
        newer = list(self._own(divide, after(POSTS), reverse=False))
        older = islice(self._own(POSTS, divide, reverse=True), backfill)
        posts = [ReferredPost(at, post, True) for at, post in (*older, *newer)]
        for start in range(0, len(posts), TOGETHER):
            some = posts[start : start + TOGETHER]
            yield self._tell(into, Referred(origin=self.key, since=since, items=some))

    def parted(self, message: SourceParted) -> Iterator[Emit]:
        """At a source: removes the aggregated producer."""
        name = INTO + message.into
        if self.table.get(name) == message.since:
            del self.table[name]
            if not self.is_source():
                yield self._keep(SOURCES_KEY, self.key, None)

    def is_source(self) -> bool:
        return any(True for _ in self.table.scan(INTO, after(INTO), limit=1))

    def passed_on(self, at: int, post: str, exists: bool) -> Iterator[Emit]:
        """At a source: tells the aggregated producers of a post that is new or deleted."""
        posts = [ReferredPost(at, post, exists)]
        for name, since in self.table.scan(INTO, after(INTO)):
            into = name[len(INTO) :]
            message = Referred(origin=self.key, since=since, items=posts, on_way=exists)
            yield self._tell(into, message)
            if exists:
                entry = on_way_entry(into, at, self.key, post)
                yield self._keep(ON_WAY, entry, ReferenceRow(since))

    def arrived(self, message: Referred) -> Iterator[Emit]:
        """At an aggregated producer: removes the posts of this event from the table of posts on
        their way."""
        for post in message.items if message.on_way else ():
            entry = on_way_entry(self.key, post.at, message.origin, post.id)
            yield self._keep(ON_WAY, entry, None)

    def taken(self, message: Referred) -> Iterator[tuple[PostKey, int]]:
        """At an aggregated producer: stores or deletes references. Yields each one that changed,
        and the change in their number: 1, -1, or 0 for a reference of an earlier membership."""
        origin, since = message.origin, message.since
        if self.table.get(SOURCES + origin) != since:
            return
        row = ReferenceRow(since)
        for post in message.items:
            key = PostKey(post.at, reference(self.key, origin, post.id))
            name = post_entry(key.at, key.id)
            stored = read_row(self.table.get(name), ReferenceRow)
            if post.exists and stored != row:
                self.table[name] = row
                yield key, int(stored is None)
            elif not post.exists and stored is not None:
                del self.table[name]
                yield key, -1

    def swept(self, stop: str, most: int) -> tuple[str | None, int]:
        """Deletes references to former sources among the `most` entries before `stop`. Returns the
        entry to continue before (None at the end), and the number of deleted references."""
        entries = list(self.table.scan(POSTS, stop, reverse=True, limit=most))
        count = 0
        for name, stored in entries:
            post = parts(name)[2]
            if not is_reference(post):
                continue
            since = self.table.get(SOURCES + referred_to(post)[0])
            if since != convert(stored, ReferenceRow).since:
                del self.table[name]
                count += 1
        return (entries[-1][0] if len(entries) == most else None), count

    def _own(self, start: str, stop: str, *, reverse: bool) -> Iterator[tuple[int, str]]:
        entries = self.table.scan(
            start, stop, reverse=reverse, limit=LOOKED_AT if reverse else None
        )
        for name, _ in entries:
            _, ts, post = parts(name)
            if not is_reference(post):
                yield int(ts), post

    def _keep(self, key: str, entry: str, value: Any) -> Emit:
        return emit(f"{self.name}.fanout", key=key, value=TableEntry(entry, value))

    def _tell(self, producer: str, message: FeedMessage) -> Emit:
        return emit(f"{self.name}.told", key=producer, value=message)
