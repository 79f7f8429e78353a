"""Which producers are under way: their last posts have not reached all feeds yet.

One table, with an entry for each such producer; most of the time it is empty. It is of the same
batch as the feeds, so that whoever reads both knows which producers to pull from (see `query`).

Two more tables say the same of aggregated producers: `SOURCES` who is a source of any, `ON_WAY`
which posts of sources the aggregated producer has not been told of yet (see `references`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.model.event import Event
from millstream.model.function import takes
from millstream.model.slate import Table

SOURCES, ON_WAY = "sources", "on the way"
"""The keys of these tables; that of the producers under way is the empty one."""


@dataclass(frozen=True)
class FanOuts:
    """The update function."""

    __signature__ = takes("event", "slate")

    def __call__(self, event: Event, table: Table) -> None:
        if event.key:
            _keep(table, event.value["entry"], event.value["kept"])
            return
        producer = event.value["producer"]
        if event.value["under_way"]:
            table[producer] = event.ts
        else:
            table.discard(producer)


def _keep(table: Table, name: str, kept: Any) -> None:
    if kept is None:
        table.discard(name)
    else:
        table[name] = kept
