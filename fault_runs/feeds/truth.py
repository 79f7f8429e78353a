"""What every feed must be, by the records that were acknowledged: nothing but dicts and sorting."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

Record = dict[str, Any]
Shown = tuple[int, str, str, Any]
"""A post: its time, producer, id and value."""


class Truth:
    """Posts and follows after some records."""

    def __init__(self) -> None:
        self.posts: dict[str, dict[str, Shown | None]] = defaultdict(dict)
        self.follows: dict[str, set[str]] = defaultdict(set)
        self.blocks: dict[str, set[str]] = defaultdict(set)

    def take(self, record: Record) -> None:
        """One more record, that was acknowledged."""
        kind, producer = record["kind"], record["producer"]
        if kind in ("post", "edit", "delete"):
            posts, post = self.posts[producer], record["id"]
            if kind == "post":
                posts.setdefault(post, (record["at"], producer, post, record["value"]))
            elif (known := posts.get(post)) is not None:
                posts[post] = None if kind == "delete" else (*known[:3], record["value"])
            return
        consumer = record["consumer"]
        if kind == "follow" and producer not in self.blocks[consumer]:
            self.follows[consumer].add(producer)
        elif kind in ("unfollow", "block"):
            self.follows[consumer].discard(producer)
        if kind == "block":
            self.blocks[consumer].add(producer)
        elif kind == "unblock":
            self.blocks[consumer].discard(producer)

    def feed(self, consumer: str) -> list[Shown]:
        """A whole feed, newest first."""
        found = [
            post
            for producer in self.follows[consumer]
            for post in self.posts[producer].values()
            if post is not None
        ]
        return sorted(found, key=lambda one: one[:3], reverse=True)
