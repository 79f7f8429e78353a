"""The way that an agent's messages take: to the root, or to the parent that it has now.

In a tree that is laid by hand the way never changes. If the root places the agents, it may change
(`membership`).
"""

from __future__ import annotations

from typing import Protocol

from millstream.agent.delivery.wire import ServerWire


class Ways(Protocol):
    """Tells which way messages go. Asked again before each message."""

    @property
    def root(self) -> ServerWire: ...

    def up(self, job: str) -> ServerWire | None:
        """Returns the parent that takes messages of a job now; None if they go to the root."""

    def by_parent(self, job: str) -> bool:
        """True if this node's own panes may go through a parent: another agent, or the merging half
        of this one. Only the news then tells whether the root has accepted them."""

    def failed(self, wire: ServerWire) -> None:
        """Report that a parent did not answer."""

    def lost(self, wire: ServerWire) -> bool:
        """True if a former parent was given up because it did not answer a request."""


class LaidWays:
    """Ways that do not change."""

    def __init__(
        self, root: ServerWire, parent: ServerWire | None = None, *, merges: bool = False
    ) -> None:
        """`merges`: this agent is a parent itself."""
        self._root, self._parent, self._merges = root, parent, merges

    @property
    def root(self) -> ServerWire:
        return self._root

    def up(self, job: str) -> ServerWire | None:
        return self._parent

    def by_parent(self, job: str) -> bool:
        return self._parent is not None or self._merges

    def failed(self, wire: ServerWire) -> None:
        """Nothing to do: the sender probes the parent itself."""

    def lost(self, wire: ServerWire) -> bool:
        return False
