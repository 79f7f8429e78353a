"""A run of a scenario."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from time import process_time

import millstream as ms
from bench.agent_simulation.agent_disk import MemoryLetters
from bench.agent_simulation.agent_node import AgentNode
from bench.agent_simulation.faults import Faults
from bench.agent_simulation.made_up_log import SECOND, MadeUpLog, Truth
from bench.agent_simulation.network import Network
from bench.agent_simulation.root_node import RootNode
from bench.agent_simulation.scenario import EPOCH, JOB, ClockModel, Scenario
from bench.agent_simulation.traffic import Traffic
from bench.agent_simulation.virtual_threads import installed
from bench.agent_simulation.world import World
from millstream import App
from millstream.agent.panes import job_panes
from millstream.windows.job import Job
from millstream.windows.placed import PlacedJob

SETTLING = 60.0
"""Seconds after the end of the logs in which agents that are gone are found out."""
Pairs = list[tuple[str, int]]


def key_of(record: dict[str, object]) -> Pairs:
    """The map of the job."""
    return [(str(record["k"]), 1)]


@dataclass(slots=True)
class Simulation:
    """The parts of a run, and its results."""

    scenario: Scenario
    placed: PlacedJob
    world: World
    traffic: Traffic
    network: Network
    root: RootNode
    nodes: dict[str, AgentNode]
    truth: Truth
    faults: Faults
    begin: float
    """When the first window begins that all nodes have lines of, in the world's time."""
    end: float
    """When the logs end."""
    quiet: bool = False
    """True if all windows were closed and all outboxes were empty at the end."""
    cpu: float = 0.0
    parents: frozenset[str] = frozenset()
    """The nodes that had children when the logs ended."""

    @property
    def windows(self) -> range:
        """The windows that have lines, by the clock of the root."""
        slide = self.placed.job.span.slide / SECOND
        first = int((EPOCH + self.begin) // slide)
        return range(first, first + self.scenario.windows)


def simulate(scenario: Scenario, *, patience: float = 400.0) -> Simulation:
    """Run a scenario until all is quiet, for `patience` seconds after the logs have ended."""
    began = process_time()
    world, random = World(), Random(scenario.seed)
    letters = job_panes, "DeadLetters", MemoryLetters
    with _no_collector(), installed(world, Random(random.getrandbits(64)), letters):
        here = _made(scenario, world, random)
        world.run(here.begin)
        here.traffic.reset(world.now)
        world.run(here.end)
        here.traffic.stop(world.now)
        here.parents = frozenset(here.faults.children())
        here.faults.stop()
        here.network.calm = True
        world.run(here.end + SETTLING)
        while not (quiet := _is_quiet(here)) and world.now < here.end + patience:
            world.run(world.now + 1.0)
        here.quiet = quiet
        here.cpu = process_time() - began
    return here


@contextmanager
def _no_collector() -> Iterator[None]:
    """Millions of objects that live long: looking for garbage among them takes a fifth of a run."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def placed_job(scenario: Scenario) -> tuple[App, PlacedJob]:
    """The application and its job."""
    app = ms.App("simulated")
    job = Job(
        map=key_of,
        combine=ms.algebra.count(),
        range=scenario.range,
        slide=scenario.slide,
        latency=scenario.latency,
    )
    logs = ms.windows.Logs(ts="t", unit="us")
    app.add(job, name=JOB, nodes=list(scenario.names), logs=logs)
    return app, PlacedJob(job, JOB, scenario.names, logs)


def _made(scenario: Scenario, world: World, random: Random) -> Simulation:
    app, placed = placed_job(scenario)
    traffic = Traffic()
    network = Network(world, scenario.links, Random(random.getrandbits(64)), traffic)
    root = RootNode(app, placed, network, fan_out=scenario.fan_out, batch=scenario.batch)
    slide = placed.job.span.slide / SECOND
    farthest = scenario.clocks.farthest if scenario.clocks.far else scenario.clocks.apart
    begin = -(-(EPOCH + scenario.starting + farthest + 2 * slide) // slide) * slide - EPOCH
    end = begin + scenario.windows * slide
    truth = Truth(placed.job.span.pane)
    nodes: dict[str, AgentNode] = {}
    for number, name in enumerate(scenario.names):
        own = Random(random.getrandbits(64))
        wall = EPOCH + _apart(scenario.clocks, own)
        log = MadeUpLog(name, scenario.logs, truth, own, wall, 0.0, end)
        serves = number % 7 == 0 if number < 7 else own.random() < scenario.serving
        nodes[name] = AgentNode(
            placed, name, network, log, own, wall=wall, capacity=scenario.capacity * serves
        )
        world.at(own.uniform(0.0, scenario.starting), nodes[name].start)
    faults = Faults(scenario.faults, world, network, root, nodes, Random(random.getrandbits(64)))
    faults.plan(begin, end)
    return Simulation(
        scenario, placed, world, traffic, network, root, nodes, truth, faults, begin, end
    )


def _apart(model: ClockModel, random: Random) -> float:
    """Returns how far a clock is ahead, in seconds."""
    if random.random() < model.far:
        return random.choice([-1, 1]) * random.uniform(model.apart, model.farthest)
    return random.uniform(-model.apart, model.apart)


def _is_quiet(here: Simulation) -> bool:
    """True if all written lines are in closed windows."""
    if any(window not in here.root.closed_at for window in written_windows(here)):
        return False
    return not any(waiting_panes(here, node) for node in here.nodes.values())


def written_windows(here: Simulation) -> list[int]:
    """The windows that have lines; none is before the first that was opened."""
    first = min(here.root.opened, default=None)
    windows = {one for pane in here.truth.keys for one in here.placed.job.span.windows_of(pane)}
    return sorted(one for one in windows if first is None or one >= first)


def waiting_panes(here: Simulation, node: AgentNode) -> list[int]:
    """The panes with lines of a node that the root has not taken, though its agent lives."""
    last = here.truth.last.get(node.name)
    if node.agent is None or last is None:
        return []
    waiting = [entry.pane for entry in node.disk.entries() if entry.pane <= last]
    restart = node.disk.newest()
    begun = None if restart is None else restart["pane"]
    return waiting if begun is not None and begun > last else [*waiting, last]
