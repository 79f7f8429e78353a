"""Routes emitted events.

An event put onto a stream goes at once through the maps that subscribe to it (a map never costs a
shuffle), into the inbox of every placed function that subscribes, and to the outputs. Events along
a feedback edge are handed back to the emitter, whose shard keeps them for the next batch.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from time import perf_counter_ns
from types import GeneratorType
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from millstream.codec import decode_value, decode_values, encode_value, shards_of
from millstream.columnar.arrow_arrays import Integers
from millstream.engine.columns import Columns
from millstream.engine.combiner import Combiner
from millstream.engine.effects import Effects
from millstream.engine.key_shards import key_shards
from millstream.engine.plan import SOURCE, Plan, Targets
from millstream.errors import FunctionError, LookupFailed
from millstream.model.event import Event
from millstream.model.function import Update
from millstream.model.place import FAILURES, described
from millstream.model.rules import DeadLetter
from millstream.model.rules import effects as all_effects
from millstream.stores.function_counts import FunctionCounts

Placed = dict[tuple[int, int], Columns]
"""Deliveries by (function number, shard)."""


@dataclass
class FeedbackOutbox:
    """Events along feedback edges, by the function that will get them."""

    deliveries: dict[int, Columns] = field(default_factory=dict)

    def add(self, target: int, columns: Columns) -> None:
        self.deliveries.setdefault(target, Columns()).extend(columns)

    def __len__(self) -> int:
        return sum(map(len, self.deliveries.values()))


class Router:
    """Collects what a task emits: `placed` inboxes, `outputs`, `dead` letters, and counts."""

    def __init__(self, plan: Plan, batch: int) -> None:
        self.plan = plan
        self.batch = batch
        self.placed: Placed = {}
        self.outputs: dict[int, Columns] = {}
        self.dead: list[DeadLetter] = []
        self.highest: int | None = None
        self.counts: defaultdict[int, FunctionCounts] = defaultdict(FunctionCounts)
        """The counts of each function, by its number."""
        self.emitted: dict[int, int] = {}
        """The number of events that were put onto each stream."""
        self.spent: dict[int, int] = {}
        """Nanoseconds that each function has taken."""
        self.dropped: dict[int, Columns] = {}
        """Events that an update past its limit has dropped."""
        self.unmerged = 0
        """The number of events, beyond one each, that an aggregate's dead letters stand for."""
        self._combiners: dict[int, Combiner] = {}

    def route(
        self,
        emitter: int,
        events: Columns,
        outbox: FeedbackOutbox | None = None,
        decoded: list[Any] | None = None,
    ) -> None:
        """Routes the events that `emitter` put onto its streams.

        `decoded`: the decoded values of events of one stream, if available and not shared.
        """
        if not events:
            return
        only = events.only_stream
        if only is not None:
            self._route_stream(emitter, only, events, outbox, decoded)
            return
        numbers = events.streams if events.few else events.stream_array
        for stream, part in enumerate(events.split(numbers, len(self.plan.streams))):
            if part is not None:
                self._route_stream(emitter, stream, part, outbox, None)

    def _route_stream(
        self,
        emitter: int,
        stream: int,
        events: Columns,
        outbox: FeedbackOutbox | None,
        decoded: list[Any] | None,
    ) -> None:
        highest = events.greatest
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
            decoded = None  # a map may change its values: the next map gets fresh ones

    def owe(self, stream: int, records: int, *, late: bool) -> None:
        """Counts records of a source that do not reach its subscribers.

        By subscriber, not by source: they do not count for a function that is added later.
        """
        targets = self.plan.targets(SOURCE, stream)
        self._owe(targets, records)
        for target in targets.subscribers:
            counts = self.counts[target]
            if late:
                counts.late += records
            else:
                counts.refused += records

    def _owe(self, targets: Targets, events: int) -> None:
        for target in targets.subscribers:
            self.counts[target].taken += events

    def deliver_again(self, target: int, events: Columns) -> None:
        """Delivers events to one function that had them before and did not process them."""
        self.counts[target].retried += len(events)
        self.deliver(target, events)

    def count_again(self, stream: int) -> None:
        """Counts a record of a source that was just taken in as retried, not as new deliveries."""
        targets = self.plan.targets(SOURCE, stream)
        self._owe(targets, -1)
        for target in targets.subscribers:
            self.counts[target].retried += 1

    def deliver(self, target: int, events: Columns) -> None:
        """Delivers events to one function: puts them into its inbox, or runs it if it is a map."""
        if target in self.plan.layer_of:
            self.place(target, events)
        else:
            self.run_map(target, events)

    def place(self, target: int, events: Columns, decoded: list[Any] | None = None) -> None:
        """Puts events into the inboxes of a placed function, by shard; combines an aggregate's."""
        if target in self.plan.combined:
            began = perf_counter_ns()
            self._combiner(target).add(events, decoded)
            self.took(target, perf_counter_ns() - began)
            return
        self._place(target, events)

    def place_keys(self, stream: int, keys: pa.Array, times: Integers, highest: int) -> None:
        """Takes a source's events of which only key and time are needed (`plan.needs_values`)."""
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
        """Combines events of an aggregate into partials; the events count as processed."""
        began, combiner = perf_counter_ns(), self._combiner(target)
        combiner.add(events, None)
        partials = combiner.take()
        self.counts[target].processed += combiner.take_processed()
        self.took(target, perf_counter_ns() - began)
        return partials

    def settle(self) -> None:
        """Puts the partials of aggregates into their inboxes."""
        for target in self._combiners:
            partials = self.combined(target, Columns())
            if partials:
                self._place(target, partials)

    @property
    def full(self) -> bool:
        """True if an aggregate has so many partials that they should be sent on."""
        return any(combiner.full for combiner in self._combiners.values())

    def _combiner(self, target: int) -> Combiner:
        combiner = self._combiners.get(target)
        if combiner is None:
            update = self.plan.functions[target]
            assert isinstance(update, Update)
            combiner = self._combiners[target] = Combiner(
                update,
                self.plan.streams,
                lambda event, error: self._fail(target, event, error),
                lambda *partial: self.fail_partial(target, *partial),
            )
        return combiner

    def _place(self, target: int, events: Columns) -> None:
        shards = self.plan.shards
        if shards == 1:
            self.placed.setdefault((target, 0), Columns()).extend(events)
            return
        for shard, part in enumerate(events.split(self._shards_of(target, events), shards)):
            if part is not None:
                self.placed.setdefault((target, shard), Columns()).extend(part)

    def _shards_of(self, target: int, events: Columns) -> list[int] | NDArray[Any]:
        name, shards = self.plan.stored[target], self.plan.shards
        if events.few:
            return shards_of(name, events.keys, shards)
        return key_shards(name, events.key_array, shards)

    def run_map(
        self,
        number: int,
        events: Columns,
        values: list[Any] | None = None,
        outbox: FeedbackOutbox | None = None,
    ) -> None:
        """Runs a map over events and routes what it emits. `values`: decoded, if available."""
        plan, began = self.plan, perf_counter_ns()
        function = plan.functions[number].function
        effects, dead = Effects(plan, number), len(self.dead)
        emit, times = effects.emit, effects.ts
        if values is None:
            values = decode_values(events.values)
        for event, encoded in zip(events.made(values, plan.streams), events.values, strict=True):
            mark = len(times)
            try:
                result = function(event)
                if result is None:
                    continue
                for effect in result if type(result) is GeneratorType else all_effects(result):
                    emit(effect, event, encoded)
            except FAILURES as error:
                effects.undo(mark)
                self._fail(number, event._replace(value=decode_value(encoded)), error)
        failed = len(self.dead) - dead
        self.counts[number].processed += len(events) - failed
        self.took(number, perf_counter_ns() - began)
        self.route(number, effects.emitted, outbox)

    def took(self, number: int, nanoseconds: int) -> None:
        """Adds to the time that a function has taken."""
        self.spent[number] = self.spent.get(number, 0) + nanoseconds

    def _fail(self, number: int, event: Event, error: BaseException) -> None:
        function = self.plan.functions[number]
        if self.plan.workflow.on_error == "fail" or isinstance(error, LookupFailed):
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
        """Makes a dead letter of a partial, which stands for `count` events."""
        update = self.plan.functions[number]
        assert isinstance(update, Update)
        assert update.algebra is not None
        try:
            value = decode_value(encode_value(update.algebra.write(partial)))
        except FAILURES:
            value = None
        self._fail(number, Event("", ts, key, value), error)  # a partial belongs to no stream
        self.counts[number].failed += count - 1
        self.unmerged += count - 1

    def take(self, partials: bool = True) -> Placed:
        """Takes out the inboxes so far; `partials`: including those of aggregates."""
        if partials:
            self.settle()
        placed, self.placed = self.placed, {}
        return placed
