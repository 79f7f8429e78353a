"""The expected contents of feeds, computed from the records by brute force and updated with each
record."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

Record = dict[str, Any]
Shown = tuple[int, str, str, Any]
"""A post: its time, producer, id and value."""


class Truth:
    """All posts and follows as of the records so far."""

    def __init__(self) -> None:
        self._posts: dict[str, dict[str, Shown | None]] = {}
        self._follows: dict[str, set[str]] = {}
        self._blocks: dict[str, set[str]] = {}
        self._feeds: dict[str, list[Shown]] = {}

    def copy(self) -> Truth:
        """Returns an independent copy."""
        made = Truth()
        made._posts = {name: dict(posts) for name, posts in self._posts.items()}
        made._follows = {name: set(all_of) for name, all_of in self._follows.items()}
        made._blocks = {name: set(all_of) for name, all_of in self._blocks.items()}
        return made

    def add(self, records: Iterable[Record]) -> None:
        """The next records."""
        self._feeds.clear()
        for record in records:
            kind = record["kind"]
            if kind in ("post", "edit", "delete"):
                self._post(kind, record)
            elif kind in ("follow", "unfollow", "block", "unblock"):
                self._follow(kind, record["consumer"], record["producer"])

    def _post(self, kind: str, record: Record) -> None:
        producer, post = record["producer"], record["id"]
        posts = self._posts.setdefault(producer, {})
        if kind == "post" and post not in posts:
            posts[post] = (record["at"], producer, post, record["value"])
        elif kind == "edit" and (before := posts.get(post)) is not None:
            posts[post] = (*before[:3], record["value"])
        elif kind == "delete" and post in posts:
            posts[post] = None

    def _follow(self, kind: str, consumer: str, producer: str) -> None:
        follows = self._follows.setdefault(consumer, set())
        blocks = self._blocks.setdefault(consumer, set())
        if kind == "follow":
            if producer not in blocks:
                follows.add(producer)
        elif kind == "unblock":
            blocks.discard(producer)
        else:
            follows.discard(producer)
            if kind == "block":
                blocks.add(producer)

    def feed(self, consumer: str) -> list[Shown]:
        """The whole feed of a consumer, newest first."""
        if consumer not in self._feeds:
            follows = self._follows.get(consumer, ())
            found = (one for name in follows for one in self._posts.get(name, {}).values())
            shown = [one for one in found if one is not None]
            self._feeds[consumer] = sorted(shown, key=lambda one: one[:3], reverse=True)
        return self._feeds[consumer]

    def any_post(self, producer: str, random: Random) -> str:
        """The id of a post of a producer, be it deleted; of none, if it has none."""
        posts = self._posts.get(producer)
        return random.choice(list(posts)) if posts else "none"
