"""Where emitted events go.

An event put onto a stream goes at once through the maps that subscribe to it (a map never costs a
shuffle), into the inbox of every placed function that subscribes, and to the outputs. Events along
a feedback edge are handed back to the emitter, whose shard keeps them for the next batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from millstream.codec import decode_value, decode_values, shards_of
from millstream.engine.columns import Columns
from millstream.engine.effects import Effects
from millstream.engine.plan import Plan
from millstream.errors import FunctionError
from millstream.model.event import Event
from millstream.model.place import described
from millstream.model.rules import FAILURES, DeadLetter

_new = tuple.__new__
Placed = dict[tuple[int, int], Columns]
"""Deliveries by (function number, shard)."""


@dataclass
class Outbox:
    """Events along feedback edges, by the function that is to get them."""

    deliveries: dict[int, Columns] = field(default_factory=dict)

    def add(self, target: int, columns: Columns) -> None:
        self.deliveries.setdefault(target, Columns()).extend(columns)

    def __len__(self) -> int:
        return sum(map(len, self.deliveries.values()))


class Router:
    """Collects what a task emits: `placed` inboxes, `outputs`, `late` events, dead letters."""

    def __init__(self, plan: Plan, batch: int) -> None:
        self.plan = plan
        self.batch = batch
        self.placed: Placed = {}
        self.outputs: dict[int, Columns] = {}
        self.dead: list[DeadLetter] = []
        self.highest: int | None = None
        self.processed: dict[int, int] = {}
        """How many events each map has processed."""
        self.emitted: dict[int, int] = {}
        """How many events were put onto each stream."""
        self.spent: dict[int, int] = {}
        """Nanoseconds that each function has taken."""

    def route(
        self,
        emitter: int,
        events: Columns,
        outbox: Outbox | None = None,
        decoded: list[Any] | None = None,
    ) -> None:
        """Send what `emitter` put onto its streams on their way.

        `decoded`: the values of events of one stream, if they are at hand and nobody else's.
        """
        if not events:
            return
        kinds = set(events.streams)
        if len(kinds) == 1:
            self._route_stream(emitter, kinds.pop(), events, outbox, decoded)
            return
        for stream, some in enumerate(events.split(events.streams, len(self.plan.streams))):
            if some is not None:
                self._route_stream(emitter, stream, some, outbox, None)

    def _route_stream(
        self,
        emitter: int,
        stream: int,
        events: Columns,
        outbox: Outbox | None,
        decoded: list[Any] | None,
    ) -> None:
        highest = max(events.ts)
        if self.highest is None or highest > self.highest:
            self.highest = highest
        self.emitted[stream] = self.emitted.get(stream, 0) + len(events)
        targets = self.plan.targets(emitter, stream)
        if targets.output:
            self.outputs.setdefault(stream, Columns()).extend(events)
        for target in targets.placed:
            self.place(target, events)
        for target in targets.feedback:
            assert outbox is not None  # only placed functions have feedback edges
            outbox.add(target, events)
        for target in targets.maps:
            self.run_map(target, events, decoded)
            decoded = None  # a map may change its values: the next one gets its own

    def deliver(self, target: int, events: Columns) -> None:
        """Give events to one function: into its inbox, or through it if it is a fused map."""
        if target in self.plan.layer_of:
            self.place(target, events)
        else:
            self.run_map(target, events)

    def place(self, target: int, events: Columns) -> None:
        """Put events into the inboxes of a placed function, by shard."""
        shards = self.plan.shards
        if shards == 1:
            self.placed.setdefault((target, 0), Columns()).extend(events)
            return
        to = shards_of(self.plan.functions[target].name, events.keys, shards)
        for shard, some in enumerate(events.split(to, shards)):
            if some is not None:
                inbox = self.placed.get((target, shard))
                if inbox is None:
                    self.placed[target, shard] = some
                else:
                    inbox.extend(some)

    def run_map(
        self,
        number: int,
        events: Columns,
        values: list[Any] | None = None,
        outbox: Outbox | None = None,
    ) -> None:
        """Run a map over events and route what it emits. `values`: the decoded ones, if at hand."""
        plan, began = self.plan, perf_counter_ns()
        function, streams = plan.functions[number].function, plan.streams
        effects = Effects(plan, number)
        if values is None:
            values = decode_values(events.values)
        for stream, ts, key, encoded, value in zip(
            events.streams, events.ts, events.keys, events.values, values, strict=True
        ):
            mark = len(effects.emitted)
            name = streams[stream]
            try:
                result = function(_new(Event, (name, ts, key, value)))
                if result is not None:
                    effects.emit(result, name, ts, key, encoded)
            except FAILURES as error:
                effects.undo(mark)
                self._fail(number, Event(name, ts, key, decode_value(encoded)), error)
        self.processed[number] = self.processed.get(number, 0) + len(events)
        self.took(number, perf_counter_ns() - began)
        self.route(number, effects.emitted, outbox)

    def took(self, number: int, nanoseconds: int) -> None:
        """Count the time that a function has taken."""
        self.spent[number] = self.spent.get(number, 0) + nanoseconds

    def _fail(self, number: int, event: Event, error: BaseException) -> None:
        function = self.plan.functions[number]
        if self.plan.workflow.on_error == "fail":
            raise FunctionError(
                f"{function.where}, key {event.key!r}: {described(error)}"
            ) from error
        self.dead.append(
            DeadLetter(
                function.name,
                event.stream,
                event.ts,
                event.key,
                event.value,
                described(error),
                batch=self.batch,
            )
        )

    def take(self) -> Placed:
        """The inboxes so far; the router starts new ones."""
        placed, self.placed = self.placed, {}
        return placed
