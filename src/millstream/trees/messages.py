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


class Seat(msgspec.Struct, frozen=True):
    """A node's place in the tree, as the root has given it. A later one has a higher number."""

    number: int = 0
    """0: none was given yet."""
    parent: str = ""
    """The node that merges its panes; empty: it sends to the root itself."""
    url: str = ""
    """Of the parent."""


class JobTicket(msgspec.Struct, frozen=True, order=True):
    """A job that an agent runs, or is to run. Its definition is fetched when the version is new."""

    name: str
    version: str


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent, as it says itself or as those above it pass it on."""

    node: str
    began: int = 0
    """When its process began, in microseconds of the day's time: a later one is another."""
    seat: int = 0
    """The number of the seat that it has."""
    parent: str = ""
    url: str = ""
    """Where it takes children; empty: it takes none."""
    capacity: int = 0
    """How many children it takes."""
    version: str = ""
    """Of Millstream."""
    jobs: list[JobTicket] = []
    """Those that it runs."""
    hosts: bool = False
    """Whether it runs the jobs that the root tells it to."""
    age: float = 0.0
    """Seconds since it said so itself."""


class Hello(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent says every few seconds to its parent, or to the root if it has none."""

    member: Member
    below: list[Member] = []
    """All that it has heard from lately, and those below them."""
    gone: str = ""
    """Its parent, which does not answer: the root is to give it another one."""
    leaving: bool = False
    """Whether it ends now."""


class Orders(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the root wants of one node; None: nothing changes."""

    seat: Seat | None = None
    jobs: list[JobTicket] | None = None
    """All that it is to run."""


class HelloAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the root, or a parent on its behalf, answers."""

    every: float
    """Seconds until the next hello."""
    orders: dict[str, Orders] = {}
    """By node: of whoever said hello, and of those below it."""
    path: list[str] = []
    """The nodes above whoever said hello, the nearest first; none, if the root answers."""
    merges: list[str] = []
    """The jobs whose panes are merged here."""


class AgentRow(msgspec.Struct, frozen=True):
    """An agent, as the root knows it."""

    node: str
    parent: str | None
    """None: it sends to the root itself."""
    depth: int
    """How many steps it is from the root."""
    address: str | None
    """Where it takes children; None: it takes none."""
    children: list[str]
    jobs: list[str]
    heard: float
    """Seconds since it was last heard of."""
    version: str


class AgentsAnswer(msgspec.Struct, frozen=True):
    """All agents that the root has heard of lately."""

    agents: list[AgentRow]
