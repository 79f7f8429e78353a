"""The process on a log server (iMR, 2.2 and 4): reads a log, makes its panes, sends them.

DESIGN
------
One loop reads the log (`agent_loop`, `node_log`) and makes the panes of all jobs (`job_panes`).
Threads run beside it. For each job, one thread sends its outbox and one asks for its news. In a
parent, one more thread for each job sends merged panes, and an HTTP server takes what children
send. One thread says hello to the root or to the parent, and gets the jobs that the root wants.

    files  ->  lines  ->  panes  ->  outbox, on disk  ->  parent or root
       log_follower   pane_reader   outbox        sender, parent

A pane that ends is put into the outbox, together with the position in the log after it, before
anything after that position is read. If the process dies, it resumes at that position. The log is
the buffer: when the outbox or the disk is full, or memory runs out (`limits`), the loop says so and
stops reading until there is room. When the log is idle, the clock ends panes, after `Logs(grace=)`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

from millstream.agent.agent_job import AgentJob
from millstream.agent.agent_loop import Loop, Ticks
from millstream.agent.delivery.outbox import Say
from millstream.agent.job_orders import JobOrders
from millstream.agent.job_status import JobStatus
from millstream.agent.limits import Limits
from millstream.agent.log.array_files import check_files
from millstream.agent.network import AgentNetwork
from millstream.agent.options import AgentOptions, check_tree
from millstream.agent.state import job_folder
from millstream.agent.surroundings import Surroundings
from millstream.counted_nouns import counted, verb
from millstream.errors import CommandError, RunError
from millstream.model.place import shown_path
from millstream.nearest import did_you_mean
from millstream.packages.keys import Allowed
from millstream.packages.node_jobs import job_on_node
from millstream.trees.messages import JobTicket
from millstream.wall_clock import wall_clock
from millstream.windows.definition import read_published
from millstream.windows.placed import PlacedJob

REASONS = {
    "shed": "there was no time for them before the job's latency",
    "drawn": "their panes were not drawn for the sample",
    "cancelled": "their windows were already closed",
    "memory": "their panes did not fit (--memory), or were too large to be sent",
}
"""The reasons why records were shed, by the `why` of their panes."""


def run_jobs(
    jobs: Mapping[Path, PlacedJob], options: AgentOptions, stop: Event, say: Say
) -> dict[str, JobStatus]:
    """Run jobs, each with its own state folder, and return the last status of each.

    Ends when `stop` is set, when all jobs are over or, with `once`, when the log is read to its
    end. Raises StoreLocked if another agent uses a state folder, ClientError if the root refuses
    the panes for good, RunError if a log was to be read once and the agent was stopped before the
    root had all of it.
    """
    for placed in jobs.values():
        check_tree(placed, options)
    check_files([job.logs for job in jobs.values()], options.patterns, growing=not options.once)
    folders = {placed.name: folder for folder, placed in jobs.items()}
    agent = _Agent(options, stop, say, folders.__getitem__, None)
    return agent.run([*jobs.values()])


def run_hosted(
    allowed: Allowed, options: AgentOptions, stop: Event, say: Say
) -> dict[str, JobStatus]:
    """Run the jobs that the root wants on this node, until `stop` is set.

    Returns the last status of each.
    """

    def folder(name: str) -> Path:
        return job_folder(options.state, name)

    orders = JobOrders()
    agent = _Agent(options, stop, say, folder, orders)
    agent.network.host(HostedJobs(allowed, options, orders))
    return agent.run([])


class HostedJobs:
    """Hosts the jobs that the root wants (`job_host`): passes them to the loop as orders."""

    def __init__(self, allowed: Allowed, options: AgentOptions, orders: JobOrders) -> None:
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
    """The loop, the network, and the surroundings that they share."""

    def __init__(
        self,
        options: AgentOptions,
        stop: Event,
        say: Say,
        folder: Callable[[str], Path],
        orders: JobOrders | None,
    ) -> None:
        """`folder` gives a job's state folder by its name. With `orders`, jobs may be started and
        stopped while the agent runs."""
        self._options, self._stop, self._say, self._folder = options, stop, say, folder
        self._several = orders is not None
        self.network = AgentNetwork(options, say)
        tick = Ticks(self._check, lambda: self._loop.tell(), time.monotonic)
        self._around = Surroundings(say, stop, tick, time.monotonic, wall_clock)
        self._limits = Limits(options.memory, self._around)
        self._loop = Loop(options, self._limits, self._around, self._opened, orders)

    def run(self, jobs: list[PlacedJob]) -> dict[str, JobStatus]:
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
            children = ", ".join(self._options.children) or "those that the root places below it"
            self._say(f"listens at {host}:{port} for the panes of {children}")

    def _say_how_it_was(self) -> None:
        loop, unfinished = self._loop, list[str]()
        for name, status in loop.ended.items():
            prefix = f"job {name}: " if self._several else ""
            folder = self._folder(name)
            for sentence in summary(status, folder):
                self._say(f"{prefix}{sentence}")
            left = undone(status)
            if self._options.once and left:
                unfinished.append(f"{prefix}{left}")
            elif status.unsent:
                shown = shown_path(folder)
                self._say(f"{prefix}{left}: they wait in {shown} until it is started again")
        if loop.failures:
            raise loop.failures[0]
        if unfinished:
            raise RunError(f"{'; '.join(unfinished)}; start it again: it resumes where it stopped")


def summary(status: JobStatus, state: Path) -> list[str]:
    """Returns sentences that sum up a run. `status` is the last one, `state` the state folder."""
    sentences = []
    if status.dead:
        sentences.append(
            f"{counted(status.dead, 'dead letter')}, lines that could not be read or mapped: "
            f"see {shown_path(state / 'dead-letters.jsonl')}"
        )
    if status.gaps:
        sentences.append(
            f"{counted(status.gaps, 'gap')} in the log: lines were lost before they were read; "
            "the panes that may have had these lines say so"
        )
    for why, count in sorted(status.shed_why.items()):
        hint = ""
        if why == "cancelled" and not status.on_time:
            hint = f": is {shown_path(state)} the right --state?"
        sentences.append(f"{counted(count, 'record')} shed: {REASONS.get(why, why)}{hint}")
    sentences.append(
        f"read {status.read:,}, on time {status.on_time:,}, late {status.late:,}, "
        f"shed {status.shed:,}, dead {status.dead:,}"
        + (f", of these {status.misdated:,} for their times" if status.misdated else "")
    )
    return sentences


def undone(status: JobStatus) -> str:
    """Returns what is left to do; empty if there is nothing."""
    panes = status.unsent
    if not panes:
        return "" if status.log_at_end else "the log is not read to its end"
    words = f"{counted(panes, 'pane')} {verb(panes, 'is', 'are')} not sent"
    return f"{words}; {status.sending_paused}" if status.sending_paused else words
