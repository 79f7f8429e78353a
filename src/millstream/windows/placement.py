"""Turns a job into functions of the model.

    streams of the nodes -> NAME.log  -> NAME.nodes -> NAME.panes      on Spark
    NAME.late            -> NAME.late.log -> NAME.nodes                on Spark, in event-time order
    agents                                         -> NAME.panes       with `logs`, a source
    NAME.panes -> NAME.said -> NAME.reducers -> NAME.schedule          see `reducers`
    NAME.panes -> NAME.coming, with NAME.schedule -> NAME.ledger -> NAME.parts
    NAME.parts -> NAME.root -> NAME, NAME.windows

The first map sets the key of each record to its node. `NAME.nodes` makes the panes of a node. In
event-time order it counts the notices of late events (`model/late_notice.py`) as late records. It
sets a timer at the end of each pane, so that a node without records reports it. On axes other than
time, the timer is for the end of event time. `NAME.ledger` takes in each pane once. `NAME.root` has
a table for each reducer. Agents are told on `NAME.told`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.codec import encode_value
from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.event import Emit, Event, SetTimer, Timer, emit, timer
from millstream.model.function import check_name, takes
from millstream.model.late_notice import LateNotice
from millstream.model.slate import Table
from millstream.windows.field_map import FieldMap
from millstream.windows.logs import Logs
from millstream.windows.panes.pane_ledger import PaneLedger
from millstream.windows.panes.pane_maker import Maker, Making
from millstream.windows.panes.shedder import is_drawn
from millstream.windows.placed import PlacedJob
from millstream.windows.reducers import Agreed, Reducers, Saying
from millstream.windows.root.window_root import Root

if TYPE_CHECKING:
    from millstream.windows.job import Job

PANE = "pane"


def place(
    app: AppDefinition,
    job: Job,
    name: str,
    nodes: Mapping[str, str] | Sequence[str],
    logs: Logs | None = None,
) -> None:
    """Adds the functions of a job to an application. Its input is a stream for each node or, with
    `logs`, the messages of the agents on the nodes."""
    check_name(name, "job")
    if isinstance(nodes, str) or not isinstance(nodes, Mapping | Sequence) or not nodes:
        raise DefinitionError(
            f"job {name!r}: nodes must name the nodes, as in nodes=['web1', 'web2'], or the stream "
            f"of each, as in nodes={{'web1': 'log1'}}; got {nodes!r}"
        )
    if logs is not None and not isinstance(logs, Logs):
        raise DefinitionError(
            f"job {name!r}: logs must say how agents read the logs, as in "
            f"logs=ms.windows.Logs(ts='time'); got {logs!r}"
        )
    if logs is not None and isinstance(nodes, Mapping):
        raise DefinitionError(
            f"job {name!r}: nodes must be a list of names if there are logs, since agents read "
            f"these and not streams; got {nodes!r}"
        )
    if logs is not None:
        logs.check_job(job, f"job {name!r}")
        logs.check_field(job.sequence, f"job {name!r}: sequence")
        if isinstance(job.map, FieldMap):
            job.map.check_logs(logs)
    for node in nodes:
        if not isinstance(node, str) or not node:
            raise DefinitionError(f"job {name!r}: the name of a node must be text; got {node!r}")
    placed = PlacedJob(job, name, tuple(nodes), logs)
    if len({*placed.nodes}) != len(placed.nodes):
        raise DefinitionError(
            f"job {name!r}: nodes must be named once each; got {', '.join(placed.nodes)}"
        )
    named_streams = [*nodes.values()] if isinstance(nodes, Mapping) else []
    shared = [
        node
        for node, stream in zip(nodes, named_streams, strict=False)
        if named_streams.count(stream) > 1
    ]
    if shared:
        raise DefinitionError(
            f"job {name!r}: each node must have its own stream, since a record's stream determines "
            f"its node; got the same for {', '.join(shared)}"
        )
    app.place(name, placed)
    if logs is None:
        streams = nodes if isinstance(nodes, Mapping) else {node: node for node in nodes}
        _add_panes(app, job, name, streams)
    else:
        app.source(placed.panes)
    _add_root(app, placed)


def _add_panes(app: AppDefinition, job: Job, name: str, logs: Mapping[str, str]) -> None:
    """Adds the functions that make panes from records on Spark."""
    naming = Naming(name, tuple((stream, node) for node, stream in logs.items()))
    late = app.order == "event-time"
    if late:
        app.late_notices(f"{name}.late", streams=logs.values())
    app.map(
        *logs.values(),
        *([f"{name}.late"] if late else []),
        publishes=[f"{name}.log", *([f"{name}.late.log"] if late else [])],
        name=f"{name}.map",
    )(naming)
    records = f"{name}.log"
    making = PaneMaking(job, name, max(app.way(stream, records, name) for stream in logs.values()))
    app.update(
        records,
        *([f"{name}.late.log"] if late else []),
        publishes=f"{name}.panes",
        slate=Making,
        name=f"{name}.nodes",
        on_timer=OnTimer(making),
    )(making)


def _add_root(app: AppDefinition, placed: PlacedJob) -> None:
    """Adds the functions that make windows from panes."""
    job, name, agents = placed.job, placed.name, placed.logs is not None
    notices = (placed.told,) if agents else ()
    app.map(placed.panes, publishes=(f"{name}.said", f"{name}.coming"), name=f"{name}.saying")(
        Saying(name, placed.nodes, job)
    )
    app.update(f"{name}.said", publishes=f"{name}.schedule", slate=Agreed, name=f"{name}.reducers")(
        Reducers(job, name)
    )
    app.update(
        f"{name}.schedule",
        f"{name}.coming",
        publishes=(f"{name}.parts", *notices),
        slate=Table,
        name=f"{name}.ledger",
    )(PaneLedger(job, name, agents))
    app.stream(f"{name}.coming", after=f"{name}.schedule")
    by_time = not agents and app.order == "event-time" and job.span.axis == "time"
    arrival = app.way(f"{name}.log", f"{name}.parts", name) if by_time else None
    root = Root(job, name, placed.nodes, arrival, agents, placed.dated)
    for output in (name, f"{name}.windows"):
        app.output(output, order_by="from")
    for output in notices:
        app.output(output)
    app.update(
        f"{name}.parts",
        publishes=(name, f"{name}.windows", *notices),
        slate=Table,
        name=placed.root,
        on_timer=OnTimer(root) if not agents or job.latency is not None else None,
    )(root)


@dataclass(frozen=True)
class OnTimer:
    """The timer function of an update. Unlike methods, those of equal updates are equal."""

    update: PaneMaking | Root
    __signature__ = takes("timer", "slate")

    def __call__(self, due: Timer, slate: Any) -> Iterator[Emit | SetTimer]:
        return self.update.on_timer(due, slate)


@dataclass(frozen=True)
class Naming:
    """The map that sets the key of a log's records, and of notices of late ones, to their node. A
    notice of a source that leads to the streams of several nodes goes to each of them."""

    name: str
    nodes: tuple[tuple[str, str], ...]
    __signature__ = takes("event")

    def __call__(self, event: Event) -> list[Emit]:
        nodes = dict(self.nodes)
        if event.stream == f"{self.name}.late":
            streams = msgspec.convert(event.value, LateNotice).streams
            return [emit(f"{self.name}.late.log", key=nodes[stream]) for stream in streams]
        return [emit(f"{self.name}.log", key=nodes[event.stream])]


@dataclass(frozen=True)
class PaneMaking:
    """The update that makes a node's panes. `on_timer` is called at a pane's end."""

    job: Job
    name: str
    on_the_way: int
    """The time from a record until it is here."""
    __signature__ = takes("event", "slate")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    def __call__(self, event: Event, making: Making) -> Iterator[Emit | SetTimer]:
        before = making.pane
        maker = Maker(self.job, event.key)
        ts = event.ts - self.on_the_way
        if event.stream == f"{self.name}.late.log":
            notice = msgspec.convert(event.value, LateNotice)
            maker.miss(making, notice.value, notice.ts, now=ts)
        else:
            size = len(encode_value(event.value))
            for message in maker.take(making, event.value, ts, size):
                yield emit(value=message)
        if making.pane != before:
            if making.pane is not None and not self._is_drawn(event.key, making.pane):
                maker.give_up(making, "drawn")
            yield from self._set(making)
        if self.job.span.axis != "time" and making.pane is not None:
            yield timer(at="end", name=PANE)

    def on_timer(self, due: Timer, making: Making) -> Iterator[Emit | SetTimer]:
        """Ends the pane, because its time or event time is over, even if no later record came."""
        assert making.pane is not None
        maker = Maker(self.job, due.key)
        maker.cut(making)
        for message in maker.end(making, making.pane + 1):
            yield emit(value=message)
        if not self._is_drawn(due.key, making.pane):
            maker.give_up(making, "drawn")
        yield from self._set(making)

    def _is_drawn(self, node: str, pane: int) -> bool:
        """True if the pane must be made."""
        return self.job.drawn_part is None or is_drawn(self.job, node, pane)

    def _set(self, making: Making) -> Iterator[SetTimer]:
        if self.job.span.axis == "time" and making.pane is not None:
            last = (making.pane + 1) * self.job.span.pane - 1
            yield timer(at=last + self.on_the_way, name=PANE)
