"""A node: its log and its disk, which last, and the agent on it, which may be killed and started.

The agent's parts are the real ones, put together as `agent.agent` and `agent.network` do it.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from bench.agent_simulation.agent_disk import MemoryOutbox, MemoryState
from bench.agent_simulation.made_up_log import SECOND, MadeUpLog
from bench.agent_simulation.network import SCHEME, Network, VirtualWire
from bench.agent_simulation.virtual_threads import VirtualEvent
from bench.agent_simulation.world import Process, World
from millstream.agent.delivery.root_decisions import RootDecisions
from millstream.agent.delivery.wire import Answer, ServerWire, answer_of
from millstream.agent.limits import Limits
from millstream.agent.log.line_slices import MOST_LINES, Slice
from millstream.agent.log.line_times import LOOK_AHEAD
from millstream.agent.log.log_files import LineChunk, Mark
from millstream.agent.log.log_follower import LogFollower
from millstream.agent.network import JobLink
from millstream.agent.node_log import LOOK
from millstream.agent.options import PLACED
from millstream.agent.panes.job_panes import JobPanes
from millstream.agent.state import State
from millstream.agent.surroundings import Surroundings
from millstream.agent.tree.membership import ANSWER_WITHIN, Membership
from millstream.agent.tree.parent import Parent
from millstream.model.duration import microseconds
from millstream.trees.messages import JobTicket, NewsQuestion
from millstream.trees.tree_member import TreeMember
from millstream.windows.placed import PlacedJob

MEMORY = 256 << 20
BUFFER = 1 << 30
LOG = Path("log")


class LogPosition:
    """In place of the files that are followed: a place in a made-up log."""

    empty = False

    def __init__(self, offset: int) -> None:
        self.offset = offset
        """The offset of the first line that was not read."""

    def position(self, chunk: LineChunk | None = None, offset: int = 0) -> list[Mark]:
        at = self.offset if chunk is None else chunk.start + offset
        return [Mark("log", str(LOG), "", at, "", at, False)]


class AgentNode:
    """A node of the job."""

    def __init__(
        self,
        placed: PlacedJob,
        name: str,
        network: Network,
        log: MadeUpLog,
        random: Random,
        *,
        wall: float,
        capacity: int,
    ) -> None:
        """`wall` is the time of day of this node at the world's time 0; with a `capacity` it takes
        children."""
        self.name, self.log, self.capacity = name, log, capacity
        self._placed, self._network, self._random, self._wall = placed, network, random, wall
        self._world: World = network.world
        assert placed.logs is not None
        self._grace = microseconds(placed.logs.grace, "") / SECOND
        self._pane = placed.job.span.pane / SECOND
        self.disk = MemoryOutbox(BUFFER, self._say)
        self.lives = 0
        self.said: list[str] = []
        """The last sentences of the agent."""
        self.agent: Agent | None = None

    def start(self) -> None:
        """Start the agent's process."""
        assert self.agent is None
        self.lives += 1
        self.agent = Agent(self)
        if self.capacity:
            self._network.listen(self.name, self.agent)

    def kill(self, *, silent: bool) -> None:
        """End it at once; `silent`: nobody refuses connections either."""
        assert self.agent is not None
        self._network.gone(self.name, silent=silent)
        self._world.kill(self.agent.process)
        self.agent = None

    def wall(self) -> int:
        """The time of day, as this node has it, in microseconds."""
        return int((self._wall + self._world.now) * SECOND)

    def _say(self, sentence: str) -> None:
        self.said = [*self.said[-9:], f"{self._world.now:.2f} {sentence}"]


class Agent:
    """A process of a node's agent, from its start to its end."""

    def __init__(self, node: AgentNode) -> None:
        world, network, placed = node._world, node._network, node._placed
        self._node, self._world, self._placed = node, world, placed
        self.process = world.process = Process(node.name)
        ahead = node._random.uniform(0.0, 1_000.0)
        self._clock = lambda: world.now + ahead
        root = VirtualWire(network, node.name, f"{SCHEME}root", "the root")
        url = f"{SCHEME}{node.name}" if node.capacity else ""
        self.member = TreeMember(node.name, url, node.capacity, began=node.wall())

        def connect(url: str, name: str) -> ServerWire:
            return VirtualWire(network, node.name, url, name, ANSWER_WITHIN)

        self.membership = Membership(self.member, root, connect, node._say, self._clock)
        serves = self._parent if node.capacity else None
        self.link = JobLink(
            placed, node.name, node.disk, self.membership, serves, node._say, self._clock
        )
        self.membership.runs(JobTicket(placed.name, ""))
        stop: Any = VirtualEvent()
        around = Surroundings(node._say, stop, self._check, self._clock, node.wall)
        limits = Limits(MEMORY, around, used=lambda: 0)
        limits.outboxes.append(node.disk)
        state = cast(State, MemoryState())
        self.panes = JobPanes(
            placed, node.name, PLACED, state, node.disk, self.link.decisions, limits, around
        )
        began = self.panes.position
        self._log = LogPosition(began[0].offset if began else 0)
        self._file = SimpleNamespace(path=LOG, key="log", size=0)
        self._read_lines = node.log.offsets.index(self._log.offset)
        self.panes.cursor.follower = cast(LogFollower, self._log)
        self.membership.start()
        self.link.start()
        self.panes.begin()
        self._looked = world.now
        self._look_soon(world.now)

    # What others ask

    def take_post(self, body: bytes, key: str) -> Answer:
        assert self.link.parent is not None
        return self.link.parent.post("", body, key)

    def take_question(self, question: NewsQuestion) -> Answer:
        return answer_of(200, self.link.decisions.answer(question))

    def take_hello(self, node: str, body: bytes) -> Answer:
        return self.membership.greeted(node, body)

    # The loop of the agent

    def _parent(self, decisions: RootDecisions) -> Parent:
        name = self._placed.name
        return Parent(
            self._placed,
            self._node.name,
            ways=self.membership,
            decisions=decisions,
            children=lambda: self.membership.children(name),
            depth=self.membership.depth,
            most_bytes=MEMORY // 2,
            say=self._node._say,
            clock=self._clock,
        )

    def _check(self) -> None:
        self.membership.check()
        self.link.check()

    def _look(self) -> None:
        """Read what there is, end panes whose time is over, and come again."""
        if not self.process.alive:
            return
        node, world = self._node, self._world
        self._check()
        self.panes.waited(world.now - self._looked)  # what it does takes no time here
        self._looked = world.now
        node.log.write(world.now)
        self._read()
        self.panes.idle(node.wall())
        wall = node.wall() / SECOND
        ends = (wall - node._grace) // node._pane * node._pane + node._pane + node._grace
        self._look_soon(min(world.now + ends - wall, node.log.next if not node.log.over else 1e18))

    def _look_soon(self, when: float) -> None:
        """An agent looks at its log every `LOOK` seconds."""
        self._world.at(when + self._node._random.uniform(0.0, LOOK), self._look)

    def _read(self) -> None:
        log = self._node.log
        while self._read_lines < len(log.lines):
            first = self._read_lines
            lines = log.lines[first : first + MOST_LINES]
            end = first + len(lines)
            start, size = log.offsets[first], log.offsets[end] - log.offsets[first]
            chunk = LineChunk(cast(Any, self._file), start, b"", size)
            after = log.lines[end : end + LOOK_AHEAD]
            self.panes.take(chunk, Slice(lines, 0, (str(LOG), start), after))
            self._read_lines, self._log.offset = end, log.offsets[end]
