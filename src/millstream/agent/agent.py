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
from millstream.agent.options import Options, check_tree
from millstream.agent.outbox import Outbox, Say
from millstream.agent.parent import Parent
from millstream.agent.sending import Sender
from millstream.agent.state import State
from millstream.agent.summary import summary, undone
from millstream.agent.surroundings import Surroundings
from millstream.agent.told import Told
from millstream.agent.wire import Wire
from millstream.errors import RunError
from millstream.model.place import shown_path
from millstream.windows.placed import PlacedJob


def run_agent(placed: PlacedJob, options: Options, stop: Event, say: Say) -> dict[str, object]:
    """Run until `stop` is set, or until the log or the job is at its end; how it was at the end.

    StoreLocked if another agent uses the state; ClientError if the root will never take its panes;
    RunError if it was to read a log once, and was stopped before the root had all of it.
    """
    check_tree(placed, options)
    root = Wire(options.root, options.token)
    state = State(options.state, placed, options.node)
    try:
        outbox = Outbox(state.folder / "outbox", options.buffer, say)
        told = Told(Wire(options.root, options.token), placed, options.node, say)
        up = Wire(options.parent[1], options.token) if options.parent else None
        parent = _parent(placed, options, root, up, told, say)
        sender = Sender(outbox, placed, root=root, parent=parent or up, told=told, say=say)
        beside: list[Told | Sender | Parent] = [told, sender]
        if parent is not None:
            beside.append(parent)
            host, port = parent.address
            say(f"listens at {host}:{port} for the panes of {', '.join(options.children)}")

        def check() -> None:
            for one in beside:
                one.check()

        tick = Ticks(check, lambda: panes.tell(), time.monotonic)
        around = Surroundings(say, stop, tick, time.monotonic, lambda: time.time_ns() // 1_000)
        limits = Limits(options.memory, around)
        limits.outboxes.append(outbox)
        panes = JobPanes(
            placed,
            options.node,
            options.whole_tree,
            state,
            outbox,
            told,
            limits,
            around,
            lambda: _sending(options, sender, parent),
        )
        loop = Loop(panes, options, limits, around)
        for one in beside:
            one.start()
        try:
            loop.run()
            while not stop.is_set() and not sender.drain(0.25):
                tick()
        finally:
            loop.close()
            for one in reversed(beside):
                one.stop(1.0)
            status = {**panes.status(), "unsent": outbox.panes, "ended": True}
            state.status(status)
        _say_how_it_was(status, options, say)
        return status
    finally:
        state.close()


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


def _say_how_it_was(status: dict[str, Any], options: Options, say: Say) -> None:
    for sentence in summary(status, options.state):
        say(sentence)
    left = undone(status)
    if options.once and left:
        raise RunError(f"{left}; start it again: it goes on where it was")
    if status["unsent"]:
        say(f"{left}: they wait in {shown_path(options.state)} until it is started again")


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
