"""Where the log of each node of a job begins and ends, in the root's table.

    node|NODE    a node's `NodePlace`, once it has told anything

Entries are few reads and fewer writes: `PlaceCounts`, kept with the scoreboard's `meta`, says from
which pane on there is nothing to know, and how many nodes have none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.model.slate import Table
from millstream.windows.members import Members
from millstream.windows.pane_marks import State
from millstream.windows.reducers import BEGINNING, NEVER

PREFIX = "node|"


@dataclass(frozen=True, slots=True)
class NodePlace:
    """What is known of a node that has told anything. No field is null."""

    begun: int = BEGINNING
    """The pane that it began with: it is absent before. `BEGINNING`: it has not said."""
    over: int = NEVER
    """The pane that its log ends at: from there on it has nothing. `NEVER`: it goes on."""

    def moved(self, begun: int | None, over: int | None) -> NodePlace:
        """Where it is after it has begun or ended elsewhere; None: it has not."""
        return NodePlace(
            self.begun if begun is None else begun, self.over if over is None else over
        )

    def silent(self, pane: int) -> State | None:
        """What a pane is that the node has told nothing of."""
        if pane < self.begun:
            return "lost"
        return "received" if pane >= self.over else None


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
    ended: int = 0
    """How many logs have ended."""
    earliest: int = NEVER
    """No log has ended before this pane."""
    end: int = NEVER
    """Where the last log has ended, if all nodes that have told anything have ended."""


@dataclass
class NodePlaces:
    """The places of a job's nodes."""

    table: Table
    members: Members
    """The job's; others may have entries from before its definition was changed."""
    counts: PlaceCounts
    _known: dict[str, NodePlace | None] = field(default_factory=dict)
    _turns: tuple[list[int], list[int]] | None = None
    """Where logs begin and where they end, in order; None: not looked at since there were others.
    """

    def get(self, node: str) -> NodePlace | None:
        """None: it has told nothing yet."""
        if node not in self._known:
            stored = self.table.get(PREFIX + node)
            self._known[node] = None if stored is None else NodePlace(**stored)
        return self._known[node]

    def put(self, node: str, place: NodePlace) -> None:
        before, self._known[node] = self.get(node), place
        self.table[PREFIX + node] = {"begun": place.begun, "over": place.over}
        if node in self.members.known:
            counts, was = self.counts, before or UNHEARD
            counts.heard += before is None
            counts.begun += was.begun == BEGINNING != place.begun
            counts.latest = max(counts.latest, place.begun)
            counts.ended += (place.over != NEVER) - (was.over != NEVER)
            counts.earliest = min(counts.earliest, place.over) if counts.ended else NEVER
            counts.end = NEVER
            if 0 < counts.ended == counts.heard:
                counts.end = max(place.over for _, place in self.all())
            self._turns = None

    def unheard(self, nodes: Iterable[str]) -> list[str]:
        """Those that have told nothing yet."""
        if self.counts.heard == len(self.members.nodes):
            return []
        return [node for node in nodes if self.get(node) is None]

    def silent_at(self, node: str, pane: int) -> State | None:
        """What a pane is, as long as the node has told nothing of it."""
        if self.all_await(pane):
            return None
        return (self.get(node) or UNHEARD).silent(pane)

    def all_await(self, pane: int) -> bool:
        """Whether a pane is awaited of every node that has told nothing of it."""
        return self.counts.latest <= pane < self.counts.earliest

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
        over = [place.over for place in places if place.over != NEVER]
        self.counts.heard, self.counts.begun, self.counts.ended = len(places), len(begun), len(over)
        self.counts.latest = max(begun, default=BEGINNING)
        self.counts.earliest = min(over, default=NEVER)
        self.counts.end = max(over) if 0 < len(over) == len(places) else NEVER
        self._turns = None

    def silent(self, pane: int) -> tuple[int, int]:
        """How many nodes have received a pane, and how many lost it, if none has told of it."""
        if self.all_await(pane):
            return 0, 0
        if self._turns is None:
            places = [place for _, place in self.all()]
            begun, over = ([place.begun for place in places], [place.over for place in places])
            self._turns = sorted(begun), sorted(over)
        begins, ends = self._turns
        return bisect_right(ends, pane), len(begins) - bisect_right(begins, pane)


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
