"""A root and agents over a network that loses and delays, for tests of the tree.

The decisions are the real ones; only what carries them is made up. Time is the world's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.trees.messages import Hello, HelloAnswer, JobTicket, Orders
from millstream.trees.tree_member import Greeting, TreeMember
from millstream.trees.tree_placement import EVERY, ROOT, TreePlacement

JOB = JobTicket("counts", "v1")


@dataclass
class World:
    fan_out: int = 3
    deepest: int = 4
    now: float = 0.0
    lives: int = 0
    hellos: int = 0
    members: dict[str, TreeMember] = field(default_factory=dict)
    late_hellos: list[tuple[float, Hello]] = field(default_factory=list)
    """That a root may get once more: when they were sent, and what."""
    late_answers: list[tuple[TreeMember, Greeting, HelloAnswer]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart_root()

    def restart_root(self) -> None:
        """A root with an empty memory, and later numbers."""
        self.lives += 1
        first = 1_000_000 * self.lives
        self.root = TreePlacement(first, fan_out=self.fan_out, deepest=self.deepest)

    def join(self, node: str, *, serves: bool = True) -> TreeMember:
        """Start the agent of a node, also one that died."""
        self.lives += 1
        url, capacity = (f"http://{node}", self.fan_out) if serves else ("", 0)
        member = TreeMember(node, url, capacity, began=self.lives, jobs=[JOB])
        self.members[node] = member
        return member

    def greet(self, node: str, fate: str = "fine") -> None:
        """An agent says hello; the fate of it: fine, lost, answer lost, delayed, answer delayed."""
        member = self.members[node]
        greeting = member.hello(self.now)
        self.hellos += 1
        if fate == "delayed" and greeting.by_root:
            self.late_hellos.append((self.now, greeting.hello))
        answer = None if fate in ("lost", "delayed") else self.answer(greeting)
        if fate == "answer delayed" and answer is not None:
            self.late_answers.append((member, greeting, answer))
        if fate != "fine" or answer is None:
            member.unanswered(greeting, self.now, 0.5)
        else:
            member.answered(greeting, answer, self.now)

    def answer(self, greeting: Greeting) -> HelloAnswer | None:
        """Returns the answer; None from a dead node."""
        if greeting.by_root:
            return self.answer_of_root(greeting.hello)
        parent = self.members.get(greeting.seat.parent)
        return None if parent is None else parent.heard(greeting.hello, self.now)

    def answer_of_root(self, hello: Hello) -> HelloAnswer:
        seats = self.root.hello(hello, self.now)
        return HelloAnswer(EVERY, {node: Orders(seat) for node, seat in seats.items()})

    def deliver_late(self) -> None:
        """Delivers delayed requests, unless they are older than a request can be."""
        for sent, hello in self.late_hellos:
            if self.now - sent < 20:
                self.answer_of_root(hello)
        self.late_hellos = []
        for member, greeting, answer in self.late_answers:
            if self.members.get(member.node) is member:
                member.answered(greeting, answer, self.now)
        self.late_answers = []

    def run(self, seconds: float) -> None:
        """Everyone says hello when it is due, and nothing is lost."""
        until = self.now + seconds
        while self.now < until:
            for node in list(self.members):
                if self.members[node].due <= self.now:
                    self.greet(node)
            self.now += 0.5

    def believed(self) -> dict[str, str]:
        """Each agent that lives, and the parent that it believes to have."""
        return {node: member.seat.parent for node, member in self.members.items()}


def cycle_in(parents: dict[str, str]) -> list[str]:
    """A cycle, if there is one."""
    for node in parents:
        path = [node]
        while (above := parents.get(path[-1], ROOT)) != ROOT:
            if above in path:
                return [*path, above]
            path.append(above)
    return []
