"""What agents, parents and the root say to each other, beside panes. All of it is JSON."""

from __future__ import annotations

import msgspec

LONGEST_WAIT = 20.0
"""Seconds that a question for news may wait for some, at most."""


class AcceptedPanes(msgspec.Struct, frozen=True):
    """Panes from `pane` up to `until`, which is not in it, that the root has taken of `nodes`."""

    pane: int
    until: int
    nodes: list[str]


class ToldRecord(msgspec.Struct, frozen=True):
    """A record of the stream `NAME.told`: one of these three."""

    accepted: AcceptedPanes | None = None
    opened: int | None = None
    """A window."""
    closed: int | None = None
    """A window that one of its reducers has closed."""
    reducer: str = ""
    of: int = 1
    """How many reducers the window has."""


class NewsQuestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has happened to a job since `after`?"""

    nodes: list[str] = []
    """Whose accepted panes to tell of. Windows are always told of."""
    life: str = ""
    """Of whoever gave `after`."""
    after: int | None = None
    """The `next` of the last answer; None: tell all that is known."""
    wait: float = 0.0
    """Seconds to wait for news, if there is none."""


class News(msgspec.Struct, frozen=True):
    """What has happened to a job."""

    life: str
    """Whoever numbers the news; another one has other numbers."""
    next: int
    """The `after` of the next question."""
    whole: bool
    """Whether this is all that is known, not what came after a number: it was asked for so, or the
    number was too old, or of another life."""
    origin: str
    """The store that the root has. With another one, all that was heard before is void."""
    opened: list[int] = []
    closed: list[tuple[int, int]] = []
    """Windows from the first up to the second, which is not in it; closed by all their reducers."""
    accepted: dict[str, list[tuple[int, int]]] = {}
    """By node: panes from the first up to the second, which is not in it."""

    def __bool__(self) -> bool:
        return bool(self.opened or self.closed or self.accepted)
