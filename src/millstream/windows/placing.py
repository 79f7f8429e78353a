"""From a job to the functions of the model: a map, an update for the panes, one for the windows.

    streams of the nodes -> NAME.log -> NAME.nodes -> NAME.panes -> NAME.root -> NAME, NAME.windows

The map gives each record its node as key; `NAME.nodes` makes the panes of a node, with a timer at
the end of each, so that a node that is silent says so; `NAME.root` has a table for each reducer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.codec import encode_value
from millstream.errors import DefinitionError
from millstream.model.app import App
from millstream.model.event import Emit, Event, SetTimer, Timer, emit, timer
from millstream.model.function import check_name, takes
from millstream.model.slate import Table
from millstream.windows.job import Job
from millstream.windows.making import Making, end, step
from millstream.windows.root import Root

PANE = "pane"


def place(app: App, job: Job, name: str, nodes: Mapping[str, str] | Sequence[str]) -> None:
    """Add the functions of a job over the logs of its nodes, each a stream."""
    check_name(name, "job")
    if isinstance(nodes, str) or not isinstance(nodes, Mapping | Sequence) or not nodes:
        raise DefinitionError(
            f"job {name!r}: nodes must name the nodes, as in nodes=['web1', 'web2'], or say the "
            f"stream of each, as in nodes={{'web1': 'log1'}}; got {nodes!r}"
        )
    logs = dict(nodes) if isinstance(nodes, Mapping) else {node: node for node in nodes}
    by_time = app.order == "event-time" and job.span.axis == "time"
    naming = Naming(tuple((stream, node) for node, stream in logs.items()))
    app.map(*logs.values(), publishes=f"{name}.log", name=f"{name}.map")(naming)
    making = PaneMaking(job, name)
    app.update(
        f"{name}.log",
        publishes=f"{name}.panes",
        slate=Making,
        name=f"{name}.nodes",
        on_timer=OnTimer(making) if job.span.axis == "time" else None,
    )(making)
    root = Root(job, name, tuple(logs), by_time)
    app.output(name)
    app.output(f"{name}.windows")
    app.update(
        f"{name}.panes",
        publishes=(name, f"{name}.windows"),
        slate=Table,
        name=f"{name}.root",
        on_timer=OnTimer(root) if by_time or job.latency is not None else None,
    )(root)


@dataclass(frozen=True)
class OnTimer:
    """The timer function of an update: two of equal updates are equal, as methods are not."""

    of: PaneMaking | Root
    __signature__ = takes("timer", "slate")

    def __call__(self, due: Timer, slate: Any) -> Iterator[Emit | SetTimer]:
        return self.of.on_timer(due, slate)


@dataclass(frozen=True)
class Naming:
    """The map that gives the records of a log their node as key."""

    nodes: tuple[tuple[str, str], ...]
    __signature__ = takes("event")

    def __call__(self, event: Event) -> list[Emit]:
        return [emit(key=dict(self.nodes)[event.stream])]


@dataclass(frozen=True)
class PaneMaking:
    """The update that makes a node's panes; the timer of a pane's end is its `on_timer`."""

    job: Job
    name: str
    __signature__ = takes("event", "slate")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    def __call__(self, event: Event, making: Making) -> Iterator[Emit | SetTimer]:
        size, before = len(encode_value(event.value)), making.pane
        ts = event.ts - 1  # the hop to here took a microsecond
        for reducer, message in step(self.job, making, event.value, ts, size, event.key, self.name):
            yield emit(key=str(reducer), value=message)
        if making.pane != before:
            yield from self._set(making)

    def on_timer(self, due: Timer, making: Making) -> Iterator[Emit | SetTimer]:
        """The pane is over, whether a record of the next one came or not."""
        assert making.pane is not None
        for reducer, message in end(self.job, making, due.key, self.name, making.pane + 1):
            yield emit(key=str(reducer), value=message)
        yield from self._set(making)

    def _set(self, making: Making) -> Iterator[SetTimer]:
        if self.job.span.axis == "time" and making.pane is not None:
            # After every record of the pane, each of which has taken a microsecond to come here.
            yield timer(at=(making.pane + 1) * self.job.span.pane, name=PANE)
