"""The process on a log server (iMR, 2.2 and 4): reads a log, makes its panes, sends them.

DESIGN
------
One loop reads (`looping`, `node_log`) and makes panes, for all jobs (`job_panes`). Beside it are
threads: for each job one sends what is in its outbox and one hears its news; a parent's takes what
children send; one says hello to the root or to the parent, and brings the jobs that the root wants.

    files -> lines -> panes -> outbox, on disk -> sender -> parent or root
    following  reading         outbox             sending    parent

A pane that ends is in the outbox, with the place in the log after it, before anything that follows
is read from there: whenever the process dies, it goes on at that place. The log is the buffer: when
the outbox or the disk is full, or memory runs out (`limits`), the loop stops reading until that is
over, and says so. When the log is idle, panes end by the clock, a second after their time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

from millstream.agent.agent_job import AgentJob
from millstream.agent.job_orders import JobOrders
from millstream.agent.limits import Limits
from millstream.agent.looping import Loop, Ticks
from millstream.agent.network import Network
from millstream.agent.options import Options, check_tree
from millstream.agent.outbox import Say
from millstream.agent.state import job_folder
from millstream.agent.summary import summary, undone
from millstream.agent.surroundings import Surroundings
from millstream.errors import CommandError, RunError
from millstream.model.place import shown_path
from millstream.nearest import did_you_mean
from millstream.packages.keys import Allowed
from millstream.packages.node_jobs import job_on_node
from millstream.trees.messages import JobTicket
from millstream.windows.definition import read_published
from millstream.windows.placed import PlacedJob

Status = dict[str, Any]


def run_agent(placed: PlacedJob, options: Options, stop: Event, say: Say) -> Status:
    """Run one job, whose state is `options.state` itself: see `run_jobs`."""
    return run_jobs({options.state: placed}, options, stop, say)[placed.name]


def run_jobs(
    jobs: Mapping[Path, PlacedJob], options: Options, stop: Event, say: Say
) -> dict[str, Status]:
    """Run jobs, each with its state in a folder, until `stop` is set, or until the log or all jobs
    are at their end; how each was.

    StoreLocked if another agent uses a state; ClientError if the root will never take its panes;
    RunError if a log was to be read once, and it was stopped before the root had all of it.
    """
    for placed in jobs.values():
        check_tree(placed, options)
    folders = {placed.name: folder for folder, placed in jobs.items()}
    agent = _Agent(options, stop, say, folders.__getitem__, None)
    return agent.run([*jobs.values()])


def run_hosted(allowed: Allowed, options: Options, stop: Event, say: Say) -> dict[str, Status]:
    """Run the jobs that the root wants of this node, until `stop` is set; how each was."""

    def folder(name: str) -> Path:
        return job_folder(options.state, name)

    orders = JobOrders()
    agent = _Agent(options, stop, say, folder, orders)
    agent.network.host(HostedJobs(allowed, options, orders))
    return agent.run([])


class HostedJobs:
    """The host of the jobs that the root wants (`job_hosting`): the loop starts and stops them."""

    def __init__(self, allowed: Allowed, options: Options, orders: JobOrders) -> None:
        self._allowed, self._options, self._orders = allowed, options, orders

    def start(self, ticket: JobTicket, definition: bytes, fetch: Callable[[str], bytes]) -> None:
        placed = job_on_node(
            read_published(definition),
            ticket.name,
            allowed=self._allowed,
            fetch=fetch,
            folder=self._options.state / "packages",
        )
        node = self._options.node
        if node not in placed.nodes:
            raise CommandError(f"it has no node {node!r}; {did_you_mean(node, placed.nodes)}")
        self._orders.start_job(placed)

    def stop(self, name: str) -> None:
        self._orders.stop_job(name)


class _Agent:
    """The loop, the network, and what they share."""

    def __init__(
        self,
        options: Options,
        stop: Event,
        say: Say,
        folder: Callable[[str], Path],
        orders: JobOrders | None,
    ) -> None:
        """`folder` is where the state of a job is; with `orders` jobs come and go."""
        self._options, self._stop, self._say, self._folder = options, stop, say, folder
        self._several = orders is not None
        self.network = Network(options, say)
        tick = Ticks(self._check, lambda: self._loop.tell(), time.monotonic)
        self._around = Surroundings(
            say, stop, tick, time.monotonic, lambda: time.time_ns() // 1_000
        )
        self._limits = Limits(options.memory, self._around)
        self._loop = Loop(options, self._limits, self._around, self._opened, orders)

    def run(self, jobs: list[PlacedJob]) -> dict[str, Status]:
        self._several = self._several or len(jobs) > 1
        try:
            for placed in jobs:
                self._loop.start(placed)
            self._say_where()
            self.network.start()
            self._loop.run()
            while not self._stop.is_set() and not self._loop.drained(0.25):
                self._around.tick()
        finally:
            self._loop.close()
            self.network.stop(1.0)
        self._say_how_it_was()
        return self._loop.ended

    def _opened(self, placed: PlacedJob) -> AgentJob:
        folder = self._folder(placed.name)
        if self._several:
            self._say(f"job {placed.name!r} runs here now, state {shown_path(folder)}")
        return AgentJob(
            placed, self._options, folder, self.network.link, self._limits, self._around
        )

    def _check(self) -> None:
        self.network.check()
        self._loop.tick()

    def _say_where(self) -> None:
        if self.network.address is not None:
            host, port = self.network.address
            whose = ", ".join(self._options.children) or "those that the root places below it"
            self._say(f"listens at {host}:{port} for the panes of {whose}")

    def _say_how_it_was(self) -> None:
        loop, unfinished = self._loop, list[str]()
        for name, status in loop.ended.items():
            whose = f"job {name}: " if self._several else ""
            folder = self._folder(name)
            for sentence in summary(status, folder):
                self._say(f"{whose}{sentence}")
            left = undone(status)
            if self._options.once and left:
                unfinished.append(f"{whose}{left}")
            elif status["unsent"]:
                kept = shown_path(folder)
                self._say(f"{whose}{left}: they wait in {kept} until it is started again")
        if loop.failures:
            raise loop.failures[0]
        if unfinished:
            raise RunError(f"{'; '.join(unfinished)}; start it again: it goes on where it was")
