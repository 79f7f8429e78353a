"""The messages between agents, parents and the root, besides panes. All of them are JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

LONGEST_WAIT = 20.0
"""The longest time, in seconds, that a question for news may wait for an answer."""
NodeName = Annotated[str, Meta(min_length=1, max_length=200)]


class AcceptedPanes(msgspec.Struct, frozen=True):
    """Panes of `nodes` that the root has accepted: from `pane` up to `until`, exclusive."""

    pane: int
    until: int
    nodes: list[str]


class ToldRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record of the stream `NAME.told`. It has one of `accepted`, `opened` and `closed`."""

    accepted: AcceptedPanes | None = None
    opened: int | None = None
    """A window that was opened."""
    closed: int | None = None
    """A window that one of its reducers has closed."""
    reducer: str = ""
    """The reducer that has closed it."""
    reducers: int = msgspec.field(default=1, name="of")
    """The number of reducers that the window has."""


class NewsQuestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """Asks what has happened to a job since `after`."""

    nodes: list[str] = []
    """The nodes whose accepted panes to include. News of windows is always included."""
    life: str = ""
    """The `life` of the board that gave `after`."""
    after: int | None = None
    """The `next` of the last answer; None asks for everything that is known."""
    wait: float = 0.0
    """Seconds to wait for news, if there is none."""


class News(msgspec.Struct, frozen=True):
    """The answer: what has happened to a job."""

    life: str
    """The id of the board that numbers the news. Another board has other numbers."""
    next: int
    """The `after` of the next question."""
    whole: bool
    """True if this is everything that is known, and not only the news since `after`: the question
    had no `after`, or one that was too old or of another life."""
    origin: str
    """The root's store. If it changes, all earlier news is void."""
    opened: list[int] = []
    closed: list[tuple[int, int]] = []
    """Windows closed by all their reducers: from the first up to the second, exclusive."""
    accepted: dict[str, list[tuple[int, int]]] = {}
    """Accepted panes by node: from the first up to the second, exclusive."""

    def __bool__(self) -> bool:
        return bool(self.opened or self.closed or self.accepted)


class Seat(msgspec.Struct, frozen=True):
    """A node's place in the tree, given by the root. A later seat has a higher number."""

    number: int = 0
    """0 if no seat was given yet."""
    parent: str = ""
    """The node that merges its panes; empty if it sends to the root itself."""
    url: str = ""
    """The URL of the parent."""


class JobTicket(msgspec.Struct, frozen=True, order=True):
    """A job that an agent runs, or must run. Its definition is fetched when the version is new."""

    name: str
    version: str
    """Empty if the root has no definition of the job: a Python job without a package."""


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent, as it describes itself; those above it pass the description on."""

    node: NodeName
    began: int = 0
    """When its process began, by wall time in microseconds. A later time means a new process."""
    seat: int = 0
    """The number of the seat that it has."""
    parent: str = ""
    url: str = ""
    """The URL at which it takes children; empty if it takes none."""
    capacity: int = 0
    """The number of children that it takes."""
    version: str = ""
    """The version of Millstream."""
    jobs: list[JobTicket] = []
    """The jobs that it runs."""
    hosts: bool = False
    """True if it runs the jobs that the root orders."""
    age: float = 0.0
    """Seconds since the agent itself sent this."""


class Hello(msgspec.Struct, frozen=True, omit_defaults=True):
    """The message that an agent sends every few seconds to its parent, or else to the root."""

    member: Member
    below: list[Member] = []
    """The children that it has heard from lately, and all nodes below them."""
    gone: str = ""
    """Its parent, if the parent does not answer: the root must give it another one."""
    leaving: bool = False
    """True if it is shutting down."""


class Orders(msgspec.Struct, frozen=True, omit_defaults=True):
    """The root's orders for one node. None means no change."""

    seat: Seat | None = None
    jobs: list[JobTicket] | None = None
    """All jobs that it must run."""


class HelloAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a hello, from the root or from a parent on its behalf."""

    every: float
    """Seconds until the next hello."""
    orders: dict[str, Orders] = {}
    """Orders by node: for the agent that said hello, and for those below it."""
    path: list[str] = []
    """The nodes above the agent that said hello, nearest first; none if the root answers."""
    merges: list[str] = []
    """The jobs whose panes the answering parent merges."""


class AgentRow(msgspec.Struct, frozen=True):
    """An agent, as the root knows it."""

    node: str
    parent: str | None
    """None if it sends to the root itself."""
    depth: int
    """Its distance from the root, in steps."""
    address: str | None
    """The URL at which it takes children; None if it takes none."""
    children: list[str]
    jobs: list[str]
    heard: float
    """Seconds since it was last heard of."""
    version: str


class AgentsAnswer(msgspec.Struct, frozen=True):
    """All agents that the root has heard of lately."""

    agents: list[AgentRow]
