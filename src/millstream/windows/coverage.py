"""C²: which panes of which nodes are in a window (iMR, section 3.1).

The root keeps it like a scoreboard, with a mark for each node and pane. A pane that a node had no
records for counts as received: there was nothing to miss. One that the node has given up, shed or
skipped will never come, and is known as lost before the window ends. What is neither may still
come.

`Coverage` has the marks themselves. `Tally` has only counts of them, which the root keeps for every
open window and changes with each mark, so that it need not go through the scoreboard for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Mark = Literal["data", "empty", "lost"]
RECEIVED: frozenset[Mark] = frozenset({"data", "empty"})


class Covered(Protocol):
    """What a fidelity is judged by; all but the last three are parts, from 0 to 1."""

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
    def complete(self) -> bool: ...

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
        """For each pane, how many nodes have responded."""
        return [sum(self.received(node, pane) for node in self.nodes) for pane in self.panes]

    @property
    def area(self) -> float:
        """The part of all panes of all nodes that was received."""
        return sum(self.histogram) / self._all

    @property
    def time(self) -> float:
        """The part of the window's panes that any node has responded for."""
        return sum(count > 0 for count in self.histogram) / len(self.panes)

    @property
    def space(self) -> float:
        """The part of the nodes that have responded for any pane."""
        return self._nodes_with(any) / len(self.nodes)

    @property
    def whole_panes(self) -> float:
        """The part of the panes that all nodes have responded for."""
        return self.histogram.count(len(self.nodes)) / len(self.panes)

    @property
    def whole_nodes(self) -> float:
        """The part of the nodes that have responded for all panes."""
        return self._nodes_with(all) / len(self.nodes)

    @property
    def complete(self) -> bool:
        return sum(self.histogram) == self._all

    @property
    def settled(self) -> bool:
        """Whether nothing more can come."""
        return all((node, pane) in self.marks for node in self.nodes for pane in self.panes)

    def at_best(self) -> Coverage:
        """What it would become if all came that is not known to be lost."""
        marks: dict[tuple[str, int], Mark] = {
            (node, pane): "empty" for node in self.nodes for pane in self.panes
        }
        return Coverage(self.nodes, self.panes, {**marks, **self.marks})

    @property
    def _all(self) -> int:
        return len(self.nodes) * len(self.panes)

    def _nodes_with(self, how: Callable[[Iterable[bool]], bool]) -> int:
        return sum(how(self._of(node)) for node in self.nodes)

    def _of(self, node: str) -> Iterable[bool]:
        return (self.received(node, pane) for pane in self.panes)


@dataclass(frozen=True, slots=True)
class Tally:
    """The same in counts."""

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
    whole_nodes_count: int = 0
    """Nodes that have responded for all panes. This and the next three are 0 if nobody asks for
    them."""
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
    def complete(self) -> bool:
        return self.received == self.nodes * self.panes

    @property
    def settled(self) -> bool:
        return self.received + self.lost == self.nodes * self.panes

    def at_best(self) -> Tally:
        return Tally(
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
