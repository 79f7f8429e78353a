"""Records the producers that are under way: their last posts have not reached all feeds yet.

This is one table with an entry for each such producer; most of the time it is empty. Readers read
it as of the same batch as the feeds, so they know which producers to pull from (see `query`).

Two more tables serve aggregated producers. `SOURCES` lists the producers that are sources. `ON_WAY`
lists the posts of sources that the aggregated producer has not been told of yet (see `references`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import convert

from millstream.feeds.messages import TableEntry, UnderWay
from millstream.model.event import Event
from millstream.model.function import takes
from millstream.model.slate import Table

SOURCES, ON_WAY = "sources", "on the way"
"""The keys of these two tables. The table of producers under way has the empty key."""


@dataclass(frozen=True)
class FanOuts:
    """The update function."""

    __signature__ = takes("event", "slate")

    def __call__(self, event: Event, table: Table) -> None:
        if event.key:
            change = convert(event.value, TableEntry)
            _set(table, change.entry, change.kept)
        else:
            message = convert(event.value, UnderWay)
            _set(table, message.producer, event.ts if message.under_way else None)


def _set(table: Table, name: str, value: Any) -> None:
    if value is None:
        table.discard(name)
    else:
        table[name] = value
