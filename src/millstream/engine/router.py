"""Where emitted events go.

An event put onto a stream goes at once through the maps that subscribe to it (a map never costs a
shuffle), into the inbox of every placed function that subscribes, and to the outputs. Events along
a feedback edge are handed back to the emitter, whose shard keeps them for the next batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from millstream.codec import decode_value, decode_values, encode_value, shards_of
from millstream.engine.columns import Columns
from millstream.engine.combining import Combiner
from millstream.engine.effects import Effects
from millstream.engine.plan import SOURCE, Plan, Targets
from millstream.errors import FunctionError
from millstream.model.event import Event
from millstream.model.function import Update
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
        """How many events each map has processed, those that failed left out."""
        self.emitted: dict[int, int] = {}
        """How many events were put onto each stream."""
        self.spent: dict[int, int] = {}
        """Nanoseconds that each function has taken."""
        self.taken: dict[int, int] = {}
        """How many deliveries there are to each function: one event to one function is one."""
        self.late: dict[int, int] = {}
        """How many of them were late."""
        self.refused: dict[int, int] = {}
        """How many of them are of records that did not become events."""
        self.dropped: dict[int, Columns] = {}
        """Events that an update past its limit has dropped."""

        self.unmerged: dict[int, int] = {}
        """How many events dead letters stand for, beyond one each, by aggregate."""
        self._combiners: dict[int, Combiner] = {}

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
        self._owe(targets, len(events))
        shared = None if targets.maps else decoded  # a map may change its values
        for target in targets.placed:
            self.place(target, events, shared)
        for target in targets.feedback:
            assert outbox is not None  # only placed functions have feedback edges
            outbox.add(target, events)
        for target in targets.maps:
            self.run_map(target, events, decoded)
            decoded = None  # a map may change its values: the next one gets its own

    def owe(self, stream: int, records: int, *, late: bool) -> None:
        """Count records of a source that are for its subscribers and will not get to them.

        By subscriber, not by source: a function that is added later was never owed them.
        """
        targets = self.plan.targets(SOURCE, stream)
        self._owe(targets, records)
        _count(self.late if late else self.refused, targets, records)

    def _owe(self, targets: Targets, events: int) -> None:
        _count(self.taken, targets, events)

    def deliver(self, target: int, events: Columns) -> None:
        """Give events to one function: into its inbox, or through it if it is a fused map."""
        if target in self.plan.layer_of:
            self.place(target, events)
        else:
            self.run_map(target, events)

    def place(self, target: int, events: Columns, decoded: list[Any] | None = None) -> None:
        """Put events into the inboxes of a placed function, by shard; combine an aggregate's."""
        if target in self.plan.combined:
            began = perf_counter_ns()
            self._combiner(target).add(events, decoded)
            self.took(target, perf_counter_ns() - began)
            return
        self._place(target, events)

    def place_keys(self, stream: int, keys: list[str], times: list[int], highest: int) -> None:
        """Events of a source of which nothing but key and time is needed (`plan.needs_values`)."""
        if self.highest is None or highest > self.highest:
            self.highest = highest
        self.emitted[stream] = self.emitted.get(stream, 0) + len(keys)
        targets = self.plan.targets(SOURCE, stream)
        self._owe(targets, len(keys))
        for target in targets.placed:
            began = perf_counter_ns()
            self._combiner(target).add_keys(keys, times)
            self.took(target, perf_counter_ns() - began)

    def combined(self, target: int, events: Columns) -> Columns:
        """Events of an aggregate as partials; they are counted as processed."""
        began, combiner = perf_counter_ns(), self._combiner(target)
        combiner.add(events, None)
        partials = combiner.take()
        self.processed[target] = self.processed.get(target, 0) + combiner.take_processed()
        self.took(target, perf_counter_ns() - began)
        return partials

    def settle(self) -> None:
        """Put the partials of aggregates into their inboxes."""
        for target in self._combiners:
            partials = self.combined(target, Columns())
            if partials:
                self._place(target, partials)

    @property
    def full(self) -> bool:
        """Whether an aggregate has so many partials that they should be taken."""
        return any(combiner.full for combiner in self._combiners.values())

    def _combiner(self, target: int) -> Combiner:
        found = self._combiners.get(target)
        if found is None:
            update = self.plan.functions[target]
            assert isinstance(update, Update)
            found = self._combiners[target] = Combiner(
                update,
                self.plan.streams,
                lambda event, error: self._fail(target, event, error),
                lambda *partial: self.fail_partial(target, *partial),
            )
        return found

    def _place(self, target: int, events: Columns) -> None:
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
        effects, dead = Effects(plan, number), len(self.dead)
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
        failed = len(self.dead) - dead
        self.processed[number] = self.processed.get(number, 0) + len(events) - failed
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

    def fail_partial(
        self, number: int, key: str, ts: int, partial: Any, count: int, error: BaseException
    ) -> None:
        """Make a dead letter of a partial: it stands for so many events."""
        update = self.plan.functions[number]
        assert isinstance(update, Update)
        assert update.algebra is not None
        try:
            value = decode_value(encode_value(update.algebra.write(partial)))
        except FAILURES:
            value = None
        stream = update.subscribes[0] if len(update.subscribes) == 1 else ""
        self._fail(number, Event(stream, ts, key, value), error)
        self.unmerged[number] = self.unmerged.get(number, 0) + count - 1

    def take(self, partials: bool = True) -> Placed:
        """The inboxes so far, those of aggregates too if asked for; the router starts new ones."""
        if partials:
            self.settle()
        placed, self.placed = self.placed, {}
        return placed


def _count(total: dict[int, int], targets: Targets, events: int) -> None:
    """Add so many events to what is counted of each of the targets."""
    for target in (*targets.placed, *targets.feedback, *targets.maps):
        total[target] = total.get(target, 0) + events
