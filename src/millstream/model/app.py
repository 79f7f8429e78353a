"""`App`: the builder that users write to. Building runs nothing.

The decorators return small handles that can still be called like the plain function, so that
user code and its tests can use it directly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra
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
)
from millstream.model.place import location
from millstream.model.size import Size, byte_count
from millstream.model.slate import check_defaults, is_slate_type
from millstream.model.source import KeyOf, Source, TimeOf, declared
from millstream.model.text_form import text_form
from millstream.model.workflow import (
    SLATE_LIMIT,
    SLATE_WARN,
    OnError,
    Order,
    Stream,
    Workflow,
)

UserFunction = Callable[..., Any]


class Part(Protocol):
    """What `App.add` takes: it declares streams and functions."""

    def add_to(self, app: App, **options: Any) -> None: ...


class Placed(Protocol):
    """A part that has its place in an application, under a name."""

    def described(self) -> dict[str, Any]:
        """What the outside, such as the server, is to know of it, as JSON."""
        ...


class FunctionHandle:
    """A map or update as the decorator leaves it: still callable."""

    def __init__(self, app: App, name: str, function: UserFunction) -> None:
        self._app = app
        self.name = name
        self.function = function
        self.__name__ = getattr(function, "__name__", name)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


class UpdateHandle(FunctionHandle):
    """An update as the decorator leaves it: also takes its timer function."""

    def on_timer(self, function: UserFunction) -> UserFunction:
        """Name the function `(timer, slate)` that handles this update's timers."""
        self._app._set_timer_function(self.name, function)
        return function


