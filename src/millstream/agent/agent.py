"""The process on a log server (iMR, 2.2 and 4): reads a log, makes its panes, sends them.

DESIGN
------
One loop reads (`looping`, `log_reader`) and makes panes (`job_panes`). Beside it are two or three
threads: one sends what is in the outbox, one follows what the root tells, and a parent's takes what
children send.

    files -> lines -> panes -> outbox, on disk -> sender -> parent or root
    following  reading         outbox             sending    parent

A pane that ends is in the outbox, with the place in the log after it, before anything that follows
is read from there: whenever the process dies, it goes on at that place. The log is the buffer: when
the outbox or the disk is full, or memory runs out (`limits`), the loop stops reading until that is
over, and says so. When the log is idle, panes end by the clock, a second after their time.
"""

from __future__ import annotations

import time
from threading import Event
from typing import Any

from millstream.agent.job_panes import JobPanes
from millstream.agent.limits import Limits
from millstream.agent.looping import Loop, Ticks
from millstream.agent.network import Network
from millstream.agent.options import Options, check_tree
from millstream.agent.outbox import Outbox, Say
from millstream.agent.state import State
from millstream.agent.summary import summary, undone
from millstream.agent.surroundings import Surroundings
from millstream.errors import RunError
from millstream.model.place import shown_path
from millstream.windows.placed import PlacedJob


def run_agent(placed: PlacedJob, options: Options, stop: Event, say: Say) -> dict[str, object]:
    """Run until `stop` is set, or until the log or the job is at its end; how it was at the end.

    StoreLocked if another agent uses the state; ClientError if the root will never take its panes;
    RunError if it was to read a log once, and was stopped before the root had all of it.
    """
    check_tree(placed, options)
    state = State(options.state, placed, options.node)
    try:
        outbox = Outbox(state.folder / "outbox", options.buffer, say)
        network = Network(options, say)
        link = network.link(placed, outbox)
        if network.address is not None:
            host, port = network.address
            whose = ", ".join(options.children) or "those that the root places below it"
            say(f"listens at {host}:{port} for the panes of {whose}")
        tick = Ticks(network.check, lambda: panes.tell(), time.monotonic)
        around = Surroundings(say, stop, tick, time.monotonic, lambda: time.time_ns() // 1_000)
        limits = Limits(options.memory, around)
        limits.outboxes.append(outbox)
        panes = JobPanes(
            placed,
            options.node,
            options.whole_tree,
            state,
            outbox,
            link.told,
            limits,
            around,
            link.status,
        )
        loop = Loop(panes, options, limits, around)
        network.start()
        link.start()
        try:
            loop.run()
            while not stop.is_set() and not link.sender.drain(0.25):
                tick()
        finally:
            loop.close()
            network.stop(1.0)
            status = {**panes.status(), "unsent": outbox.panes, "ended": True}
            state.status(status)
        _say_how_it_was(status, options, say)
        return status
    finally:
        state.close()


def _say_how_it_was(status: dict[str, Any], options: Options, say: Say) -> None:
    for sentence in summary(status, options.state):
        say(sentence)
    left = undone(status)
    if options.once and left:
        raise RunError(f"{left}; start it again: it goes on where it was")
    if status["unsent"]:
        say(f"{left}: they wait in {shown_path(options.state)} until it is started again")
