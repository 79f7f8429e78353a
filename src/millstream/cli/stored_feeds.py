"""The feeds of a store, read without a server: which there are, and a page of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream.description import Description, read_description
from millstream.errors import CommandError
from millstream.feeds.answers import Request, answer
from millstream.feeds.placing import PlacedFeeds
from millstream.feeds.query import FeedQuery
from millstream.nearest import did_you_mean
from millstream.stores.reader import SlateReader
from millstream.stores.tables import BatchTables


def placed_in(store: Path, name: str | None) -> tuple[PlacedFeeds, Description]:
    """The feeds of this name, or the only ones, and the application that they are of."""
    description = read_description(store)
    found = {} if description is None else _feeds(description.parts)
    if description is None or not found:
        raise CommandError(f"{store}: the application has no feeds; name another with --store")
    if name is None and len(found) > 1:
        raise CommandError(f"name one of the feeds with --feeds: {', '.join(found)}")
    chosen = next(iter(found)) if name is None else name
    if chosen not in found:
        raise CommandError(f"there are no feeds {chosen!r}; {did_you_mean(chosen, found)}")
    return found[chosen], description


def _feeds(parts: Mapping[str, Any]) -> dict[str, PlacedFeeds]:
    return {
        name: PlacedFeeds.read(name, of) for name, of in parts.items() if of.get("kind") == "feeds"
    }


def page_of(
    store: Path, name: str | None, consumer: str, asked: Mapping[str, str], now: int
) -> dict[str, Any]:
    """A page of a feed as of the last committed batch, as a server answers it."""
    placed, _ = placed_in(store, name)
    request = Request.read(asked, placed.options)

    def read(tables: BatchTables) -> dict[str, Any]:
        said = answer(FeedQuery(placed, tables, consumer), request, now)
        return {**said, "batch": tables.batch}

    with SlateReader(store) as reader:
        return reader.read_tables(read)
