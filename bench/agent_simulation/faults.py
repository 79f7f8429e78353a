"""The faults of a run: their times are drawn from the seed at its beginning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from bench.agent_simulation.agent_node import AgentNode
from bench.agent_simulation.network import Network
from bench.agent_simulation.root_node import RootNode
from bench.agent_simulation.scenario import FaultPlan
from bench.agent_simulation.world import World


@dataclass(frozen=True, slots=True)
class Death:
    """An agent was killed."""

    node: str
    at: float
    silent: bool
    children: tuple[str, ...]
    """The nodes that sent through it."""
    below: tuple[str, ...]
    """The nodes that sent through its children, and so on down the tree."""


class Faults:
    """Applies the faults, and records them."""

    def __init__(
        self,
        plan: FaultPlan,
        world: World,
        network: Network,
        root: RootNode,
        nodes: Mapping[str, AgentNode],
        random: Random,
    ) -> None:
        self._plan, self._world, self._network = plan, world, network
        self._root, self._nodes, self._random = root, nodes, random
        self.deaths: list[Death] = []
        self.never_back: set[str] = set()
        self._parted: list[tuple[str, str]] = []
        self._over = False

    def plan(self, begin: float, end: float) -> None:
        """Draw when to strike between two times."""
        plan, random, world = self._plan, self._random, self._world
        strikes = [
            *[self._strike_parent] * plan.parents,
            *[self._strike_leaf] * plan.leaves,
            *[self._strike_rack] * bool(plan.rack),
            *[self._strike_link] * plan.partitions,
            *[self._strike_root] * plan.root_restarts,
        ]
        for strike in strikes:
            world.at(random.uniform(begin, end), strike)

    def stop(self) -> None:
        """Repairs everything, except for the nodes that never return."""
        self._over = True
        for one, other in self._parted:
            self._network.join(one, other)
        if not self._root.process.alive:
            self._root.serve()
        for node in self._nodes.values():
            if node.agent is None and node.name not in self.never_back:
                node.start()

    def _away(self) -> float:
        return self._random.uniform(*self._plan.away)

    def children(self) -> dict[str, list[str]]:
        """By parent, the nodes that send by it now."""
        found: dict[str, list[str]] = {}
        for node in self._nodes.values():
            way = None if node.agent is None else node.agent.member.way()
            if way is not None:
                found.setdefault(way.parent, []).append(node.name)
        return found

    def _parents(self) -> list[str]:
        return sorted(name for name in self.children() if self._nodes[name].agent is not None)

    def _strike_parent(self) -> None:
        parents = self._parents()
        if parents and not self._over:
            self._kill(self._random.choice(parents), silent=self._is_silent())

    def _strike_leaf(self) -> None:
        if not self._over:
            parents = set(self._parents())
            leaves = [
                name
                for name, node in self._nodes.items()
                if node.agent is not None and name not in parents
            ]
            self._kill(self._random.choice(leaves), silent=self._is_silent())

    def _strike_rack(self) -> None:
        """Neighbours by name, and two parents."""
        if self._over:
            return
        names, silent = [*self._nodes], self._is_silent()
        first = self._random.randrange(max(1, len(names) - self._plan.rack))
        parents = self._parents()
        struck = names[first : first + self._plan.rack]
        struck += self._random.sample(parents, min(2, len(parents)))
        for name in dict.fromkeys(struck):
            if self._nodes[name].agent is not None:
                self._kill(name, silent=silent)

    def _strike_link(self) -> None:
        if self._over:
            return
        seated = [
            (node.name, node.agent.member.seat.parent or "root")
            for node in self._nodes.values()
            if node.agent is not None and node.agent.member.seat.number
        ]
        if seated:
            one, other = self._random.choice(seated)
            self._parted.append((one, other))
            self._network.part(one, other)
            self._world.at(self._world.now + self._away(), lambda: self._network.join(one, other))

    def _strike_root(self) -> None:
        if self._over or not self._root.process.alive:
            return
        self._root.stop()
        self._world.at(self._world.now + self._away(), self._restart_root)

    def _restart_root(self) -> None:
        if not self._root.process.alive:
            self._root.serve()

    def _is_silent(self) -> bool:
        return self._random.random() < self._plan.silent

    def _kill(self, name: str, *, silent: bool) -> None:
        node = self._nodes[name]
        children = self.children()
        first = children.get(name, [])
        below, last = list[str](), first
        while last:
            last = [one for parent in last for one in children.get(parent, [])]
            below += last
        self.deaths.append(Death(name, self._world.now, silent, tuple(first), tuple(below)))
        node.kill(silent=silent)
        if self._random.random() < self._plan.never_back:
            self.never_back.add(name)
            return

        def back() -> None:
            if node.agent is None:
                node.start()

        self._world.at(self._world.now + self._away(), back)
