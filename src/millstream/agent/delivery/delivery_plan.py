"""Decides which group of the outbox goes where, and when (iMR, 2.2 and 4.3). Pure.

DESIGN
------
A group that is sent to the root is removed when the root has it on disk. A parent keeps a group in
memory only, so a group that was sent to a parent stays in the outbox until the root reports that
all its panes were accepted. If that takes longer than `patience`, or if the parent is gone, the
group goes to the root directly, which ignores panes that it has. It never goes to another parent:
that parent would merge it with panes of others, and if the root had it already, it would ignore all
of them.

A group that a parent refuses for good goes to the root too: only the root's refusal is final. So
does a group with a message without panes, which says where a node begins or that its log is over:
accepted panes do not show whether a parent has lost such a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from millstream.agent.delivery.link_health import LinkHealth

LOOK_EVERY = 0.25
"""Seconds between two checks of what the root has accepted."""
IDLE = 60.0

Panes = Sequence[tuple[int, int]]
"""The panes of each message of a group: from the first number up to the second, exclusive."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a group: to the parent, or to the root."""

    group: int
    by_parent: bool
    detour: bool
    """True if it goes to the root although there is, or was, a parent for it."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a group from the outbox: the root has it."""

    group: int
    by_parent: bool


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait: there is nothing to do for this many seconds."""

    seconds: float


@dataclass(slots=True)
class _Known:
    """The state of a group that is, or was, meant for a parent."""

    panes: Panes
    parent: str = ""
    """The first parent that it was sent to."""
    since: float = 0.0
    """When it was sent to that parent."""
    taken: bool = False
    """True if the parent has acknowledged it."""
    direct: bool = False
    """True if it may only go to the root now."""

    @property
    def only_panes(self) -> bool:
        return all(pane < until for pane, until in self.panes)


class PaneDelivery:
    """Decides one step at a time. The caller carries it out and reports the result."""

    def __init__(self, patience: float) -> None:
        """`patience`: seconds within which a pane sent to a parent must reach the root."""
        self._patience = patience
        self._known: dict[int, _Known] = {}

    def decide(
        self,
        now: float,
        groups: Iterable[int],
        panes_of: Callable[[int], Panes],
        accepted: Callable[[int, int], bool],
        root: LinkHealth,
        parent: tuple[str, LinkHealth] | None,
    ) -> Send | Remove | Rest:
        """Returns what to do next. `groups` are those that wait, oldest first. `parent` is None if
        there is none, or if it is gone."""
        wait = IDLE
        for group in groups:
            known = self._known.get(group)
            if known is None and parent is not None:
                known = self._known[group] = _Known(panes_of(group))
            by_parent = False
            if known is not None:
                if known.only_panes and all(accepted(*panes) for panes in known.panes):
                    return Remove(group, known.taken)
                in_time = not known.parent or now - known.since < self._patience
                open_to_parents = known.only_panes and in_time and not known.direct
                if open_to_parents and known.taken:
                    wait = min(wait, LOOK_EVERY)
                    continue
                by_parent = (
                    parent is not None and open_to_parents and known.parent in ("", parent[0])
                )
            health = parent[1] if by_parent and parent is not None else root
            if health.not_before > now:
                return Rest(min(wait, health.not_before - now))
            detour = not by_parent and known is not None and known.only_panes
            return Send(group, by_parent, detour)
        return Rest(wait)

    def given(self, group: int, parent: str, now: float) -> None:
        """A group is about to be sent to a parent."""
        known = self._known[group]
        if not known.parent:
            known.parent, known.since = parent, now

    def taken(self, group: int) -> None:
        """The parent has acknowledged a group."""
        self._known[group].taken = True

    def refused(self, group: int) -> None:
        """The parent has refused a group for good."""
        self._known[group].direct = True

    def lost(self, parent: str) -> None:
        """A parent is gone: the groups that it was given go to the root at once."""
        for known in self._known.values():
            if known.parent == parent:
                known.direct = True

    def removed(self, group: int) -> None:
        """A group was removed from the outbox."""
        self._known.pop(group, None)
