"""The root's decisions about which agent is whose parent (iMR, 2.2). Pure.

DESIGN
------
Each agent has a *seat*: below the root, or below another agent that takes children. A new agent
gets the shallowest free seat. It keeps the seat until its parent is gone: the agent says so, or the
root has not heard of the parent for a lease. Nothing else is moved, except in two cases. An agent
that takes children may change places with a leaf directly below the root. And agents that are below
the root only for lack of room move down when there is some. So a join or a death moves at most one
parent's nodes.

An agent that no parent has room for sends to the root itself: only the root may have more than
`fan_out` children. No node is more than `deepest` steps from the root.

*No cycles, even if messages are lost or late.* The seat that an agent believes it has is the one
that it last reported, or any that it was given since: seats are numbered, and it takes only a later
one. Before a node is put below a parent, the root walks up from that parent, through every seat
that each node on the way may believe it has. If the walk meets the node, or comes to one that has
not spoken to this root yet or was given up for dead, the node is not put there. The root itself is
always a safe parent.

All state is in memory. After a restart of the root the agents report their seats, and keep them.
The new root's numbers are higher than those of the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.trees.free_seats import FreeSeats
from millstream.trees.messages import AgentRow, Hello, Member, Seat

FAN_OUT = 32
DEEPEST = 5
EVERY = 5.0
"""Seconds between two hellos of an agent."""
LEASE = 30.0
"""An agent is given up after this many seconds without news of it. News of the deepest agents takes
`DEEPEST` hellos to reach the root."""
GRAVE_LEASES = 10
"""How long the seats that a given-up agent may believe it has are remembered, in leases."""
ROOT = ""


@dataclass(slots=True)
class _SeatedAgent:
    """An agent."""

    member: Member
    heard: float
    seat: Seat
    believed: dict[int, str] = field(default_factory=dict)
    """The parents that it may believe it has, by the numbers of the seats."""
    children: set[str] = field(default_factory=set)
    depth: int = 1
    suspect: bool = False
    """True if a child has reported that it does not answer, and it has not been heard of since."""
    shunned: dict[str, float] = field(default_factory=dict)
    """Parents that did not answer it, and until when it is not put below them."""

    @property
    def room(self) -> bool:
        """True if one more child may be put below it."""
        return bool(self.member.url) and len(self.children) < self.member.capacity


class TreePlacement:
    """The seats of all agents. Times are in seconds that only go forward."""

    def __init__(self, first: int, *, fan_out: int = FAN_OUT, deepest: int = DEEPEST) -> None:
        """`first` is the number of the first seat. It must be higher than any number that an
        earlier root has given: use the wall time in microseconds."""
        self._first = self._next = max(1, first)
        self._fan_out, self._deepest = fan_out, deepest
        self._nodes: dict[str, _SeatedAgent] = {}
        self._top: set[str] = set()
        """The nodes directly below the root."""
        self._free = FreeSeats()
        self._graves: dict[str, tuple[float, dict[int, str]]] = {}
        """The `believed` of nodes that were given up but may be alive, and when to forget it."""
        self._swept = float("-inf")

    def __len__(self) -> int:
        return len(self._nodes)

    def hello(self, hello: Hello, now: float) -> dict[str, Seat]:
        """Take a hello. Returns the seats, by node, that these nodes have not taken yet."""
        self.sweep(now)
        sender = hello.member.node
        for member in (hello.member, *hello.below):  # parents come before their children
            self._hear(member, now)
        if hello.leaving:
            self._bury([sender], now)
            return {}
        if hello.gone:
            self._parent_is_gone(sender, hello.gone, now)
        nodes = self._nodes
        return {
            member.node: nodes[member.node].seat
            for member in (hello.member, *hello.below)
            if member.node in nodes and nodes[member.node].seat.number > member.seat
        }

    def sweep(self, now: float) -> None:
        """Give up agents that have not been heard of for a lease. Does this once a second at
        most."""
        if now - self._swept < 1.0:
            return
        self._swept = now
        for name in [name for name, (until, _) in self._graves.items() if until < now]:
            del self._graves[name]
        dead = [name for name, node in self._nodes.items() if now - node.heard > LEASE]
        if dead:
            self._bury(dead, now)
        self._relieve(now)

    def rows(self, now: float) -> list[AgentRow]:
        """Returns all agents, nearest to the root first."""
        self.sweep(now)
        listed = sorted(self._nodes.items(), key=lambda item: (item[1].depth, item[0]))
        return [
            AgentRow(
                node=name,
                parent=node.seat.parent or None,
                depth=node.depth,
                address=node.member.url or None,
                children=sorted(node.children),
                jobs=[ticket.name for ticket in node.member.jobs],
                heard=max(0.0, now - node.heard),
                version=node.member.version,
            )
            for name, node in listed
        ]

    def _hear(self, member: Member, now: float) -> None:
        name, heard = member.node, now - max(0.0, member.age)
        if now - heard > LEASE:
            return
        node = self._nodes.get(name)
        if node is None:
            self._adopt(member, heard, now)
            return
        if member.began < node.member.began:
            return  # an old message: the agent was restarted since
        if member.began > node.member.began and member.seat == 0:
            # A new process knows no seat, and will take the one that it is given now.
            node.believed = {node.seat.number: node.seat.parent}
        elif member.seat < min(node.believed) and heard >= node.heard:
            return  # a delayed message: the agent has reported a later seat since
        if heard >= node.heard:
            node.suspect = node.suspect and heard == node.heard
            node.heard, node.member = heard, member
        if member.seat in node.believed:
            for number in [number for number in node.believed if number < member.seat]:
                del node.believed[number]
        self._note_room(name)

    def _adopt(self, member: Member, heard: float, now: float) -> None:
        """Add a node that is new to this root. It keeps the seat that it reports, if possible."""
        name = member.node
        self._next = max(self._next, member.seat + 1)
        node = self._nodes[name] = _SeatedAgent(member, heard, Seat())
        if member.seat:
            buried = self._graves.pop(name, (0.0, {}))[1]
            node.believed = {
                number: parent for number, parent in buried.items() if number > member.seat
            }
            node.believed[member.seat] = member.parent
        above = self._nodes.get(member.parent)
        stays = member.seat > 0 and (
            member.parent == ROOT
            or (
                above is not None
                and above.room
                and not self._is_above(name, member.parent)
                and above.depth + 1 <= self._deepest
            )
        )
        if not stays:
            self._seat(name, now)
        elif member.seat >= self._first and len(node.believed) == 1:
            self._attach(name, Seat(member.seat, member.parent, above.member.url if above else ""))
        else:  # confirm the seat under a new number, which voids all others that it was given
            self._give(name, member.parent)

    def _parent_is_gone(self, name: str, gone: str, now: float) -> None:
        node, parent = self._nodes[name], self._nodes.get(gone)
        node.shunned = {other: until for other, until in node.shunned.items() if until > now}
        node.shunned[gone] = now + LEASE
        if parent is not None and parent.heard < now:
            parent.suspect = True
            self._note_room(gone)
        if node.seat.parent == gone:
            self._seat(name, now)

    def _bury(self, names: list[str], now: float) -> None:
        """Remove nodes that are gone. Their children get new seats, deepest subtrees first."""
        orphans: list[str] = []
        for name in names:
            node = self._nodes.get(name)
            if node is None:
                continue
            self._detach(name)
            self._free.remove(name)
            del self._nodes[name]
            self._graves[name] = now + GRAVE_LEASES * LEASE, node.believed
            for child in node.children:
                orphans.append(child)
        left = [name for name in orphans if name in self._nodes]
        for name in left:
            self._nodes[name].seat = Seat()
            self._settle_depths(name, 1)
        for name in sorted(left, key=lambda name: (-self._height(name), name)):
            self._seat(name, now)

    def _seat(self, name: str, now: float) -> None:
        """Give a node the best seat available."""
        self._detach(name)
        node = self._nodes[name]
        if len(self._top) < self._fan_out:
            self._give(name, ROOT)
            return
        leaf = self._leaf_at_top() if node.room else None
        if leaf is not None and leaf != name:
            self._give(name, ROOT)
            if self._fits(leaf, name, now):
                self._give(leaf, name)
            return
        self._give(name, self._parent_for(name, now) or ROOT)

    def _relieve(self, now: float) -> None:
        """Move nodes that are below the root for lack of room, if there is room now. Moves at most
        `fan_out` at a time."""
        over = len(self._top) - self._fan_out
        if over <= 0 or not self._free:
            return
        nodes = self._nodes
        last_first = sorted(
            self._top, key=lambda name: (bool(nodes[name].member.url), -nodes[name].seat.number)
        )
        for name in last_first[: min(over, self._fan_out)]:
            parent = self._parent_for(name, now)
            if parent is not None:
                self._give(name, parent)

    def _leaf_at_top(self) -> str | None:
        """Returns a node directly below the root that takes no children."""
        return min((name for name in self._top if not self._nodes[name].member.url), default=None)

    def _parent_for(self, name: str, now: float) -> str | None:
        """Returns the parent nearest to the root that has room for a node."""
        return self._free.first(lambda parent: self._fits(name, parent, now))

    def _fits(self, name: str, parent: str, now: float) -> bool:
        """True if a node can be put below `parent`."""
        node, above = self._nodes[name], self._nodes[parent]
        return (
            name != parent
            and above.room
            and not above.suspect
            and node.shunned.get(parent, 0.0) <= now
            and above.depth + 1 + self._height(name) <= self._deepest
            and self._never_below(parent, name)
        )

    def _never_below(self, name: str, other: str) -> bool:
        """True if `name` is below the root and not below `other`, whatever seats the nodes above it
        believe they have. False if that is not known."""
        seen, todo = {name}, [name]
        while todo:
            at = todo.pop()
            node = self._nodes.get(at)
            if at == other or node is None or not node.believed:
                return False
            if min(node.believed) < self._first:
                return False  # an earlier root may have given it other seats
            for parent in node.believed.values():
                if parent != ROOT and parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        return True

    def _is_above(self, name: str, other: str) -> bool:
        """True if `name` is above `other`, or equal to it, by the seats that were given."""
        at: str = other
        for _ in range(len(self._nodes) + 1):
            if at == name:
                return True
            node = self._nodes.get(at)
            if node is None:
                return False
            at = node.seat.parent
        return True

    def _give(self, name: str, parent: str) -> None:
        """Give a node a seat with a new number."""
        self._detach(name)
        number, self._next = self._next, self._next + 1
        url = ROOT if parent == ROOT else self._nodes[parent].member.url
        self._nodes[name].believed[number] = parent
        self._attach(name, Seat(number, parent, url))

    def _attach(self, name: str, seat: Seat) -> None:
        self._nodes[name].seat = seat
        if seat.parent == ROOT:
            self._top.add(name)
        else:
            self._nodes[seat.parent].children.add(name)
            self._note_room(seat.parent)
        self._settle_depths(name, 1 if seat.parent == ROOT else self._nodes[seat.parent].depth + 1)

    def _detach(self, name: str) -> None:
        self._top.discard(name)
        above = self._nodes.get(self._nodes[name].seat.parent)
        if above is not None:
            above.children.discard(name)
            self._note_room(self._nodes[name].seat.parent)

    def _settle_depths(self, name: str, depth: int) -> None:
        self._nodes[name].depth = depth
        self._note_room(name)
        for child in sorted(self._nodes[name].children):  # in a fixed order, so runs repeat
            self._settle_depths(child, depth + 1)

    def _height(self, name: str) -> int:
        """Returns the number of levels below a node."""
        children = self._nodes[name].children
        return 1 + max(map(self._height, children)) if children else 0

    def _note_room(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is not None:
            self._free.note(name, node.depth if node.room and not node.suspect else None)
