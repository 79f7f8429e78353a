"""The scenario of a simulation: nodes, job, links, clocks, logs and faults."""

from __future__ import annotations

from dataclasses import dataclass

EPOCH = 1_700_000_000.0
"""The time of day when a simulation begins, in seconds."""
JOB = "hits"


@dataclass(frozen=True, slots=True)
class LinkModel:
    """The delays and losses of requests."""

    delay: float = 0.02
    """Seconds that a message takes, on the average."""
    lost: float = 0.0
    """The part of requests that never arrive."""
    unanswered: float = 0.0
    """The part that arrive and whose answers do not."""
    slow: float = 0.0
    """The part that take seconds."""
    slowest: float = 8.0


@dataclass(frozen=True, slots=True)
class ClockModel:
    """The offsets of the nodes' clocks from the root's."""

    apart: float = 0.0
    """Seconds, at most, of most of them."""
    far: float = 0.0
    """The part of them that are farther."""
    farthest: float = 60.0


@dataclass(frozen=True, slots=True)
class LogModel:
    """The log lines of the nodes."""

    every: float = 2.5
    """Seconds between two writes."""
    lines: int = 3
    """In a write, on the average."""
    keys: int = 40
    idle: float = 0.1
    """The part of writes that do not come."""
    disordered: float = 0.0
    """The part of nodes whose lines are in no order, by up to 3 seconds."""
    broken: float = 0.0
    """The part of lines that cannot be read."""


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults between the beginning and the end of a run. All are drawn from the seed."""

    parents: int = 0
    """Parents that are killed, one after the other, each with children."""
    leaves: int = 0
    """Other agents that are killed."""
    rack: int = 0
    """Agents that are killed at once, parents among them."""
    never_back: float = 0.0
    """The fraction of nodes that never return."""
    away: tuple[float, float] = (3.0, 20.0)
    """Seconds that others are away."""
    silent: float = 0.5
    """The part of deaths that others notice only by waiting: the machine died, not the process."""
    partitions: int = 0
    """Times that a node and its parent do not reach each other, for `away`."""
    root_restarts: int = 0
    """Times that the server of the root is away for `away`, and has forgotten the tree."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A simulation."""

    seed: int = 0
    nodes: int = 50
    windows: int = 12
    """That the logs are written for."""
    range: str = "10s"
    slide: str = "10s"
    latency: str | None = "10s"
    serving: float = 0.15
    """The part of nodes that take children."""
    fan_out: int = 32
    capacity: int = 32
    batch: float = 0.5
    """Seconds between two batches of the application."""
    starting: float = 5.0
    """Seconds within which the agents are started."""
    links: LinkModel = LinkModel()
    clocks: ClockModel = ClockModel()
    logs: LogModel = LogModel()
    faults: FaultPlan = FaultPlan()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"n{number:05d}" for number in range(self.nodes))
