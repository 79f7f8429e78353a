"""Acknowledged records that the application has not taken in yet.

A reader lays them over the tables, so an acknowledged record is visible in the next read: a post,
an edit, a delete, a follow, an unfollow. This module knows only what the records say. Whether a
record has any effect (a post may be sent twice, a follow may name a producer that is already
followed, or blocked) the reader finds out from the tables. New sources of an aggregated producer
become visible when they are taken in; removed ones disappear at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Stored = dict[str, Any]
"""A post as stored in a producer's table."""


class Pending:
    """The combined effect of some records, in the order of the log."""

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self.posts: dict[str, dict[str, tuple[int, Stored]]] = {}
        """By producer and id: new posts."""
        self.changed: dict[str, dict[str, Stored | None]] = {}
        """By producer and id: the current state of posts that may be in the tables; None if
        deleted."""
        self.touched: set[bytes] = set()
        """The producers with changed posts, as bytes."""
        self.follows: dict[str, dict[str, int | None]] = {}
        """By consumer and producer: the time of the follow, or None after an unfollow."""
        self.blocks: dict[str, dict[str, bool]] = {}
        """By consumer and producer: True if blocked, False if unblocked."""
        self.unsure: dict[str, set[str]] = {}
        """By consumer: producers whose last follow counts only if the tables have no block."""
        self.sources: dict[str, frozenset[str]] = {}
        """By aggregated producer: its sources."""
        self.seen: dict[str, list[Any]] = {}
        self._gone: set[tuple[str, str]] = set()
        """By producer and id: new posts that were deleted."""
        for record in records:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Adds the next record of the log."""
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
            # An earlier edit or delete does not matter: if this post is new, it had no target.
            if post not in posts and (producer, post) not in self._gone:
                posts[post] = record["at"], {"v": record["value"]}
            return
        changed = self.changed.setdefault(producer, {})
        self.touched.add(producer.encode())
        if kind == "delete":
            changed[post] = None
            if posts.pop(post, None) is not None:
                self._gone.add((producer, post))
        else:
            stored = {"v": record["value"], "e": record["at"]}
            if changed.get(post, True) is not None:
                changed[post] = stored
            if post in posts:  # an earlier delete had no target
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
            if producer not in blocks:  # the reader checks the tables for a block
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
