"""An agent's side of the tree: when to say hello and to whom, and what to answer children. Pure.

DESIGN
------
An agent says hello every few seconds to its parent, or to the root if it has none. A hello lists
all nodes below the agent; the answer brings the root's orders for them and for itself (`messages`).
It takes a seat only if its number is higher than that of the current one, so delayed orders have no
effect.

A parent that does not answer a hello or any other request is gone. From then on messages go to the
root. The next hello goes there at once and says so, and the root gives another seat. The same
happens if the agent finds itself among the nodes above its parent, which would be a cycle. The root
does not order one, but a root that has lost its memory might.

*The number of messages.* An agent sends a hello every `every` seconds, one more for each seat that
it takes and for each parent that it loses, and never two within half a second: at most two a second
whatever happens, and 0.2 a second when nothing does. A parent gets the hellos of its own children,
who are at most as many as it takes; the root gets those of the few nodes directly below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

import msgspec

from millstream.trees.messages import Hello, HelloAnswer, JobTicket, Member, Orders, Seat
from millstream.trees.tree_placement import EVERY, LEASE

SOONEST = 0.5
"""Seconds between two hellos, at least."""
LONGEST_EVERY = 60.0
MOST_LOST = 100
MISSED = 3
"""A child that has missed this many hellos is not waited for."""


@dataclass(slots=True)
class _Child:
    """The last hello of a child."""

    member: Member
    below: list[Member]
    heard: float


@dataclass(frozen=True, slots=True)
class Greeting:
    """A hello, and its receiver."""

    seat: Seat
    """The seat whose parent gets it; a seat without a parent if the root does."""
    hello: Hello
    by_root: bool


@dataclass(slots=True)
class TreeMember:
    """The state of one agent in the tree. Times are in seconds that only go forward."""

    node: str
    url: str = ""
    """The URL at which it takes children; empty if it takes none."""
    capacity: int = 0
    version: str = ""
    began: int = 0
    """When this process began, by wall time in microseconds."""
    hosts: bool = False
    lease: float = LEASE
    jobs: list[JobTicket] = field(default_factory=list)
    """The jobs that it runs."""
    seat: Seat = field(default_factory=Seat)
    path: list[str] = field(default_factory=list)
    """The nodes above it, nearest first."""
    merges: frozenset[str] = frozenset()
    """The jobs that its parent merges; none before the parent has answered."""
    wanted: list[JobTicket] | None = None
    """The jobs that the root wants it to run; None if the root has not said."""
    lost: set[str] = field(default_factory=set)
    """The URLs of parents that did not answer. One is removed when it becomes the parent again."""
    _gone: bool = False
    """True if the parent of this seat does not answer."""
    _every: float = EVERY
    _due: float = -inf
    _last: float = -inf
    _children: dict[str, _Child] = field(default_factory=dict)
    _orders: dict[str, Orders] = field(default_factory=dict)
    """Orders for the nodes below, kept until they have been followed."""

    @property
    def due(self) -> float:
        """The time of the next hello."""
        return max(self._due, self._last + SOONEST)

    def way(self) -> Seat | None:
        """Returns the seat whose parent messages go to; None if they go to the root."""
        return self.seat if self.seat.parent and not self._gone else None

    def hello(self, now: float, *, leaving: bool = False) -> Greeting:
        """Returns the hello to send now, and its receiver."""
        self._forget_silent(now)
        self._last, self._due = now, now + self._every
        way = self.way()
        below = [
            _aged(member, now - child.heard)
            for child in self._children.values()
            for member in (child.member, *child.below)
        ]
        gone = self.seat.parent if self._gone else ""
        hello = Hello(self._self(), below, gone, leaving)
        return Greeting(way or Seat(), hello, way is None)

    def answered(self, greeting: Greeting, answer: HelloAnswer, now: float) -> None:
        """Take the answer to a hello."""
        self._every = min(max(answer.every, SOONEST), LONGEST_EVERY)
        self._due = min(self._due, now + self._every)
        if greeting.seat.number == (self.way() or Seat()).number:
            self.path, self.merges = list(answer.path), frozenset(answer.merges)
            if self.node in answer.path:
                self.parent_failed(self.seat, now)
        for node, orders in answer.orders.items():
            if node == self.node:
                self._follow(orders, now)
            elif self._has_below(node):
                self._orders[node] = _newer(self._orders.get(node), orders)

    def unanswered(self, greeting: Greeting, now: float, drawn: float) -> None:
        """A hello got no answer. `drawn`, a random number from 0 to 1, spreads the retries of
        agents that lost the root together."""
        if greeting.by_root:
            self._due = now + self._every * (0.5 + drawn)
        else:
            self.parent_failed(greeting.seat, now)

    def parent_failed(self, seat: Seat, now: float) -> None:
        """The parent of a seat did not answer a request."""
        if seat.number == self.seat.number and self.seat.parent and not self._gone:
            self._gone, self._due = True, now
            if len(self.lost) >= MOST_LOST:
                self.lost.clear()
            self.lost.add(self.seat.url)
            self.path, self.merges = [], frozenset()

    def heard(self, hello: Hello, now: float) -> HelloAnswer:
        """Returns the answer to a child's hello."""
        child = hello.member.node
        if hello.leaving:
            self._children.pop(child, None)
        elif child != self.node:
            self._children[child] = _Child(hello.member, list(hello.below), now)
        orders: dict[str, Orders] = {}
        for member in (hello.member, *hello.below):
            left = _left_of(self._orders.pop(member.node, None), member)
            if left is not None:
                orders[member.node] = self._orders[member.node] = left
        merged = sorted(ticket.name for ticket in self.jobs)
        return HelloAnswer(self._every, orders, [self.node, *self.path], merged)

    def children(self, job: str, now: float) -> set[str]:
        """Returns the children that are alive, run a job, and are not about to leave."""
        return {
            name
            for name, child in self._children.items()
            if now - child.heard <= MISSED * self._every
            and any(ticket.name == job for ticket in child.member.jobs)
            and not self._leaves(name)
        }

    def _leaves(self, child: str) -> bool:
        orders = self._orders.get(child)
        return orders is not None and orders.seat is not None and orders.seat.parent != self.node

    def _follow(self, orders: Orders, now: float) -> None:
        seat = orders.seat
        if seat is not None and seat.number > self.seat.number:
            same = not self._gone and seat.parent == self.seat.parent and seat.url == self.seat.url
            self.seat, self._gone = seat, False
            self.lost.discard(seat.url)
            if not same:
                self.path, self.merges = [], frozenset()
            self._due = now
        if orders.jobs is not None:
            self.wanted = list(orders.jobs)

    def _has_below(self, node: str) -> bool:
        return node in self._children or any(
            member.node == node for child in self._children.values() for member in child.below
        )

    def _forget_silent(self, now: float) -> None:
        silent = [n for n, child in self._children.items() if now - child.heard > self.lease]
        for name in silent:
            del self._children[name]
        for name in [node for node in self._orders if not self._has_below(node)]:
            del self._orders[name]

    def _self(self) -> Member:
        return Member(
            self.node,
            self.began,
            self.seat.number,
            self.seat.parent,
            self.url,
            self.capacity if self.url else 0,
            self.version,
            sorted(self.jobs),
            self.hosts,
        )


def _aged(member: Member, seconds: float) -> Member:
    return msgspec.structs.replace(member, age=member.age + max(0.0, seconds))


def _newer(known: Orders | None, latest: Orders) -> Orders:
    """Returns orders with the later seat of the two, and the jobs that came last."""
    if known is None:
        return latest
    seats: Iterable[Seat] = [seat for seat in (known.seat, latest.seat) if seat is not None]
    seat = max(seats, key=lambda seat: seat.number, default=None)
    return Orders(seat, known.jobs if latest.jobs is None else latest.jobs)


def _left_of(orders: Orders | None, member: Member) -> Orders | None:
    """Returns the orders that a node has not followed yet."""
    if orders is None:
        return None
    seat = orders.seat if orders.seat and orders.seat.number > member.seat else None
    jobs = orders.jobs if orders.jobs is not None and orders.jobs != member.jobs else None
    return None if seat is None and jobs is None else Orders(seat, jobs)
