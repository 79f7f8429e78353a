"""The plan: numbers a workflow's functions and streams, and knows who gets an emitted event.

The driver makes it once and sends it to the tasks. Inside the engine, streams and functions are
numbers; users see names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from millstream.codec import slate_codec
from millstream.engine.cells.room import Share, share_of
from millstream.engine.cells.sweep import Sweeps
from millstream.model.batch_update import EVENT_COLUMNS, table_columns
from millstream.model.function import Function, Update
from millstream.model.late_notice import late_notices
from millstream.model.slate import Table
from millstream.model.workflow import Workflow

SOURCE = -1
"""The emitter's number when an event comes from a source."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of an event: maps to run at once, placed functions, feedback, and an output."""

    maps: tuple[int, ...]
    placed: tuple[int, ...]
    feedback: tuple[int, ...]
    output: bool

    @property
    def subscribers(self) -> tuple[int, ...]:
        """All functions that get the event."""
        return *self.placed, *self.feedback, *self.maps


@dataclass(frozen=True)
class Plan:
    """A workflow prepared for tasks. `outputs` are the output streams that a sink reads."""

    workflow: Workflow
    shards: int
    outputs: frozenset[str]
    numbered: tuple[str, ...] = ()
    """Streams in the order of their numbers in stored events; others follow."""
    stored_as: Mapping[str, str] = field(default_factory=dict)
    """For each renamed function: the name under which its rows are stored."""

    def __post_init__(self) -> None:
        for update in self.workflow.updates:
            if update.slate is not Table:
                slate_codec(update.slate)  # a slate that cannot be encoded raises here, at once
        self.rooms  # noqa: B018 - computed here and sent along: a task would compute other marks

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        return self.workflow.functions

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """The name under which each function's rows are stored, by the function's number."""
        names = [function.name for function in self.functions]
        return tuple(self.stored_as.get(name, name) for name in names)

    @cached_property
    def number_stored(self) -> dict[str, int]:
        """A function's number by the name under which its rows are stored."""
        return {name: number for number, name in enumerate(self.stored)}

    @cached_property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.numbered, *self.workflow.streams]))

    @cached_property
    def number(self) -> dict[str, int]:
        """A function's number by its name."""
        return {function.name: number for number, function in enumerate(self.functions)}

    @cached_property
    def stream_number(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.streams)}

    @cached_property
    def late_notices(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """The streams of notices of each source (`model.late_notice`)."""
        sources = (source.name for source in self.workflow.sources)
        return {name: late_notices(self.workflow, name) for name in sources}

    @cached_property
    def layers(self) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(self.number[function.name] for function in layer)
            for layer in self.workflow.layers
        )

    @cached_property
    def layer_of(self) -> dict[int, int]:
        """The layer of each placed function, from 0."""
        return {number: layer for layer, group in enumerate(self.layers) for number in group}

    @property
    def delays(self) -> Mapping[str, int]:
        return self.workflow.delays

    @cached_property
    def emitters(self) -> tuple[int, ...]:
        """The functions that emit along a feedback edge, and so have an outbox."""
        return tuple(sorted({self.number[emitter] for emitter, _, _ in self.workflow.feedback}))

    @cached_property
    def change_outputs(self) -> dict[str, str]:
        """The output of the changes of an update's slates, for each update that has one."""
        return {changes.update: changes.name for changes in self.workflow.changes}

    @cached_property
    def waits(self) -> bool:
        """True if events wait for the horizon."""
        return self.workflow.order == "event-time"

    @cached_property
    def rooms(self) -> dict[int, Share]:
        """Each shard's share of the room, for updates whose room is limited."""
        shares = {
            self.number[update.name]: share_of(update, self.shards)
            for update in self.workflow.updates
        }
        return {number: share for number, share in shares.items() if share is not None}

    @cached_property
    def sweeps(self) -> Sweeps:
        """The sweep rounds of this plan's cells, in this process."""
        return Sweeps()

    @cached_property
    def aggregates(self) -> frozenset[int]:
        """The updates that are aggregates."""
        return frozenset(
            number
            for number, function in enumerate(self.functions)
            if isinstance(function, Update) and function.algebra is not None
        )

    @cached_property
    def combined(self) -> frozenset[int]:
        """The aggregates whose events are merged where they are read, before they are sent on.

        With a ttl the order of events matters, so in event-time order they wait for the horizon.
        """
        return frozenset(
            number
            for number in self.aggregates
            if not self.waits or self.workflow.update(self.functions[number].name).ttl is None
        )

    def decodes(self, stream: int) -> bool:
        """True if the values of a source's events are decoded where the events are read: by a map,
        or for an aggregate that needs them."""
        targets = self.targets(SOURCE, stream)
        for number in targets.placed:
            function = self.functions[number]
            assert isinstance(function, Update)
            algebra = function.algebra if number in self.combined else None
            if algebra is not None and (algebra.gather is None or algebra.needs_values):
                return True
        return bool(targets.maps)

    def reads_numbers(self, stream: int) -> bool:
        """True if all who read a source's events only look at columns of numbers in their values,
        as long as nothing fails."""
        targets = self.targets(SOURCE, stream)
        if targets.maps or targets.feedback or targets.output or not targets.placed:
            return False
        return all(map(self._has_numbers, targets.placed))

    def remakes_values(self, stream: int) -> bool:
        """True if all who read a source's events are fed them in this batch, and from no other
        stream: then their values are made when they are fed, of columns of numbers. (Events that
        wait are stored as bytes, and bytes take longer to make.)"""
        targets = self.targets(SOURCE, stream)
        if targets.maps or targets.feedback or targets.output or self.waits:
            return False
        return all(
            isinstance(function := self.functions[number], Update)
            and function.algebra is None
            and function.values is None
            and len(function.subscribes) == 1
            for number in targets.placed
        )

    def _has_numbers(self, number: int) -> bool:
        function = self.functions[number]
        assert isinstance(function, Update)
        algebra = function.algebra
        if algebra is not None and number in self.combined:
            return algebra.number is not None or not algebra.needs_values
        if function.values is None:
            return False
        columns = table_columns(function.values, EVENT_COLUMNS, "values")
        return all(column.kind in (int, float) for column in columns)

    def needs_values(self, stream: int) -> bool:
        """True if any reader needs more of a source's events than their keys and times."""
        targets = self.targets(SOURCE, stream)
        if targets.maps or targets.feedback or targets.output or not targets.placed:
            return True
        for number in targets.placed:
            function = self.functions[number]
            assert isinstance(function, Update)
            algebra = function.algebra
            if number not in self.combined or algebra is None or algebra.gather is None:
                return True
            if algebra.needs_values:
                return True
        return False

    @cached_property
    def _targets(self) -> dict[tuple[int, int], Targets]:
        return {}

    def targets(self, emitter: int, stream: int) -> Targets:
        """Returns the targets of an event that `emitter` put onto `stream`.

        `emitter` is a function's number or SOURCE.
        """
        targets = self._targets.get((emitter, stream))
        if targets is None:
            targets = self._targets[emitter, stream] = self._find_targets(emitter, stream)
        return targets

    def _find_targets(self, emitter: int, stream: int) -> Targets:
        name = self.streams[stream]
        maps, placed, feedback = [], [], []
        for reader in self.workflow.subscribers(name):
            number = self.number[reader.name]
            edge = (self.functions[emitter].name, name, reader.name) if emitter != SOURCE else None
            if edge in self.workflow.feedback:
                feedback.append(number)
            elif number in self.layer_of:
                placed.append(number)
            else:
                maps.append(number)
        return Targets(tuple(maps), tuple(placed), tuple(feedback), name in self.outputs)
