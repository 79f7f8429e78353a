"""Which producers are under way: their last posts have not reached all feeds yet.

One table, with an entry for each such producer; most of the time it is empty. It is of the same
batch as the feeds, so that whoever reads both knows which producers to pull from (see `query`).
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.model.event import Event
from millstream.model.function import takes
from millstream.model.slate import Table


@dataclass(frozen=True)
class FanOuts:
    """The update function."""

    __signature__ = takes("event", "slate")

    def __call__(self, event: Event, table: Table) -> None:
        producer = event.value["producer"]
        if event.value["under_way"]:
            table[producer] = event.ts
        else:
            table.discard(producer)
