"""Which way an agent's messages go: to the root, or to the parent that it has now.

Hand-laid trees have one way for good; where the root places agents it changes (`membership`).
"""

from __future__ import annotations

from typing import Protocol

from millstream.agent.wire import Wire


class Ways(Protocol):
    """Asked again before each message."""

    @property
    def root(self) -> Wire: ...

    def up(self, job: str) -> Wire | None:
        """The parent that takes messages of a job now; None: they go to the root."""

    def by_parent(self, job: str) -> bool:
        """Whether this node's own panes may go by a parent, so that only the root's word says that
        they were accepted: its own parent, or the merging half of this agent."""

    def failed(self, wire: Wire) -> None:
        """A parent did not answer."""

    def lost(self, wire: Wire) -> bool:
        """Whether a former parent was given up since it did not answer, whoever found that out."""


class LaidWays:
    """Ways that do not change."""

    def __init__(self, root: Wire, parent: Wire | None = None, *, merges: bool = False) -> None:
        """`merges`: this agent is a parent itself."""
        self._root, self._parent, self._merges = root, parent, merges

    @property
    def root(self) -> Wire:
        return self._root

    def up(self, job: str) -> Wire | None:
        return self._parent

    def by_parent(self, job: str) -> bool:
        return self._parent is not None or self._merges

    def failed(self, wire: Wire) -> None:
        """It is looked at again by whoever sends."""

    def lost(self, wire: Wire) -> bool:
        return False
