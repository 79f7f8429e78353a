"""Where the log of each node of a job begins, in the root's table.

    node|NODE    a node's `NodePlace`, once it has told anything

Entries are few reads and fewer writes: `PlaceCounts`, kept with the scoreboard's `meta`, says from
which pane on there is nothing to know, and how many nodes have none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from millstream.model.slate import Table
from millstream.windows.members import Members
from millstream.windows.reducers import BEGINNING

State = Literal["received", "lost"]
"""What is known of a pane of a node; None if it is still awaited."""
PREFIX = "node|"


@dataclass(frozen=True, slots=True)
class NodePlace:
    """What is known of a node that has told anything. No field is null."""

    begun: int = BEGINNING
    """The pane that it began with: it is absent before. `BEGINNING`: it has not said."""

    def silent(self, pane: int) -> State | None:
        """What a pane is that the node has told nothing of."""
        return "lost" if pane < self.begun else None


UNHEARD = NodePlace()


@dataclass
class PlaceCounts:
    """Of all nodes of the job."""

    heard: int = 0
    """How many have told anything."""
    begun: int = 0
    """How many have said where they begin."""
    latest: int = BEGINNING
    """No node begins after this pane."""


@dataclass
class NodePlaces:
    """The places of a job's nodes."""

    table: Table
    members: Members
    """The job's; others may have entries from before its definition was changed."""
    counts: PlaceCounts
    _known: dict[str, NodePlace | None] = field(default_factory=dict)
    _begun: list[int] | None = None
    """Where nodes begin, in order; None: not looked at since something has changed."""

    def get(self, node: str) -> NodePlace | None:
        """None: it has told nothing yet."""
        if node not in self._known:
            stored = self.table.get(PREFIX + node)
            self._known[node] = None if stored is None else NodePlace(**stored)
        return self._known[node]

    def put(self, node: str, place: NodePlace) -> None:
        before, self._known[node] = self.get(node), place
        self.table[PREFIX + node] = {"begun": place.begun}
        if node in self.members.known:
            self.counts.heard += before is None
            self.counts.begun += (before or UNHEARD).begun == BEGINNING != place.begun
            self.counts.latest = max(self.counts.latest, place.begun)
            self._begun = None

    def unheard(self, nodes: Iterable[str]) -> list[str]:
        """Those that have told nothing yet."""
        if self.counts.heard == len(self.members.nodes):
            return []
        return [node for node in nodes if self.get(node) is None]

    def silent_at(self, node: str, pane: int) -> State | None:
        """What a pane is, as long as the node has told nothing of it."""
        if pane >= self.counts.latest:
            return None
        return (self.get(node) or UNHEARD).silent(pane)

    def all(self) -> Iterator[tuple[str, NodePlace]]:
        """The nodes of the job that have told anything."""
        for entry, stored in self.table.scan(PREFIX, "node}"):
            node = entry.removeprefix(PREFIX)
            if node in self.members.known:
                yield node, NodePlace(**stored)

    def count_again(self) -> None:
        """Count anew, after the nodes of the job have changed."""
        places = [place for _, place in self.all()]
        begun = [place.begun for place in places if place.begun != BEGINNING]
        self.counts.heard, self.counts.begun = len(places), len(begun)
        self.counts.latest = max(begun, default=BEGINNING)
        self._begun = None

    def silent(self, pane: int) -> tuple[int, int]:
        """How many nodes have received a pane, and how many lost it, if none has told of it."""
        if pane >= self.counts.latest:
            return 0, 0
        if self._begun is None:
            self._begun = sorted(place.begun for _, place in self.all())
        return 0, len(self._begun) - bisect_right(self._begun, pane)


def places_in(entries: Mapping[str, Any]) -> Iterator[tuple[str, NodePlace]]:
    """The places in the entries of a table."""
    yield from carried_over(entries.get("meta", {}))
    for entry, stored in entries.items():
        if entry.startswith(PREFIX):
            yield entry.removeprefix(PREFIX), NodePlace(**stored)


def carried_over(meta: Mapping[str, Any]) -> Iterator[tuple[str, NodePlace]]:
    """The places in the `meta` entry of an earlier version; those of others have entries."""
    for node in meta.get("at", {}):
        yield node, NodePlace(meta["from"].get(node, BEGINNING))
