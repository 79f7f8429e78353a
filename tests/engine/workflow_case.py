"""A whole application made from the building blocks of `workflows`, with its input.

`workflow_cases.cases()` is the strategy that makes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.workflows import (
    Memo,
    Spec,
    UpdateSpec,
    map_function,
    timer_function,
    update_function,
)

from millstream import App
from millstream.model.event import Event
from millstream.model.slate import Table
from millstream.model.workflow import Order, Workflow


@dataclass(frozen=True)
class SourceSpec:
    name: str
    lateness: int = 0
    idle: int = 10**15


@dataclass(frozen=True)
class Case:
    """An application and its input, and how to run it."""

    order: Order
    sources: tuple[SourceSpec, ...]
    functions: tuple[Spec, ...]
    delays: tuple[tuple[str, int], ...]
    batches: tuple[tuple[Event, ...], ...]
    shards: int = 1
    tasks: int = 1
    after: tuple[tuple[str, str], ...] = ()
    """Streams, each with one that it comes after."""

    def app(self) -> App:
        app = App("case", order=self.order)
        for source in self.sources:
            app.source(
                source.name, lateness=f"{source.lateness}us", idle=f"{source.idle}us", ts="ts"
            )
        for spec in self.functions:
            if isinstance(spec, UpdateSpec):
                app.update(
                    *spec.subscribes,
                    publishes=spec.publishes,
                    name=spec.name,
                    slate={"dict": dict, "dataclass": Memo, "table": Table}[spec.slate],
                    ttl=None if spec.ttl is None else f"{spec.ttl}us",
                    on_timer=timer_function(spec) if spec.timed else None,
                )(update_function(spec))
            else:
                app.map(*spec.subscribes, publishes=spec.publishes, name=spec.name)(
                    map_function(spec)
                )
        published = {stream for spec in self.functions for stream in spec.publishes}
        for stream in sorted(published):
            app.output(stream)
        delays, after = dict(self.delays), dict(self.after)
        for stream in sorted({*delays, *after}):
            app.stream(stream, delay=f"{delays.get(stream, 0)}us", after=after.get(stream))
        return app

    def workflow(self) -> Workflow:
        return self.app().checked()

    @property
    def events(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]

    @property
    def has_timers(self) -> bool:
        return any(isinstance(spec, UpdateSpec) and spec.timed for spec in self.functions)
