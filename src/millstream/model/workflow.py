"""The workflow: a checked, frozen graph of streams and functions.

Building a `Workflow` checks the whole graph (Muppet, section 3: "a directed graph, allowing
cycles") and computes what the runtime needs to know about it:

- *feedback edges*: going through the edges in the order of declaration, an edge that would close a
  cycle is feedback; the others form an acyclic graph;
- *placed* functions: updates, and maps that emit along a feedback edge. They have a shard for each
  key; any other map is fused behind the source or function that emitted its input;
- *layers*: each placed function's longest path from the sources over the acyclic edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from millstream.errors import DefinitionError
from millstream.model.function import RESERVED_STREAMS, Function, Map, Update
from millstream.model.function import check_effects as check_effects
from millstream.model.function import check_former_names as check_former_names
from millstream.model.lookup import KnownLookup, check_lookup_names, refuse_lookups
from millstream.model.size import MIB
from millstream.model.source import Source
from millstream.model.stream import ChangeOutput, Stream, StreamOrder
from millstream.nearest import nearest

Order = Literal["arrival", "event-time"]
OnError = Literal["dead-letter", "fail"]
SLATE_WARN, SLATE_LIMIT = MIB, 16 * MIB
FAILED = ".failed"
"""Suffix of an action's name for the stream of its dead letters, which is Millstream's own."""
CHANGES = ".changes"
"""Suffix of an update's name for the output of its slates' changes; `name=` overrides it."""
Edge = tuple[str, str, str]
"""(emitting function, stream, subscribing function)."""


@dataclass(frozen=True)
class Workflow:
    """An application's graph. Equal workflows mean the same."""

    name: str
    sources: tuple[Source, ...]
    functions: tuple[Function, ...]
    declared: tuple[Stream, ...] = ()
    order: Order = "arrival"
    on_error: OnError = "dead-letter"
    slate_warn: int = SLATE_WARN
    """The bytes of a slate, or of a table's entry, from which a warning is given."""
    slate_limit: int = SLATE_LIMIT
    """The most bytes of it: an event that would exceed them becomes a dead letter."""
    parts: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The descriptions of the registered parts, by name; the engine does not use them."""
    changes: tuple[ChangeOutput, ...] = ()
    retired: tuple[str, ...] = field(default=(), compare=False)
    """Updates that were removed on purpose: their slates may stay in the store."""
    warnings: tuple[str, ...] = field(init=False, compare=False, default=())
    feedback: frozenset[Edge] = field(init=False, compare=False, default=frozenset())
    layers: tuple[tuple[Function, ...], ...] = field(init=False, compare=False, default=())
    delays: Mapping[str, int] = field(init=False, compare=False, default_factory=dict)
    """The least time by which events are later than their input, of streams that have one: their
    delay, or the time that lets them come after another stream."""

    def __post_init__(self) -> None:
        _check_names(self)
        _check_changes(self)
        check_former_names(self.name, self.functions, self.retired)
        _check_streams(self)
        _check_actions(self)
        _check_lookups(self)
        for function in self.functions:
            check_effects(function)
        _check_overflows(self)
        feedback = _feedback_edges(self)
        for name, value in (
            ("warnings", tuple(_warnings(self))),
            ("feedback", feedback),
            ("layers", _layers(self, feedback)),
            ("delays", StreamOrder(self.functions, self.declared).delays()),
        ):
            object.__setattr__(self, name, value)

    @property
    def streams(self) -> tuple[str, ...]:
        """Every stream's name, in order of first mention; the index is the stream's number."""
        names: dict[str, None] = {}
        for source in self.sources:
            names[source.name] = None
        for function in self.functions:
            for stream in (*function.subscribes, *function.emits):
                names[stream] = None
        for declared in self.declared:
            names[declared.name] = None
        return tuple(names)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The streams that are outputs, then the outputs of changes, which are not streams."""
        streams = (stream.name for stream in self.declared if stream.output)
        return (*streams, *(changes.name for changes in self.changes))

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(stream.name for stream in self.declared if stream.action)

    @property
    def updates(self) -> tuple[Update, ...]:
        return tuple(f for f in self.functions if isinstance(f, Update))

    @property
    def lookups(self) -> tuple[KnownLookup, ...]:
        """The lookups that its maps read, each once."""
        used = {
            id(lookup): lookup
            for function in self.functions
            if isinstance(function, Map)
            for lookup in function.lookups
        }
        return tuple(used.values())

    @property
    def slate_kinds(self) -> dict[str, str]:
        """Each update's kind of slate, as a store records it."""
        return {update.name: update.kind for update in self.updates}

    def function(self, name: str) -> Function:
        for function in self.functions:
            if function.name == name:
                return function
        raise DefinitionError(_unknown("function", name, [f.name for f in self.functions]))

    def update(self, name: str) -> Update:
        for update in self.updates:
            if update.name == name:
                return update
        raise DefinitionError(_unknown("update", name, [u.name for u in self.updates]))

    def subscribers(self, stream: str) -> tuple[Function, ...]:
        return tuple(f for f in self.functions if stream in f.subscribes)

    def delay(self, stream: str) -> int:
        """The declared delay of a stream."""
        return next((s.delay for s in self.declared if s.name == stream), 0)

    @property
    def step(self) -> int | None:
        """The longest step of the horizon with which delayed feedback is exact; None: any."""
        delays = [self.delay(stream) for _, stream, _ in self.feedback]
        return min((delay for delay in delays if delay > 0), default=None)


