"""`AppDefinition`: the builder that users see as `millstream.App`. Building runs nothing.

The decorators return small handles that can be called like the plain function, so that user code
and its tests can use the function directly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ParamSpec, Protocol, TypeVar

from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra
from millstream.model.batch_update import arguments_of, check_batch
from millstream.model.duration import Duration, microseconds
from millstream.model.function import (
    Function,
    Map,
    Overload,
    Update,
    check_arguments,
    check_name,
    check_overload,
    check_room,
    check_subscribes,
    name_of,
    stream_names,
    with_migration,
)
from millstream.model.handles import FunctionHandle, UpdateHandle, UserFunction, unwrapped
from millstream.model.lookup import KnownLookup, lookups_of
from millstream.model.migration import Migration, as_migrations, check_version, former_names
from millstream.model.place import location
from millstream.model.size import Size, byte_count
from millstream.model.slate import check_slate_type, declared_value
from millstream.model.source import KeyOf, Source, TimeOf, declared
from millstream.model.stream import ChangeOutput, Stream, StreamOrder
from millstream.model.text_form import text_form
from millstream.model.workflow import CHANGES, SLATE_LIMIT, SLATE_WARN, OnError, Order, Workflow

P = ParamSpec("P")
R = TypeVar("R")


class Part(Protocol):
    """An argument of `App.add`: it declares streams and functions."""

    def add_to(self, app: AppDefinition, **options: Any) -> None: ...


class Placed(Protocol):
    """A part that has its place in an application, under a name."""

    def described(self) -> dict[str, Any]:
        """Describes the part as JSON, for the server and others outside the application."""
        ...


class AppDefinition:
    """An application: sources, maps, updates and outputs, in the order they are declared."""

    def __init__(
        self,
        name: str,
        *,
        order: Order = "arrival",
        on_error: OnError = "dead-letter",
        slate_warn: Size = SLATE_WARN,
        slate_limit: Size = SLATE_LIMIT,
    ) -> None:
        """`slate_warn` and `slate_limit` apply to a slate's JSON, or to each entry of a table."""
        check_name(name, "app")
        self.name = name
        self.order = order
        self.on_error = on_error
        self.slate_warn = byte_count(slate_warn, f"app {name!r}: slate_warn")
        self.slate_limit = byte_count(slate_limit, f"app {name!r}: slate_limit")
        self.settings: dict[str, Any] = {}
        self._sources: list[Source] = []
        self._functions: list[Function] = []
        self._declared: dict[str, Stream] = {}
        self._changes: list[ChangeOutput] = []
        self.parts: dict[str, Placed] = {}
        self._retired: tuple[str, ...] = ()

    def source(
        self,
        name: str,
        *,
        key: KeyOf = None,
        ts: TimeOf = None,
        unit: str | None = None,
        lateness: Duration = "0s",
        idle: Duration = "10s",
        time_format: str | None = None,
        zone: str | None = None,
        until: str | None = None,
        ahead: Duration | None = "1d",
        jump: Duration | None = None,
        pattern: str | None = None,
        starts: str | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
    ) -> None:
        """Declare a stream that comes from outside. `Source` explains the arguments; `TextForm`
        explains the last four, which say how text becomes records."""
        check_name(name, "source")
        where = f"source {name!r}"
        text = text_form(
            where, pattern=pattern, starts=starts, encoding=encoding, delimiter=delimiter
        )
        self._sources.append(
            declared(
                name,
                key=key,
                ts=ts,
                unit=unit,
                lateness=lateness,
                idle=idle,
                time_format=time_format,
                zone=zone,
                ahead=ahead,
                jump=jump,
                text=text,
                until=until,
            )
        )

    def stream(self, name: str, *, delay: Duration = "0s", after: str | None = None) -> None:
        """Declare that a stream's events are later than their input by `delay` (exact in event-time
        order, if it closes a cycle), and than all that it leads to on the stream `after`."""
        check_name(name, "stream")
        self._declare(name, delay=microseconds(delay, f"stream {name!r}: delay"), after=after)

    def output(self, name: str, *, value: type | None = None, order_by: str | None = None) -> None:
        """Declare a stream as output, for sinks and tails. `value` is a dataclass whose fields
        become columns. `order_by` is a numeric field that orders the events of a batch."""
        check_name(name, "output")
        declared = declared_value(value, f"output {name!r}")
        self._declare(name, output=True, order_by=order_by, **declared)

    def late_notices(self, name: str, *, streams: Iterable[str]) -> None:
        """Declare a stream with a `LateNotice` of each event that was late for one of `streams`, or
        for a source that leads to one. Only in event-time order are events late."""
        check_name(name, "stream")
        self._declare(name, late_of=tuple(streams))

    def changes(self, update: str, *, name: str | None = None) -> None:
        """Publish the changes of an update's slates: after each batch, every slate that it changed.

        The result is an output, `update.changes` by default, for sinks and tails, not for
        functions. See docs/changes.md for the guarantees.
        """
        called = name or f"{update}{CHANGES}"
        check_name(called, "changes")
        self._changes.append(ChangeOutput(called, update))

    def action(self, name: str, *, to: str | None = None) -> None:
        """Declare an output as an action: its events are carried out once they are committed.

        `to` is webhook:URL, line:FILE or stderr; a setting can give it instead. See
        docs/guarantees.md for the guarantees.
        """
        check_name(name, "action")
        self._declare(name, output=True, action=True)
        if to is not None:
            self.settings.setdefault("actions", {})[name] = to

    def map(
        self,
        *subscribes: str,
        publishes: str | Iterable[str] = (),
        name: str | None = None,
        lookups: Iterable[KnownLookup] = (),
    ) -> Callable[[Callable[P, R]], FunctionHandle[P, R]]:
        """Make the decorated function `(event)` a map over the named streams.

        The lookups that it reads are found in its code; `lookups` names those that are not.
        """
        check_subscribes(subscribes, "map")

        def decorate(function: Callable[P, R]) -> FunctionHandle[P, R]:
            function, called = unwrapped(function), name or name_of(function, "map")
            check_name(called, "map")
            check_arguments(function, ("event",), f"map {called!r}{location(function)}")
            used = lookups_of(function, lookups)
            for lookup in used:
                lookup.known()
            self._functions.append(Map(called, function, subscribes, stream_names(publishes), used))
            return FunctionHandle(self, called, function)

        return decorate

    def update(
        self,
        *subscribes: str,
        publishes: str | Iterable[str] = (),
        slate: type = dict,
        ttl: Duration | None = None,
        on_timer: UserFunction | None = None,
        name: str | None = None,
        limit: int | None = None,
        overload: Overload = "throttle",
        overflow: str | None = None,
        immediate: bool = False,
        keep: int | None = None,
        memory: Size | None = None,
        priority: UserFunction | None = None,
        version: int = 1,
        migrations: Mapping[tuple[int, int], UserFunction] | None = None,
        formerly: str | Iterable[str] = (),
        batch: bool = False,
        across_keys: bool = False,
        values: type | None = None,
    ) -> Callable[[Callable[P, R]], UpdateHandle[P, R]]:
        """Make the decorated function `(event, slate)` an update over the named streams.

        Its name is the name of its slates for ever; `name=` overrides the function's name. `limit`
        is the most events that each of its shards takes in a batch. Events past it wait for the
        next batch (`overload="throttle"`), are dropped ("drop"), or go to the stream `overflow`
        ("divert"). An `immediate` update processes each event in the batch that brings it: in
        arrival order others make the events of a hot key wait. `keep` is the most slates that it
        keeps, and `memory` the most bytes that they may take. Past that the least important are
        removed: by `priority`, a function `(key, slate)` that returns a number, or else those
        updated longest ago. `version` is that of its slates, to be raised when their form changes.
        Slates of another version go through `migrations`, or functions registered with
        `@NAME.migrate(1, 2)`, when they are read. `formerly` are former names: slates stored under
        one of them become the update's own. With `batch` the function is `(events, slate)`: it gets
        all events of a key in a batch at once, in order. Calling it with many events must give the
        same slate as calling it once for each. With `across_keys` too it is `(events, slates)`: it
        gets Arrow tables of many keys, and returns the new slates. `values` is a dataclass: the
        columns of the events' values.
        """
        check_subscribes(subscribes, "update")

        def decorate(function: Callable[P, R]) -> UpdateHandle[P, R]:
            function, called = unwrapped(function), name or name_of(function, "update")
            check_name(called, "update")
            where = f"update {called!r}{location(function)}"
            check_arguments(function, arguments_of(batch, across_keys), where)
            check_slate_type(slate, where)
            check_overload(limit, overload, overflow, immediate, where)
            check_version(version, where)
            former_names(slate)
            room = None if memory is None else byte_count(memory, f"{where}: memory")
            check_room(keep, room, priority, where)
            update = Update(
                called,
                function,
                subscribes,
                stream_names(publishes),
                slate,
                None if ttl is None else microseconds(ttl, f"{where}: ttl"),
                limit=limit,
                overload=overload,
                overflow=overflow,
                immediate=immediate,
                keep=keep,
                memory=room,
                priority=None if priority is None else unwrapped(priority),
                version=version,
                formerly=stream_names(formerly),
                batch=batch,
                across_keys=across_keys,
                values=values,
            )
            check_batch(update)
            self._functions.append(update)
            for migration in as_migrations(migrations or {}):
                self.add_migration(called, migration)
            if on_timer is not None:
                self.set_timer_function(called, on_timer)
            return UpdateHandle(self, called, function)

        return decorate

    def retire(self, *names: str) -> None:
        """Declare that updates were removed on purpose. Their slates stay readable. Without this, a
        run refuses a store with slates that no update owns."""
        for name in names:
            check_name(name, "update")
        self._retired += names

    def aggregate(
        self, *subscribes: str, algebra: Algebra, name: str, ttl: Duration | None = None
    ) -> None:
        """Declare an update whose slates are the merge of their events under `algebra`.

        It has no function of its own and emits nothing. Its events are merged where they are read,
        before they are sent to their shard: a hot key costs no more than many keys do. So it needs
        no limit.
        """
        check_subscribes(subscribes, "aggregate")
        check_name(name, "aggregate")
        if not isinstance(algebra, Algebra):
            called = getattr(algebra, "__name__", None)
            hint = f": call it, as in algebra={called}()" if callable(algebra) and called else ""
            raise DefinitionError(
                f"aggregate {name!r}: algebra must be an Algebra, such as "
                f"millstream.algebra.count(); got {type(algebra).__name__} {called or algebra!r}"
                f"{hint}"
            )
        lives = None if ttl is None else microseconds(ttl, f"aggregate {name!r}: ttl")
        self._functions.append(
            Update(name, algebra.lift, subscribes, slate=dict, ttl=lives, algebra=algebra)
        )

    def add(self, part: Part, **options: Any) -> None:
        """Add a part that makes functions of its own, such as an element; `options` are its own."""
        if not hasattr(part, "add_to") or isinstance(part, type):
            called = f": add {part.__name__}()" if isinstance(part, type) else ""
            raise DefinitionError(
                f"app {self.name!r}: add() takes a part, such as an Element; got {part!r}{called}"
            )
        part.add_to(self, **options)

    def place(self, name: str, part: Placed) -> None:
        """Register a part under its name; DefinitionError if the name is taken."""
        if name in self.parts:
            raise DefinitionError(
                f"{name!r}: each part of the application must have a name of its own, and there "
                "is one of this name already; give the second another with name="
            )
        self.parts[name] = part

    def way(self, start: str, goal: str, part: str) -> int:
        """Returns `StreamOrder.way` through the functions of a part that are declared so far."""
        functions = [each for each in self._functions if each.name.startswith(f"{part}.")]
        return StreamOrder(functions, self._declared.values()).way(start, goal)

    def gives(self, stream: str) -> bool:
        """True if a source or function declared so far brings the stream."""
        return any(stream == source.name for source in self._sources) or any(
            stream in function.publishes for function in self._functions
        )

    def workflow(self) -> Workflow:
        """Returns the checked graph. Raises DefinitionError; warns of streams that nobody reads."""
        built = self.checked()
        for warning in built.warnings:
            warnings.warn(warning, stacklevel=2)
        return built

    def checked(self) -> Workflow:
        """Returns the checked graph without issuing its warnings."""
        return Workflow(
            self.name,
            tuple(self._sources),
            tuple(self._functions),
            tuple(self._declared.values()),
            self.order,
            self.on_error,
            self.slate_warn,
            self.slate_limit,
            {name: part.described() for name, part in self.parts.items()},
            tuple(self._changes),
            self._retired,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AppDefinition) and self.checked() == other.checked()

    __hash__ = None  # type: ignore[assignment]  # an App is a builder, and changes

    def _declare(self, name: str, **changes: Any) -> None:
        self._declared[name] = replace(self._declared.get(name, Stream(name)), **changes)

    def add_migration(self, name: str, migration: Migration) -> None:
        """Add a migration to an update; `@NAME.migrate` calls it."""
        for index, known in enumerate(self._functions):
            if known.name == name and isinstance(known, Update):
                self._functions[index] = with_migration(known, migration)

    def set_timer_function(self, name: str, function: UserFunction) -> None:
        """Set the function that handles an update's timers; `@NAME.on_timer` calls it."""
        function = unwrapped(function)
        for index, known in enumerate(self._functions):
            if known.name == name and isinstance(known, Update):
                where = f"{known.where}: its timer function{location(function)}"
                check_arguments(function, ("timer", "slate"), where)
                if known.on_timer is not None:
                    raise DefinitionError(
                        f"{known.where} has a timer function already{location(known.on_timer)}"
                    )
                update = replace(known, on_timer=function)
                check_batch(update)
                self._functions[index] = update
