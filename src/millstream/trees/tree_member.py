"""An agent's side of the tree: when to say hello and to whom, and what to answer children. Pure.

DESIGN
------
An agent says hello every few seconds to its parent, or to the root if it has none, and tells of all
that are below it; the answer brings the root's orders for them and for itself (`messages`). It
takes a seat only if it has a higher number than its own, so what was delayed is void.

A parent that does not answer, to a hello or to anything else, is gone: from then on messages go to
the root, the next hello goes there at once and says so, and the root gives another seat. So it is
if the agent finds itself among those above its parent: then two believe to be below each other,
which the root does not order, but a root that lost its memory might.

*How many messages.* A hello each `every` seconds, one more for each seat that is taken and one for
each parent that is lost, and never two within half a second: at most two a second, whatever comes,
and 0.2 a second when nothing does. A parent gets those of its own children, who are at most as
many as it takes; the root those of the few below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

import msgspec

from millstream.trees.messages import (
    Hello,
    HelloAnswer,
    JobTicket,
    Member,
    Orders,
    Seat,
)
from millstream.trees.tree_placement import EVERY, LEASE

SOONEST = 0.5
"""Seconds between two hellos, at least."""
LONGEST_EVERY = 60.0
MOST_LOST = 100
MISSED = 3
"""After so many hellos that did not come a child is not waited for."""


@dataclass(slots=True)
class _Child:
    """What a child said last."""

    member: Member
    below: list[Member]
    heard: float


@dataclass(frozen=True, slots=True)
class Greeting:
    """A hello, and who is to get it."""

    seat: Seat
    """The seat of the parent; of the root, one without a parent."""
    hello: Hello
    by_root: bool


@dataclass(slots=True)
class TreeMember:
    """What one agent knows of the tree. The time is in seconds that only go forward."""

    node: str
    url: str = ""
    """Where it takes children; empty: it takes none."""
    capacity: int = 0
    version: str = ""
    began: int = 0
    """When this process began, by the time of day in microseconds."""
    hosts: bool = False
    lease: float = LEASE
    jobs: list[JobTicket] = field(default_factory=list)
    """Those that it runs."""
    seat: Seat = field(default_factory=Seat)
    path: list[str] = field(default_factory=list)
    """The nodes above it, the nearest first."""
    merges: frozenset[str] = frozenset()
    """The jobs that its parent merges; none before the parent has said so."""
    wanted: list[JobTicket] | None = None
    """The jobs that the root wants it to run; None: it has not said."""
    lost: set[str] = field(default_factory=set)
    """The urls of parents that did not answer, until one is taken again."""
    _gone: bool = False
    """Whether the parent of this seat does not answer."""
    _every: float = EVERY
    _due: float = -inf
    _last: float = -inf
    _children: dict[str, _Child] = field(default_factory=dict)
    _orders: dict[str, Orders] = field(default_factory=dict)
    """For those below, until they have followed them."""

    @property
    def due(self) -> float:
        """When to say hello."""
        return max(self._due, self._last + SOONEST)

    def way(self) -> Seat | None:
        """The seat whose parent messages go to; None: they go to the root."""
        return self.seat if self.seat.parent and not self._gone else None

    def hello(self, now: float, *, leaving: bool = False) -> Greeting:
        """What to say now, and to whom."""
        self._forget_silent(now)
        self._last, self._due = now, now + self._every
        way = self.way()
        below = [
            _aged(member, now - child.heard)
            for child in self._children.values()
            for member in (child.member, *child.below)
        ]
        gone = self.seat.parent if self._gone else ""
        said = Hello(self._self(), below, gone, leaving)
        return Greeting(way or Seat(), said, way is None)

    def answered(self, greeting: Greeting, answer: HelloAnswer, now: float) -> None:
        """An answer came."""
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
        """None came. `drawn`, from 0 to 1, keeps agents that lost the root together apart."""
        if greeting.by_root:
            self._due = now + self._every * (0.5 + drawn)
        else:
            self.parent_failed(greeting.seat, now)

    def parent_failed(self, seat: Seat, now: float) -> None:
        """The parent of a seat did not answer something."""
        if seat.number == self.seat.number and self.seat.parent and not self._gone:
            self._gone, self._due = True, now
            if len(self.lost) >= MOST_LOST:
                self.lost.clear()
            self.lost.add(self.seat.url)
            self.path, self.merges = [], frozenset()

    def heard(self, hello: Hello, now: float) -> HelloAnswer:
        """A child said hello: what to answer."""
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
        """The children that are there, run a job, and are not about to leave."""
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
        for name in [n for n, one in self._children.items() if now - one.heard > self.lease]:
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


def _newer(known: Orders | None, given: Orders) -> Orders:
    """Orders with the later seat of the two, and the jobs that came last."""
    if known is None:
        return given
    seats: Iterable[Seat] = [one for one in (known.seat, given.seat) if one is not None]
    seat = max(seats, key=lambda one: one.number, default=None)
    return Orders(seat, known.jobs if given.jobs is None else given.jobs)


def _left_of(orders: Orders | None, member: Member) -> Orders | None:
    """What a node has not followed yet."""
    if orders is None:
        return None
    seat = orders.seat if orders.seat and orders.seat.number > member.seat else None
    jobs = orders.jobs if orders.jobs is not None and orders.jobs != member.jobs else None
    return None if seat is None and jobs is None else Orders(seat, jobs)
