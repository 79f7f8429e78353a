"""Records that were acknowledged and that the application has not taken in yet.

A reader lays them over the tables, so that what was acknowledged shows in the next read: a post, an
edit, a delete, a follow and its end. What is known is only what these records say; whether they
mean anything (a post sent twice, a follow of who is followed or blocked) the reader finds out from
the tables. New sources of an aggregated producer show when they are taken in, its former ones are
gone at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Stored = dict[str, Any]
"""A post as a producer's table keeps it."""


class Pending:
    """What some records, in the order of the log, say of producers and consumers."""

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self.posts: dict[str, dict[str, tuple[int, Stored]]] = {}
        """By producer and id: posts that are new."""
        self.changed: dict[str, dict[str, Stored | None]] = {}
        """By producer and id: posts that may be in the tables, as they are now; None: deleted."""
        self.touched: set[bytes] = set()
        """The producers that some of these are of, in bytes."""
        self.follows: dict[str, dict[str, int | None]] = {}
        """By consumer and producer: since when it follows, None if it does no more."""
        self.blocks: dict[str, dict[str, bool]] = {}
        """By consumer and producer: whether it is blocked."""
        self.unsure: dict[str, set[str]] = {}
        """By consumer: producers whose last follow counts only if the tables know of no block."""
        self.sources: dict[str, frozenset[str]] = {}
        """By aggregated producer: its sources."""
        self.seen: dict[str, list[Any]] = {}
        self._gone: set[tuple[str, str]] = set()
        """By producer and id: posts that were new and were deleted."""
        for record in records:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """One more record, the next in the log."""
        kind = record["kind"]
        if kind in ("post", "edit", "delete"):
            self._add_post(kind, record)
        elif kind in ("follow", "unfollow", "block", "unblock"):
            self._add_follow(kind, record)
        elif kind == "aggregate":
            self.sources[record["producer"]] = frozenset(record["sources"])
        elif kind == "seen":
            known = self.seen.get(record["consumer"], [])
            self.seen[record["consumer"]] = max(known, record["upto"])

    def _add_post(self, kind: str, record: Mapping[str, Any]) -> None:
        producer, post = record["producer"], record["id"]
        posts = self.posts.setdefault(producer, {})
        if kind == "post":
            # an edit or a delete may have come before it: of no post, if this one is new
            if post not in posts and (producer, post) not in self._gone:
                posts[post] = record["at"], {"v": record["value"]}
            return
        changed = self.changed.setdefault(producer, {})
        self.touched.add(producer.encode())
        if kind == "delete":
            changed[post] = None
            if posts.pop(post, None) is not None:
                self._gone.add((producer, post))
        elif changed.get(post, True) is not None:
            stored = {"v": record["value"], "e": record["at"]}
            changed[post] = stored
            if post in posts:
                posts[post] = posts[post][0], stored

    def _add_follow(self, kind: str, record: Mapping[str, Any]) -> None:
        consumer, producer = record["consumer"], record["producer"]
        follows = self.follows.setdefault(consumer, {})
        blocks = self.blocks.setdefault(consumer, {})
        unsure = self.unsure.setdefault(consumer, set())
        if kind == "follow":
            if blocks.get(producer):
                return
            follows[producer] = record["at"]
            if producer not in blocks:  # whether the tables know of a block, the reader sees
                unsure.add(producer)
                return
        elif kind == "unfollow":
            follows[producer] = None
        elif kind == "block":
            blocks[producer] = True
            follows[producer] = None
        else:
            blocks[producer] = False
            return
        unsure.discard(producer)


NOTHING = Pending()