class App:
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
        """`slate_warn` and `slate_limit` are of a slate's JSON, or of each entry of a table."""
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
        self.parts: dict[str, Placed] = {}

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
        ahead: Duration | None = "1d",
        jump: Duration | None = None,
        pattern: str | None = None,
        starts: str | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
    ) -> None:
        """Declare a stream that comes from outside; see `Source` for what the arguments mean, and
        `TextForm` for the last four, which say how text becomes records."""
        check_name(name, "source")
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
                text=text_form(
                    f"source {name!r}",
                    pattern=pattern,
                    starts=starts,
                    encoding=encoding,
                    delimiter=delimiter,
                ),
            )
        )

    def stream(self, name: str, *, delay: Duration = "0s") -> None:
        """Declare a stream's delay: its events are at least so much later than their input.

        On a stream that closes a cycle this makes event-time order exact.
        """
        check_name(name, "stream")
        self._declare(name, delay=microseconds(delay, f"stream {name!r}: delay"))

    def output(self, name: str) -> None:
        """Declare a stream as output: a sink or a tail reads it."""
        check_name(name, "output")
        self._declare(name, output=True)

    def action(self, name: str, *, to: str | None = None) -> None:
        """Declare an output as an action: its events are carried out, once they are committed.

        `to` is where: webhook:URL, line:FILE or stderr; or a setting says it. See the guarantees
        for what is promised.
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
    ) -> Callable[[UserFunction], FunctionHandle]:
        """Make the decorated function `(event)` a map over the streams named."""
        _check_subscribes(subscribes, "map")

        def decorate(function: UserFunction) -> FunctionHandle:
            function, called = _unwrapped(function), name or _name_of(function, "map")
            check_name(called, "map")
            check_arguments(function, ("event",), f"map {called!r}{location(function)}")
            self._functions.append(Map(called, function, subscribes, _names(publishes)))
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
        keep: int | None = None,
        memory: Size | None = None,
        priority: UserFunction | None = None,
    ) -> Callable[[UserFunction], UpdateHandle]:
        """Make the decorated function `(event, slate)` an update over the streams named.

        Its name is the name of its slates for ever; `name=` sets it apart from the function's.
        `limit` is how many events each of its shards takes in a batch; those past it wait for the
        next (`overload="throttle"`), are dropped ("drop"), or go to the stream `overflow`
        ("divert"). `keep` is how many slates it keeps and `memory` how many bytes they may take;
        past that the least important go, by `priority`, a function `(key, slate)` that gives a
        number, or else those that were updated longest ago.
        """
        _check_subscribes(subscribes, "update")

        def decorate(function: UserFunction) -> UpdateHandle:
            function, called = _unwrapped(function), name or _name_of(function, "update")
            check_name(called, "update")
            where = f"update {called!r}{location(function)}"
            check_arguments(function, ("event", "slate"), where)
            if not is_slate_type(slate):
                raise DefinitionError(
                    f"{where}: slate must be dict, a dataclass or millstream.Table; got {slate!r}"
                )
            check_defaults(slate, where)
            check_overload(limit, overload, overflow, where)
            room = None if memory is None else byte_count(memory, f"{where}: memory")
            check_room(keep, room, priority, where)
            self._functions.append(
                Update(
                    called,
                    function,
                    subscribes,
                    _names(publishes),
                    slate,
                    None if ttl is None else microseconds(ttl, f"{where}: ttl"),
                    limit=limit,
                    overload=overload,
                    overflow=overflow,
                    keep=keep,
                    memory=room,
                    priority=None if priority is None else _unwrapped(priority),
                )
            )
            if on_timer is not None:
                self._set_timer_function(called, on_timer)
            return UpdateHandle(self, called, function)

        return decorate

    def aggregate(
        self,
        *subscribes: str,
        algebra: Algebra,
        name: str,
        ttl: Duration | None = None,
    ) -> None:
        """Declare an update whose slates are the merge of their events, as `algebra` says.

        It has no function of its own, emits nothing, and its events are merged where they are read,
        before they are sent to their shard: a hot key costs no more than many keys do. So it needs
        no limit.
        """
        _check_subscribes(subscribes, "aggregate")
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
        """Remember a part by its name, for whoever is to find it again; DefinitionError if there is
        one of that name."""
        if name in self.parts:
            raise DefinitionError(
                f"{name!r}: each part of the application must have a name of its own, and there "
                "is one of this name already; give the second another with name="
            )
        self.parts[name] = part

    def gives(self, stream: str) -> bool:
        """Whether what was declared so far is a source of the stream, or publishes it."""
        return any(stream == source.name for source in self._sources) or any(
            stream in function.publishes for function in self._functions
        )

    def workflow(self) -> Workflow:
        """The checked graph. Raises DefinitionError; warns of streams that nobody reads."""
        built = self.checked()
        for warning in built.warnings:
            warnings.warn(warning, stacklevel=2)
        return built

    def checked(self) -> Workflow:
        """The checked graph, without a word: its warnings are there to be read."""
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
        )

    def run(self, **settings: Any) -> None:
        """Run the application on Spark until it is stopped; settings as for `millstream run`."""
        from millstream.cli.run import run_app  # Spark is loaded only by who runs

        run_app(self, settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, App) and self.checked() == other.checked()

    __hash__ = None  # type: ignore[assignment]  # an App is a builder, and changes

    def _declare(self, name: str, **changes: Any) -> None:
        self._declared[name] = replace(self._declared.get(name, Stream(name)), **changes)

    def _set_timer_function(self, name: str, function: UserFunction) -> None:
        function = _unwrapped(function)
        for index, known in enumerate(self._functions):
            if known.name == name and isinstance(known, Update):
                where = f"{known.where}: its timer function{location(function)}"
                check_arguments(function, ("timer", "slate"), where)
                if known.on_timer is not None:
                    raise DefinitionError(
                        f"{known.where} has a timer function already{location(known.on_timer)}"
                    )
                self._functions[index] = replace(known, on_timer=function)


def _check_subscribes(subscribes: tuple[object, ...], what: str) -> None:
    """Found here because `@app.map` without its brackets would else declare nothing, silently."""
    for stream in subscribes:
        if not isinstance(stream, str):
            got = getattr(stream, "__name__", None) or repr(stream)
            raise DefinitionError(
                f"{what}{location(stream) if callable(stream) else ''} must name the streams it "
                f"reads, as in @app.{what}('stream'); got {type(stream).__name__} {got}"
            )


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        check_name(name, "stream")
    return names


def _name_of(function: UserFunction, what: str) -> str:
    name = getattr(function, "__name__", None)
    if name is None or name == "<lambda>":
        raise DefinitionError(f"{what}{location(function)}: a lambda has no name; give it name=")
    return str(name)


def _unwrapped(function: UserFunction) -> UserFunction:
    return function.function if isinstance(function, FunctionHandle) else function
