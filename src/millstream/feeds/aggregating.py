"""Aggregated producers (Feeding Frenzy, 2.4): one that has the posts of its sources beside its own.

A record `aggregate` names the sources; sent again, it replaces them, and with none it ends. The
table of a source knows `into` whom its posts go, the table of the aggregated producer its sources.
Each new post of a source is told to the aggregated producer, which keeps a *reference* to it among
its own posts, and pushes and is pulled from as any producer; so it also has a rate and followers.

A reference has nothing of the post. Whoever reads takes that from the origin's table, as of the
same batch (see `references`), so that an edit, a delete, a block or the end of the aggregation
leaves no trace, although the aggregated producer learns of it a batch later.

What is upstream is always pushed. "If we decide to push for a given edge, we cannot decide to pull
for any adjacent upstream edges" (3.4): so all edges downstream stay free to be either, each is
decided for itself, and what the lemmas say of them holds.

- A post is told of in the batch after the one that took it in. Until then it is `ON_WAY` (see
  `fanouts`), where readers find it; so a feed has it at once, and in its place.
- Who joins brings its newest `backfill` posts, and all that come after it has joined.
- One level deep: an aggregated producer that is a source passes on its own posts, not references.
- References to a source that was left are shown to nobody. They are swept out of the aggregated
  producer's table in steps, newest first; in feeds they stay until these are trimmed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from millstream.feeds.fanouts import ON_WAY
from millstream.feeds.fanouts import SOURCES as SOURCES_KEY
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
from millstream.model.event import Emit, emit
from millstream.model.slate import Table

INTO, POSTS, SOURCES = prefix("into"), prefix("post"), prefix("source")
TOGETHER = 100
"""Posts that one event tells of."""
LOOKED_AT = 1_000
"""Entries in which a source that joins looks for posts of its own, which references may hide."""
Told = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Aggregating:
    """What the table of one producer has of its sources, and of those whose source it is."""

    name: str
    key: str
    table: Table

    def replaced(self, told: Told) -> Generator[Emit, None, bool]:
        """An aggregated producer: these are its sources from now on. Whether any was left."""
        since, named = told["at"], set(told["sources"])
        known = {name[len(SOURCES) :]: at for name, at in self.table.scan(SOURCES, after(SOURCES))}
        for source, at in known.items():
            if source not in named:
                del self.table[SOURCES + source]
                yield self._tell(source, {"kind": "parted", "into": self.key, "since": at})
        for source in sorted(named - known.keys()):
            self.table[SOURCES + source] = since
            yield self._tell(source, {"kind": "joined", "into": self.key, "since": since})
        return not known.keys() <= named

    def joined(self, told: Told, backfill: int) -> Iterator[Emit]:
        """A source: whose it is, and what it brings."""
        into, since = told["into"], told["since"]
        if not self.is_source():
            yield self._keep(SOURCES_KEY, self.key, 1)
        self.table[INTO + into] = since
        divide = POSTS + time_text(since)
        newer = list(self._own(divide, after(POSTS), reverse=False))
        older = islice(self._own(POSTS, divide, reverse=True), backfill)
        items = [[at, post, True] for at, post in (*older, *newer)]
        for start in range(0, len(items), TOGETHER):
            yield self._tell(into, self._referred(since, items[start : start + TOGETHER]))

    def parted(self, told: Told) -> Iterator[Emit]:
        """A source that is one no more."""
        name = INTO + told["into"]
        if self.table.get(name) == told["since"]:
            del self.table[name]
            if not self.is_source():
                yield self._keep(SOURCES_KEY, self.key, None)

    def is_source(self) -> bool:
        return any(True for _ in self.table.scan(INTO, after(INTO), limit=1))

    def passed_on(self, at: int, post: str, there: bool) -> Iterator[Emit]:
        """A source has a post, or has it no more."""
        for name, since in self.table.scan(INTO, after(INTO)):
            into = name[len(INTO) :]
            yield self._tell(into, self._referred(since, [[at, post, there]], on_way=there))
            if there:
                yield self._keep(ON_WAY, on_way_entry(into, at, self.key, post), {"s": since})

    def arrived(self, told: Told) -> Iterator[Emit]:
        """An aggregated producer was told: what it was told of is on its way no more."""
        for at, post, _ in told["items"] if told.get("on_way") else ():
            yield self._keep(ON_WAY, on_way_entry(self.key, at, told["origin"], post), None)

    def taken(self, told: Told) -> Iterator[tuple[int, str, int]]:
        """An aggregated producer keeps what it was told of. The references that changed, each with
        its time and by how much that makes them more: 1, -1, or 0 for one of an earlier time."""
        origin, since = told["origin"], told["since"]
        if self.table.get(SOURCES + origin) != since:
            return
        for at, post, there in told["items"]:
            part = reference(self.key, origin, post)
            name = post_entry(at, part)
            known = self.table.get(name)
            if there and known != {"s": since}:
                self.table[name] = {"s": since}
                yield at, part, int(known is None)
            elif not there and known is not None:
                del self.table[name]
                yield at, part, -1

    def swept(self, stop: str, most: int) -> tuple[str | None, int]:
        """Take out references to sources that were left, among so many entries before `stop`: where
        to go on, None at the end, and how many there were."""
        found = list(self.table.scan(POSTS, stop, reverse=True, limit=most))
        count = 0
        for name, value in found:
            post = parts(name)[2]
            if not is_reference(post):
                continue
            if self.table.get(SOURCES + referred_to(post)[0]) != value["s"]:
                del self.table[name]
                count += 1
        return (found[-1][0] if len(found) == most else None), count

    def _own(self, start: str, stop: str, *, reverse: bool) -> Iterator[tuple[int, str]]:
        found = self.table.scan(start, stop, reverse=reverse, limit=LOOKED_AT if reverse else None)
        for name, _ in found:
            _, ts, post = parts(name)
            if not is_reference(post):
                yield int(ts), post

    def _referred(self, since: int, items: list[list[Any]], *, on_way: bool = False) -> Told:
        told = {"kind": "referred", "origin": self.key, "since": since, "items": items}
        return told | {"on_way": True} if on_way else told

    def _keep(self, key: str, name: str, kept: Any) -> Emit:
        return emit(f"{self.name}.fanout", key=key, value={"entry": name, "kept": kept})

    def _tell(self, producer: str, told: Told) -> Emit:
        return emit(f"{self.name}.told", key=producer, value=told)
