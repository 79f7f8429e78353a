"""Which group of the outbox goes where, and when (iMR, 2.2 and 4.3). Pure.

DESIGN
------
Sent to the root, a group is removed when the root has it on disk. A parent has it in memory only,
so what was given to one stays until the root tells that all its panes were accepted. If that does
not come within the time that parents may take, or if the parent is gone, it goes to the root
directly, which ignores what it has. It never goes to another parent: that one would merge it with
panes of others, and if the root had it already, it would ignore all of them.

What a parent refuses for good goes to the root too: only the root's refusal is the last word. So
does a group with a message of no panes, which says where a node begins or that its log is over: it
could not be seen from what is accepted whether a parent has lost it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from millstream.agent.link_health import LinkHealth

LOOK_EVERY = 0.25
"""Seconds between two looks at what was accepted."""
IDLE = 60.0

Panes = Sequence[tuple[int, int]]
"""Of the messages of a group: panes from the first up to the second."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a group: to the parent, or to the root."""

    group: int
    by_parent: bool
    detour: bool
    """To the root, though there is or was a parent for it."""


@dataclass(frozen=True, slots=True)
class Remove:
    """The root has the group."""

    group: int
    by_parent: bool


@dataclass(frozen=True, slots=True)
class Rest:
    """There is nothing to do for so long."""

    seconds: float


@dataclass(slots=True)
class _Known:
    """What is known of a group that is, or was, for a parent."""

    panes: Panes
    parent: str = ""
    """To whom it was given first."""
    since: float = 0.0
    taken: bool = False
    direct: bool = False
    """Whether only the root may have it now."""

    @property
    def only_panes(self) -> bool:
        return all(pane < until for pane, until in self.panes)


class PaneDelivery:
    """Decides, one step after the other. Whoever carries it out says how that went."""

    def __init__(self, patience: float) -> None:
        """`patience`: seconds that a pane may take by parents."""
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
        """What to do next. `groups` are those that wait, the oldest first; `parent` is None while
        there is none, or it is gone."""
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
        """The parent took it."""
        self._known[group].taken = True

    def refused(self, group: int) -> None:
        """The parent will never take it."""
        self._known[group].direct = True

    def lost(self, parent: str) -> None:
        """A parent is gone: what it was given goes to the root at once."""
        for known in self._known.values():
            if known.parent == parent:
                known.direct = True

    def removed(self, group: int) -> None:
        """It is out of the outbox."""
        self._known.pop(group, None)
