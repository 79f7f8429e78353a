"""The beginning and the end of the log of each node of a job, in the root's table.

    node|NODE    a node's `NodePlace`, once it has sent anything

These entries are read rarely and written even less. `PlaceCounts`, kept in the scoreboard's `meta`,
tells for which panes no entry needs to be read, and how many nodes have an entry.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from millstream.model.slate import Table
from millstream.windows.board.board_meta import BoardMeta, PlaceCounts
from millstream.windows.board.pane_marks import State
from millstream.windows.members import Members
from millstream.windows.reducers import BEGINNING, NEVER

PREFIX = "node|"


class NodePlace(msgspec.Struct, frozen=True):
    """The beginning and the end of the log of a node that has sent anything. No field is null."""

    begun: int = BEGINNING
    """The first pane of the node, which is absent before it. `BEGINNING`: not known."""
    over: int = NEVER
    """The pane at which its log ends: the node has nothing from there on. `NEVER`: it continues."""

    def moved(self, begun: int | None, over: int | None) -> NodePlace:
        """Returns the place with another beginning or end. None: that one is unchanged."""
        return NodePlace(
            self.begun if begun is None else begun, self.over if over is None else over
        )

    def silent(self, pane: int) -> State | None:
        """Returns the state of a pane that the node has sent nothing about."""
        if pane < self.begun:
            return "lost"
        return "received" if pane >= self.over else None


UNHEARD = NodePlace()


@dataclass
class NodePlaces:
    """The places of a job's nodes."""

    table: Table
    members: Members
    """The job's nodes. The table may have entries of others, from before the definition changed."""
    counts: PlaceCounts
    _known: dict[str, NodePlace | None] = field(default_factory=dict)
    _turns: tuple[list[int], list[int]] | None = None
    """The beginnings and the ends of all logs, each sorted. None: not computed since the last
    change."""

    def get(self, node: str) -> NodePlace | None:
        """Returns the place of a node. None: it has sent nothing yet."""
        if node not in self._known:
            stored = self.table.get(PREFIX + node)
            self._known[node] = None if stored is None else msgspec.convert(stored, NodePlace)
        return self._known[node]

    def put(self, node: str, place: NodePlace) -> None:
        before, self._known[node] = self.get(node), place
        self.table[PREFIX + node] = place
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
        """Returns the nodes that have sent nothing yet."""
        if self.counts.heard == len(self.members.nodes):
            return []
        return [node for node in nodes if self.get(node) is None]

    def silent_at(self, node: str, pane: int) -> State | None:
        """Returns the state of a pane, as long as the node has sent nothing about it."""
        if self.all_await(pane):
            return None
        return (self.get(node) or UNHEARD).silent(pane)

    def all_await(self, pane: int) -> bool:
        """True if the pane is awaited from every node that has sent nothing about it."""
        return self.counts.latest <= pane < self.counts.earliest

    def all(self) -> Iterator[tuple[str, NodePlace]]:
        """Yields the nodes of the job that have sent anything, with their places."""
        for entry, stored in self.table.scan(PREFIX, "node}"):
            node = entry.removeprefix(PREFIX)
            if node in self.members.known:
                yield node, msgspec.convert(stored, NodePlace)

    def count_again(self) -> None:
        """Recounts, after the nodes of the job have changed."""
        places = [place for _, place in self.all()]
        begun = [place.begun for place in places if place.begun != BEGINNING]
        over = [place.over for place in places if place.over != NEVER]
        self.counts.heard, self.counts.begun, self.counts.ended = len(places), len(begun), len(over)
        self.counts.latest = max(begun, default=BEGINNING)
        self.counts.earliest = min(over, default=NEVER)
        self.counts.end = max(over) if 0 < len(over) == len(places) else NEVER
        self._turns = None

    def ended(self, panes: range) -> tuple[int, int, int]:
        """Returns how many of these panes, counted by node, are after the ends of their logs; how
        many nodes have only such panes; and how many panes are such panes of all nodes."""
        if self.counts.earliest > panes[-1]:
            return 0, 0, 0
        over = [self.silent(pane)[0] for pane in panes]
        return sum(over), over[0], over.count(len(self.members.nodes))

    def silent(self, pane: int) -> tuple[int, int]:
        """Returns, for a pane that no message mentions, how many nodes count as received and how
        many as lost."""
        if self.all_await(pane):
            return 0, 0
        if self._turns is None:
            places = [place for _, place in self.all()]
            begun, over = ([place.begun for place in places], [place.over for place in places])
            self._turns = sorted(begun), sorted(over)
        begins, ends = self._turns
        return bisect_right(ends, pane), len(begins) - bisect_right(begins, pane)


def places_in(entries: Mapping[str, Any]) -> Iterator[tuple[str, NodePlace]]:
    """Yields the places in the entries of a table."""
    yield from carried_over(msgspec.convert(entries.get("meta", {}), BoardMeta))
    for entry, stored in entries.items():
        if entry.startswith(PREFIX):
            yield entry.removeprefix(PREFIX), msgspec.convert(stored, NodePlace)


def carried_over(meta: BoardMeta) -> Iterator[tuple[str, NodePlace]]:
    """Yields the places in a `meta` entry of an earlier version. Later versions have an entry for
    each node."""
    for node in meta.at or ():
        yield node, NodePlace((meta.from_ or {}).get(node, BEGINNING))
