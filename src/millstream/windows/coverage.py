"""C²: which panes of which nodes are in a window (iMR, section 3.1).

The root keeps it like a scoreboard, with a mark for each node and pane. A pane for which a node had
no records counts as received: there was nothing to miss. A pane that the node has given up will
never come, and is known as lost before the window ends. A pane of which records came late, after
the node had sent it, is not received either, although it has come. Any other pane may still come.

`Coverage` has the marks themselves. `CoverageTally` has only their counts. The root keeps these for
every open window and updates them with each mark, so that it need not go through the scoreboard.
`UnendedCoverage` leaves out the panes after the ends of logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Mark = Literal["data", "empty", "lost", "late"]
RECEIVED: frozenset[Mark] = frozenset({"data", "empty"})


class Covered(Protocol):
    """The measures that a fidelity is checked against. All but the last three are shares, from 0 to
    1."""

    @property
    def area(self) -> float: ...

    @property
    def time(self) -> float: ...

    @property
    def space(self) -> float: ...

    @property
    def whole_panes(self) -> float: ...

    @property
    def whole_nodes(self) -> float: ...

    @property
    def all_came(self) -> bool: ...

    @property
    def settled(self) -> bool: ...

    def at_best(self) -> Covered: ...


@dataclass(frozen=True, slots=True)
class Coverage:
    """The scoreboard of one window. Nodes and panes that have no mark are still awaited."""

    nodes: tuple[str, ...]
    """All nodes of the job."""
    panes: range
    """The panes of the window."""
    marks: Mapping[tuple[str, int], Mark]

    def received(self, node: str, pane: int) -> bool:
        return self.marks.get((node, pane)) in RECEIVED

    @property
    def histogram(self) -> list[int]:
        """The number of nodes that have responded, for each pane."""
        return [sum(self.received(node, pane) for node in self.nodes) for pane in self.panes]

    @property
    def area(self) -> float:
        """The share of all panes of all nodes that was received."""
        return sum(self.histogram) / self._all

    @property
    def time(self) -> float:
        """The share of the window's panes that any node has responded for."""
        return sum(count > 0 for count in self.histogram) / len(self.panes)

    @property
    def space(self) -> float:
        """The share of the nodes that have responded for any pane."""
        return self._nodes_with(any) / len(self.nodes)

    @property
    def whole_panes(self) -> float:
        """The share of the panes that all nodes have responded for."""
        return self.histogram.count(len(self.nodes)) / len(self.panes)

    @property
    def whole_nodes(self) -> float:
        """The share of the nodes that have responded for all panes."""
        return self._nodes_with(all) / len(self.nodes)

    @property
    def all_came(self) -> bool:
        """True if all panes have come, also if records of some of them came late."""
        came = (*RECEIVED, "late")
        return all(
            self.marks.get((node, pane)) in came for node in self.nodes for pane in self.panes
        )

    @property
    def settled(self) -> bool:
        """True if no pane can come any more."""
        return all((node, pane) in self.marks for node in self.nodes for pane in self.panes)

    def at_best(self) -> Coverage:
        """Returns the coverage that would result if all panes came that are not known to be
        lost, and no record were late."""
        known = {unit: mark for unit, mark in self.marks.items() if mark != "late"}
        return Coverage(self.nodes, self.panes, known).ended()

    def ended(self) -> Coverage:
        """Returns the coverage if the nodes had no records in the panes that are awaited."""
        marks: dict[tuple[str, int], Mark] = {
            (node, pane): "empty" for node in self.nodes for pane in self.panes
        }
        return Coverage(self.nodes, self.panes, {**marks, **self.marks})

    @property
    def _all(self) -> int:
        return len(self.nodes) * len(self.panes)

    def _nodes_with(self, predicate: Callable[[Iterable[bool]], bool]) -> int:
        return sum(predicate(self._received_panes(node)) for node in self.nodes)

    def _received_panes(self, node: str) -> Iterable[bool]:
        return (self.received(node, pane) for pane in self.panes)


@dataclass(frozen=True, slots=True)
class CoverageTally:
    """The coverage of a window as counts, with the same measures as `Coverage`."""

    nodes: int
    panes: int
    received: int
    lost: int
    whole: int
    """Panes that all nodes have responded for."""
    hurt: int
    """Panes that a node has lost."""
    some: int
    """Panes that any node has responded for."""
    late: int = 0
    """Panes of nodes that have come, and of which records came late."""
    whole_nodes_count: int = 0
    """Nodes that have responded for all panes. This and the next three are 0 if the fidelity does
    not need them."""
    hurt_nodes: int = 0
    """Nodes that have lost a pane."""
    some_nodes: int = 0
    """Nodes that have responded for any pane."""
    gone_nodes: int = 0
    """Nodes that have lost all panes."""

    @property
    def area(self) -> float:
        return self.received / (self.nodes * self.panes)

    @property
    def time(self) -> float:
        return self.some / self.panes

    @property
    def space(self) -> float:
        return self.some_nodes / self.nodes

    @property
    def whole_panes(self) -> float:
        return self.whole / self.panes

    @property
    def whole_nodes(self) -> float:
        return self.whole_nodes_count / self.nodes

    @property
    def all_came(self) -> bool:
        return self.received + self.late == self.nodes * self.panes

    @property
    def settled(self) -> bool:
        return self.received + self.lost + self.late == self.nodes * self.panes

    def at_best(self) -> CoverageTally:
        return CoverageTally(
            nodes=self.nodes,
            panes=self.panes,
            received=self.nodes * self.panes - self.lost,
            lost=self.lost,
            whole=self.panes - self.hurt,
            hurt=self.hurt,
            some=self.panes,
            whole_nodes_count=self.nodes - self.hurt_nodes,
            hurt_nodes=self.hurt_nodes,
            some_nodes=self.nodes - self.gone_nodes,
            gone_nodes=self.gone_nodes,
        )


@dataclass(frozen=True, slots=True)
class UnendedCoverage:
    """The coverage that a fidelity is checked against: without the panes after the ends of logs.
    These are received from the start, so they would close a window before any pane of it came."""

    whole: CoverageTally
    """The coverage with these panes."""
    over: int
    """Panes of nodes that are after the ends of their logs."""
    over_nodes: int
    """Nodes whose logs ended before the window."""
    over_panes: int
    """Panes that are after the ends of all logs."""

    @property
    def area(self) -> float:
        whole = self.whole
        return _share(whole.received - self.over, whole.nodes * whole.panes - self.over)

    @property
    def time(self) -> float:
        return self.whole.time

    @property
    def space(self) -> float:
        return self.whole.space

    @property
    def whole_panes(self) -> float:
        return _share(self.whole.whole - self.over_panes, self.whole.panes - self.over_panes)

    @property
    def whole_nodes(self) -> float:
        whole = self.whole
        return _share(whole.whole_nodes_count - self.over_nodes, whole.nodes - self.over_nodes)

    @property
    def all_came(self) -> bool:
        return self.whole.all_came

    @property
    def settled(self) -> bool:
        return self.whole.settled

    def at_best(self) -> UnendedCoverage:
        return UnendedCoverage(self.whole.at_best(), self.over, self.over_nodes, self.over_panes)


def _share(some: int, total: int) -> float:
    """Returns a share of what logs have, 1 if all have ended. (Late records of a pane after the end
    of its log may make `some` negative.)"""
    return max(0, some) / total if total > 0 else 1.0
