"""The workflow, numbered: who gets what an emitter puts onto a stream.

Made once by the driver and sent to the tasks. Streams and functions are numbers inside the engine;
names come back where users see them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from millstream.codec import slate_codec
from millstream.engine.room import Share, share_of
from millstream.engine.sweep import Sweeps
from millstream.model.function import Function, Update
from millstream.model.slate import Table
from millstream.model.workflow import Workflow

SOURCE = -1
"""The emitter's number when an event comes from a source."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Where an event goes: maps to run at once, placed functions, feedback, and an output."""

    maps: tuple[int, ...]
    placed: tuple[int, ...]
    feedback: tuple[int, ...]
    output: bool


@dataclass(frozen=True)
class Plan:
    """A workflow made ready for tasks. `outputs` are the output streams that a sink reads."""

    workflow: Workflow
    shards: int
    outputs: frozenset[str]
    numbered: tuple[str, ...] = ()
    """Streams in the order of their numbers in stored events; others follow."""

    def __post_init__(self) -> None:
        for update in self.workflow.updates:
            if update.slate is not Table:
                slate_codec(update.slate)  # a slate that cannot be coded is found here, at once
        self.rooms  # noqa: B018 - it is told here and travels: a task would tell another mark

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        return self.workflow.functions

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
    def layers(self) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(self.number[function.name] for function in layer)
            for layer in self.workflow.layers
        )

    @cached_property
    def layer_of(self) -> dict[int, int]:
        """The layer of each placed function, from 0."""
        return {number: layer for layer, group in enumerate(self.layers) for number in group}

    @cached_property
    def delays(self) -> dict[str, int]:
        return {stream.name: stream.delay for stream in self.workflow.declared if stream.delay}

    @cached_property
    def emitters(self) -> tuple[int, ...]:
        """The functions that emit along a feedback edge, and so have an outbox."""
        return tuple(sorted({self.number[emitter] for emitter, _, _ in self.workflow.feedback}))

    @cached_property
    def waits(self) -> bool:
        """Whether events wait for the horizon."""
        return self.workflow.order == "event-time"

    @cached_property
    def rooms(self) -> dict[int, Share]:
        """What each shard may keep of the updates whose room is limited."""
        shares = {
            self.number[one.name]: share_of(one, self.shards) for one in self.workflow.updates
        }
        return {number: share for number, share in shares.items() if share is not None}

    @cached_property
    def sweeps(self) -> Sweeps:
        """Where the cells of this plan are in their rounds, in this process."""
        return Sweeps()

    @cached_property
    def aggregates(self) -> frozenset[int]:
        """The updates that are an algebra's."""
        return frozenset(
            number
            for number, function in enumerate(self.functions)
            if isinstance(function, Update) and function.algebra is not None
        )

    @cached_property
    def combined(self) -> frozenset[int]:
        """The aggregates whose events are merged where they are, before they are sent on.

        With a ttl the order of events shows, so in event-time order they wait for the horizon.
        """
        return frozenset(
            number
            for number in self.aggregates
            if not self.waits or self.workflow.update(self.functions[number].name).ttl is None
        )

    def needs_values(self, stream: int) -> bool:
        """Whether anyone looks at more of a source's events than their keys and times."""
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
        """Where an event on `stream` goes when `emitter` (a function's number or SOURCE) put it."""
        found = self._targets.get((emitter, stream))
        if found is None:
            found = self._targets[emitter, stream] = self._find_targets(emitter, stream)
        return found

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
