"""The process on a log server (iMR, 2.2 and 4): reads a log, makes its panes, sends them.

DESIGN
------
One loop reads (`looping`, `shared_reading`) and makes the panes of each job (`job_panes`). Beside
it each job has two or three threads: one sends what is in the outbox, one follows what the root
tells, and a parent's takes what children send.

    files -> lines -> panes -> outbox, on disk -> sender -> parent or root
    following  reading         outbox             sending    parent

A pane that ends is in the outbox, with the place in the log after it, before anything that follows
is read from there: whenever the process dies, it goes on at that place. The log is the buffer: when
the outbox or the disk is full, or memory runs out (`limits`), the loop stops reading until that is
over, and says so. When the log is idle, panes end by the clock, a second after their time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from millstream.agent.agent_job import AgentJob
from millstream.agent.job_orders import JobOrders
from millstream.agent.limits import Limits
from millstream.agent.looping import Loop, Ticks
from millstream.agent.options import Options, check_tree
from millstream.agent.outbox import Outbox, Say
from millstream.agent.parent import Parent
from millstream.agent.sending import Sender
from millstream.agent.state import FolderLock, job_folder
from millstream.agent.summary import summary, undone
from millstream.agent.surroundings import Surroundings
from millstream.agent.told import Told
from millstream.agent.wire import Wire
from millstream.errors import CommandError, RunError
from millstream.model.place import shown_path
from millstream.windows.placed import PlacedJob


def run_agent(
    placed: PlacedJob | Sequence[PlacedJob],
    options: Options,
    stop: Event,
    say: Say,
    orders: JobOrders | None = None,
) -> dict[str, object]:
    """Run until `stop` is set, or until the log or all jobs are at their end; how it was at the
    end, of several jobs by name, in `jobs`. With `orders` jobs come and go while it runs.

    StoreLocked if another agent uses the state; ClientError if the root will never take its panes;
    RunError if it was to read a log once, and was stopped before the root had all of it.
    """
    jobs = [placed] if isinstance(placed, PlacedJob) else [*placed]
    for job in jobs:
        check_tree(job, options)
    if len(jobs) != 1 and options.serve is not None:
        raise CommandError("--serve must be of an agent with one job; start one for each job")
    if isinstance(placed, PlacedJob) and orders is None:
        ended = _run(jobs, options, stop, say, orders, lambda name: options.state)
        return ended[placed.name]
    lock = FolderLock(options.state)
    try:
        folder = partial(job_folder, options.state)
        return {"jobs": _run(jobs, options, stop, say, orders, folder, locked=True)}
    finally:
        lock.close()


def _run(
    jobs: Sequence[PlacedJob],
    options: Options,
    stop: Event,
    say: Say,
    orders: JobOrders | None,
    folder: Callable[[str], Path],
    *,
    locked: bool = False,
) -> dict[str, dict[str, Any]]:
    """Run jobs, each with its folder; `locked`: the folder of the agent has its lock."""

    def open_job(placed: PlacedJob) -> AgentJob:
        own, link = folder(placed.name), partial(DirectLink, options=options, say=say)
        mine = locked and own == options.state
        return AgentJob(placed, options, own, link, limits, around, locked=mine)

    tick = Ticks(lambda: loop.tick(), lambda: loop.tell(), time.monotonic)
    around = Surroundings(say, stop, tick, time.monotonic, lambda: time.time_ns() // 1_000)
    limits = Limits(options.memory, around)
    loop = Loop(options, limits, around, open_job, orders)
    try:
        for placed in jobs:
            loop.start(placed)
        loop.run()
        while not stop.is_set() and not loop.drained(0.25):
            tick()
    finally:
        loop.close()
    _say_how_it_was(loop, options, folder, say)
    return loop.ended


class DirectLink:
    """A job's panes go to the root, or to a parent that was named, and it may be one itself."""

    def __init__(self, placed: PlacedJob, outbox: Outbox, *, options: Options, say: Say) -> None:
        self._options = options
        root = Wire(options.root, options.token)
        self.told = Told(Wire(options.root, options.token), placed, options.node, say)
        up = Wire(options.parent[1], options.token) if options.parent else None
        self._parent = _parent(placed, options, root, up, self.told, say)
        self._sender = Sender(
            outbox, placed, root=root, parent=self._parent or up, told=self.told, say=say
        )
        self._threads: list[Told | Sender | Parent] = [self.told, self._sender]
        if self._parent is not None:
            self._threads.append(self._parent)
            host, port = self._parent.address
            say(f"listens at {host}:{port} for the panes of {', '.join(options.children)}")

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        for thread in self._threads:
            thread.check()

    def stop(self, seconds: float) -> None:
        for thread in reversed(self._threads):
            thread.stop(seconds)

    def status(self) -> dict[str, Any]:
        """The part of the status that says how panes go out."""
        return _sending(self._options, self._sender, self._parent)


def _sending(options: Options, sender: Sender, parent: Parent | None) -> dict[str, Any]:
    """The part of the status that says how panes go out."""
    direct = sender.direct if parent is None else parent.direct
    told: dict[str, Any] = {
        "sending_paused": sender.paused or (parent.paused if parent else None),
        "to": "root" if direct or options.parent is None else f"parent {options.parent[0]}",
    }
    if parent is not None:
        told["children"] = parent.children()
    return told


def _say_how_it_was(loop: Loop, options: Options, folder: Callable[[str], Path], say: Say) -> None:
    undone_jobs = []
    for name, status in loop.ended.items():
        whose = f"{name}: " if len(loop.ended) > 1 else ""
        for sentence in summary(status, folder(name)):
            say(f"{whose}{sentence}")
        left = undone(status)
        if options.once and left:
            undone_jobs.append(f"{whose}{left}")
        elif status["unsent"]:
            say(f"{whose}{left}: they wait in {shown_path(folder(name))} until it is started again")
    if loop.failures:
        raise loop.failures[0]
    if undone_jobs:
        raise RunError(f"{'; '.join(undone_jobs)}; start it again: it goes on where it was")


def _parent(
    placed: PlacedJob, options: Options, root: Wire, up: Wire | None, told: Told, say: Say
) -> Parent | None:
    if options.serve is None:
        return None
    return Parent(
        placed,
        options.node,
        options.whole_tree,
        options.children,
        root=root,
        up=up,
        told=told,
        token=options.token,
        address=options.serve,
        most_bytes=options.memory // 2,
        say=say,
    )