def _unknown(kind: str, name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    hint = "" if near is None else f"; did you mean {near!r}?"
    return f"unknown {kind} {name!r}; there are: {', '.join(known) or 'none'}{hint}"


def _check_names(workflow: Workflow) -> None:
    if workflow.order not in ("arrival", "event-time"):
        raise DefinitionError(
            f"app {workflow.name!r}: order must be 'arrival' or 'event-time'; "
            f"got {workflow.order!r}"
        )
    if workflow.on_error not in ("dead-letter", "fail"):
        raise DefinitionError(
            f"app {workflow.name!r}: on_error must be 'dead-letter' or 'fail'; "
            f"got {workflow.on_error!r}"
        )
    for kind, names in (
        ("source", [s.name for s in workflow.sources]),
        ("function", [f.name for f in workflow.functions]),
        ("stream", [s.name for s in workflow.declared]),
    ):
        for name in names:
            if names.count(name) > 1:
                holders = " and ".join(f.where for f in workflow.functions if f.name == name)
                advice = "give one of them name=" if kind == "function" else "declare it once"
                raise DefinitionError(
                    f"app {workflow.name!r}: {kind} name {name!r} is used twice"
                    f"{': ' + holders if kind == 'function' else ''}; {advice}"
                )
    if not workflow.sources:
        raise DefinitionError(
            f"app {workflow.name!r} has no source; declare one with app.source(name)"
        )


def _offered(workflow: Workflow, known: set[str]) -> list[str]:
    """Returns the streams that a wrong name may have meant. Streams between the functions of one
    part, which are named after it (`top.items`, from `top.keys` to `top.sort`), are left out."""
    inner = {
        stream
        for function in workflow.functions
        for stream in function.emits
        if "." in function.name and stream.startswith(function.name.rpartition(".")[0] + ".")
    }
    return sorted(known - inner | {s.name for s in workflow.declared if s.name in known})


def _check_streams(workflow: Workflow) -> None:
    known = {source.name for source in workflow.sources}
    known.update(stream.name for stream in workflow.declared if stream.late_of)
    for function in workflow.functions:
        known.update(function.emits)
        for stream in function.emits:
            if stream in RESERVED_STREAMS:
                raise DefinitionError(
                    f"{function.where} publishes {stream!r}, a name that Millstream keeps for "
                    "itself; choose another"
                )
    for source in workflow.sources:
        if source.name in RESERVED_STREAMS:
            raise DefinitionError(f"source {source.name!r}: Millstream keeps that name for itself")
    for function in workflow.functions:
        if not function.subscribes:
            raise DefinitionError(f"{function.where} must subscribe to at least one stream")
        for stream in function.subscribes:
            if stream in RESERVED_STREAMS:
                raise DefinitionError(
                    f"{function.where} subscribes to {stream!r}: that stream is Millstream's own "
                    "and is read by a sink, not by a function: give it one with "
                    f"--sink {stream}=FORMAT:DIR"
                )
            if stream not in known:
                unknown = _unknown("stream", stream, _offered(workflow, known))
                raise DefinitionError(f"{function.where} subscribes to an {unknown}")
    for declared in workflow.declared:
        if declared.name not in known:
            kind = "output" if declared.output else "stream"
            raise DefinitionError(
                f"{kind} {declared.name!r}: no function publishes it: "
                f"{_unknown('stream', declared.name, _offered(workflow, known))}"
            )


def _check_changes(workflow: Workflow) -> None:
    taken = {*RESERVED_STREAMS, *(source.name for source in workflow.sources)}
    taken |= {stream for function in workflow.functions for stream in function.emits}
    updates = [update.name for update in workflow.updates]
    published: list[str] = []
    for changes in workflow.changes:
        where = f"changes of {changes.update!r}"
        if changes.update not in updates:
            raise DefinitionError(f"{where}: {_unknown('update', changes.update, updates)}")
        if changes.update in published:
            raise DefinitionError(f"{where} are published twice; declare them once")
        if changes.name in taken:
            raise DefinitionError(
                f"{where}: the output must have a name of its own; {changes.name!r} is used "
                "already; give it another with name="
            )
        for reader in workflow.subscribers(changes.name):
            raise DefinitionError(
                f"{reader.where} subscribes to {changes.name!r}, the {where}: they are for sinks "
                f"and tails only, since they depend on the batches; let {changes.update!r} emit "
                "what other functions are to know"
            )
        published.append(changes.update)
        taken.add(changes.name)


def _check_lookups(workflow: Workflow) -> None:
    for update in workflow.updates:
        for handler in (update.function, update.on_timer):
            if handler is not None:
                refuse_lookups(handler, update.where)
    check_lookup_names(workflow.lookups)


def _check_actions(workflow: Workflow) -> None:
    for name in workflow.actions:
        if any(source.name == name for source in workflow.sources):
            raise DefinitionError(
                f"action {name!r} must not be a source: a function must request each of its "
                "events; let a function publish another stream for it"
            )
        if f"{name}{FAILED}" in workflow.streams:
            raise DefinitionError(
                f"stream {name + FAILED!r}: Millstream keeps that name for the dead letters of "
                f"action {name!r}; choose another"
            )


def _warnings(workflow: Workflow) -> Iterable[str]:
    read = {stream for function in workflow.functions for stream in function.subscribes}
    read.update(workflow.outputs)
    for function in workflow.functions:
        for stream in function.emits:
            if stream not in read:
                near = nearest(stream, sorted(read))
                hint = "" if near is None else f" (did you mean {near!r}?)"
                yield (
                    f"stream {stream!r}, published by {function.where}, is read by nobody{hint}; "
                    f"declare it with app.output({stream!r}) or drop it"
                )
    for source in workflow.sources:
        if source.name not in read:
            yield f"stream {source.name!r}, a source, is read by nobody"


def _edges(workflow: Workflow) -> list[Edge]:
    return [
        (emitter.name, stream, reader.name)
        for emitter in workflow.functions
        for stream in emitter.emits
        for reader in workflow.subscribers(stream)
    ]


def _check_overflows(workflow: Workflow) -> None:
    """DefinitionError if an update's overflow can come back to it: it would loop without end."""
    readers: dict[str, set[str]] = {}
    for _, stream, reader in _edges(workflow):
        readers.setdefault(stream, set()).add(reader)
    for update in workflow.updates:
        if update.overflow is None:
            continue
        seen: set[str] = set()
        left = set(readers.get(update.overflow, ()))
        while left:
            name = left.pop()
            seen.add(name)
            for stream in workflow.function(name).emits:
                left |= readers.get(stream, set()) - seen
        if update.name in seen:
            raise DefinitionError(
                f"{update.where}: its overflow {update.overflow!r} leads back to it, so that what "
                "it could not take would come again; let it end in other functions or an output"
            )


def _feedback_edges(workflow: Workflow) -> frozenset[Edge]:
    forward: dict[str, set[str]] = {function.name: set() for function in workflow.functions}

    def reaches(start: str, goal: str) -> bool:
        seen, stack = {start}, [start]
        while stack:
            name = stack.pop()
            if name == goal:
                return True
            fresh = forward[name] - seen
            seen |= fresh
            stack.extend(fresh)
        return False

    feedback = set()
    for edge in _edges(workflow):
        emitter, _, reader = edge
        if reaches(reader, emitter):
            feedback.add(edge)
        else:
            forward[emitter].add(reader)
    return frozenset(feedback)


def _layers(workflow: Workflow, feedback: frozenset[Edge]) -> tuple[tuple[Function, ...], ...]:
    emitters = {emitter for emitter, _, _ in feedback}
    into: dict[str, set[str]] = {function.name: set() for function in workflow.functions}
    for edge in _edges(workflow):
        if edge not in feedback:
            into[edge[2]].add(edge[0])
    depth: dict[str, int] = {}

    def placed(function: Function) -> bool:
        return isinstance(function, Update) or function.name in emitters

    by_name = {function.name: function for function in workflow.functions}

    def depth_of(name: str) -> int:
        """Counts the placed functions on the longest path that ends here, this one included."""
        if name not in depth:
            longest = max((depth_of(before) for before in into[name]), default=0)
            depth[name] = longest + placed(by_name[name])
        return depth[name]

    layers: dict[int, list[Function]] = {}
    for function in workflow.functions:
        number = depth_of(function.name)
        if placed(function):
            layers.setdefault(number, []).append(function)
    return tuple(tuple(layers[number]) for number in sorted(layers))
