"""Reads the feeds of a store without a server: finds them, and returns a page of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream.description import Description, read_description
from millstream.errors import CommandError
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.reads.answers import Request, answer
from millstream.feeds.reads.query import FeedQuery
from millstream.messages.feeds import FeedPart
from millstream.nearest import did_you_mean
from millstream.stores.reader import SlateReader
from millstream.stores.tables import BatchTables


def placed_in(store: Path, name: str | None) -> tuple[PlacedFeeds, Description]:
    """Returns the feeds of this name, or the only ones, and the description of their
    application."""
    description = read_description(store)
    feeds = {} if description is None else _feeds(description.parts)
    if description is None or not feeds:
        raise CommandError(f"{store}: the application has no feeds; name another with --store")
    if name is None and len(feeds) > 1:
        raise CommandError(f"name one of the feeds with --feeds: {', '.join(feeds)}")
    chosen = next(iter(feeds)) if name is None else name
    if chosen not in feeds:
        raise CommandError(f"there are no feeds {chosen!r}; {did_you_mean(chosen, feeds)}")
    return feeds[chosen], description


def _feeds(parts: Mapping[str, Any]) -> dict[str, PlacedFeeds]:
    return {
        name: PlacedFeeds.read(name, part)
        for name, part in parts.items()
        if part.get("kind") == "feeds"
    }


def page_of(
    store: Path, name: str | None, consumer: str, asked: Mapping[str, str], now: int
) -> tuple[FeedPart, int]:
    """Returns a part of a feed as of the last committed batch, and that batch."""
    placed, _ = placed_in(store, name)
    request = Request.read(asked, placed.options)

    def read(tables: BatchTables) -> tuple[FeedPart, int]:
        return answer(FeedQuery(placed, tables, consumer), request, now), tables.batch

    with SlateReader(store) as reader:
        return reader.read_tables(read)
