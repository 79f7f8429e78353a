"""Map and update functions as inert data, and the checks that need only the function itself."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType
from typing import Any, Literal

from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra
from millstream.model.lookup import KnownLookup
from millstream.model.migration import Migration, check_version
from millstream.model.place import location
from millstream.model.slate import slate_kind

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
RESERVED_STREAMS = ("late", "deadletters", "dropped", "deadletters.retried")
Overload = Literal["drop", "divert", "throttle"]
OVERLOADS: tuple[Overload, ...] = ("drop", "divert", "throttle")


@dataclass(frozen=True, slots=True)
class Map:
    """A memoryless function from an event to events."""

    name: str
    function: Callable[..., Any]
    subscribes: tuple[str, ...]
    publishes: tuple[str, ...] = ()
    lookups: tuple[KnownLookup, ...] = ()
    """The tables of other systems that it reads."""

    @property
    def emits(self) -> tuple[str, ...]:
        """Every stream that it may emit to."""
        return self.publishes

    @property
    def where(self) -> str:
        return f"map {self.name!r}{location(self.function)}"


@dataclass(frozen=True, slots=True)
class Update:
    """A function from an event and the slate of its key to events; the slate is its memory."""

    name: str
    function: Callable[..., Any]
    subscribes: tuple[str, ...]
    publishes: tuple[str, ...] = ()
    slate: type = dict
    ttl: int | None = None
    on_timer: Callable[..., Any] | None = None
    algebra: Algebra | None = None
    """The algebra of an aggregate; `function` is then its `lift`. None for any other update."""
    limit: int | None = None
    """The most events that each of its shards takes in a batch; None: all."""
    overload: Overload = "throttle"
    """The treatment of events past the limit."""
    overflow: str | None = None
    """The stream that events past the limit are diverted to."""
    immediate: bool = False
    """True: each event is processed in the batch that brings it, however many its key has."""
    keep: int | None = None
    """The most slates that it keeps; None: all. The least important are removed first."""
    memory: int | None = None
    """The most bytes that its slates may take; None: no limit."""
    priority: Callable[..., Any] | None = None
    """Returns the importance of a `(key, slate)`, a number; None: the time of its last update."""
    version: int = 1
    """The version of its slates. Slates of another version go through `migrations` when read."""
    migrations: tuple[Migration, ...] = ()
    formerly: tuple[str, ...] = ()
    """Former names of the update: slates stored under one of them belong to it."""
    batch: bool = False
    """True if the function is `(events, slate)`: it gets all events of a key in a batch at once."""
    across_keys: bool = False
    """True if the function is `(events, slates)`: it gets tables of many keys at once."""
    values: type | None = None
    """The dataclass whose fields are the columns of the events' values, with `across_keys`."""

    @property
    def emits(self) -> tuple[str, ...]:
        """Every stream that it may emit to: those it publishes, and its overflow."""
        return self.publishes if self.overflow is None else (*self.publishes, self.overflow)

    @property
    def where(self) -> str:
        if self.algebra is not None:
            return f"aggregate {self.name!r}"
        return f"update {self.name!r}{location(self.function)}"

    @property
    def kind(self) -> str:
        """The kind of its slates, as the store records it. An update of another kind cannot use
        them."""
        return slate_kind(self.slate) if self.algebra is None else self.algebra.kind


Function = Map | Update


def with_migration(update: Update, migration: Migration) -> Update:
    """Returns the update with one more migration; DefinitionError if the migration is invalid."""
    where = f"{update.where}: its migration{location(migration.function)}"
    check_version(migration.before, where)
    check_version(migration.after, where)
    check_arguments(migration.function, ("slate",), where)
    if migration.before == migration.after:
        raise DefinitionError(f"{where} must lead to another version than {migration.before}")
    for known in update.migrations:
        if (known.before, known.after) == (migration.before, migration.after):
            raise DefinitionError(
                f"{where}: there is one from {known.before} to {known.after} already"
                f"{location(known.function)}"
            )
    return replace(update, migrations=(*update.migrations, migration))


def check_former_names(app: str, functions: Iterable[Function], retired: Iterable[str]) -> None:
    """DefinitionError if two updates claim the same name: a store has one update's slates there."""
    functions = tuple(functions)
    names = {function.name for function in functions}
    claimed: dict[str, Update] = {}
    for update in (function for function in functions if isinstance(function, Update)):
        for former in update.formerly:
            if former in names:
                raise DefinitionError(
                    f"{update.where}: formerly names {former!r}, which the application still has; "
                    "once a run has given its slates the new name, leave formerly= out"
                )
            if former in claimed:
                raise DefinitionError(
                    f"{update.where}: formerly names {former!r}, and so does "
                    f"{claimed[former].where}; the slates can become those of one update only"
                )
            claimed[former] = update
    for name in retired:
        if name in names or name in claimed:
            raise DefinitionError(
                f"app {app!r}: retire() names {name!r}, which must be an update that "
                "the application no longer has, under no name"
            )


def check_name(name: object, kind: str) -> None:
    if not isinstance(name, str):
        raise DefinitionError(f"{kind} name must be text; got {type(name).__name__} {name!r}")
    if not NAME.fullmatch(name):
        raise DefinitionError(
            f"{kind} name {name!r} must start with a letter or _, go on with letters, digits, "
            "_ . or -, and have at most 64 characters"
        )


def check_subscribes(subscribes: tuple[object, ...], kind: str) -> None:
    """DefinitionError for `@app.map` without its brackets, which would silently declare nothing."""
    for stream in subscribes:
        if not isinstance(stream, str):
            got = getattr(stream, "__name__", None) or repr(stream)
            raise DefinitionError(
                f"{kind}{location(stream) if callable(stream) else ''} must name the streams it "
                f"reads, as in @app.{kind}('stream'); got {type(stream).__name__} {got}"
            )


def stream_names(given: str | Iterable[str]) -> tuple[str, ...]:
    """Returns one name or several as a tuple; DefinitionError if one is not a stream's name."""
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        check_name(name, "stream")
    return names


def name_of(function: Callable[..., Any], kind: str) -> str:
    """Returns the function's own name; DefinitionError for a lambda, which has none."""
    name = getattr(function, "__name__", None)
    if name is None or name == "<lambda>":
        raise DefinitionError(f"{kind}{location(function)}: a lambda has no name; give it name=")
    return str(name)


def takes(*names: str) -> inspect.Signature:
    """Returns a signature for a callable object to show to `check_arguments`.

    The object can then wrap the user's own function, so that messages name its place in the code.
    """
    kind = inspect.Parameter.POSITIONAL_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


def check_arguments(function: Callable[..., Any], wanted: tuple[str, ...], where: str) -> None:
    """DefinitionError unless the function takes exactly the positional arguments `wanted`."""
    if not callable(function):
        raise DefinitionError(f"{where} must be a function; got {type(function).__name__}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError(f"{where} must be a plain function, not an async one: drop 'async'")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a builtin without a signature: trust it
    try:
        signature.bind(*wanted)
    except TypeError:
        raise DefinitionError(
            f"{where} must take ({', '.join(wanted)}); it takes {signature}"
        ) from None


def check_overload(
    limit: object, overload: object, overflow: object, immediate: object, where: str
) -> None:
    """DefinitionError unless limit, overload, overflow and immediate fit together."""
    if not isinstance(immediate, bool):
        raise DefinitionError(f"{where}: immediate must be True or False; got {immediate!r}")
    if immediate and limit is not None:
        raise DefinitionError(
            f"{where}: limit must be left out: an immediate update holds no event back; "
            f"got {limit!r}"
        )
    if overload not in OVERLOADS:
        raise DefinitionError(
            f"{where}: overload must be one of {', '.join(OVERLOADS)}; got {overload!r}"
        )
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise DefinitionError(
            f"{where}: limit must be a whole number of events, 1 or more; got {limit!r}"
        )
    if overload == "divert":
        if overflow is None:
            raise DefinitionError(
                f"{where}: overflow must name the stream that events past the limit go to"
            )
        check_name(overflow, "stream")
    elif overflow is not None:
        raise DefinitionError(
            f"{where}: overflow must be left out unless overload is 'divert'; got {overflow!r}"
        )
    if limit is None and overload != "throttle":
        raise DefinitionError(f"{where}: limit must say past how many events it is to {overload}")


def check_room(keep: object, memory: int | None, priority: Any, where: str) -> None:
    """DefinitionError unless the limits on slates (keep, memory) and priority fit together."""
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):
        raise DefinitionError(
            f"{where}: keep must be a whole number of slates, 1 or more; got {keep!r}"
        )
    if memory is not None and memory < 1:
        raise DefinitionError(f"{where}: memory must be a size over 0; got {memory!r}")
    if priority is not None:
        if keep is None and memory is None:
            raise DefinitionError(
                f"{where}: priority must come with keep= or memory=, past which the least "
                "important slates go"
            )
        check_arguments(priority, ("key", "slate"), f"{where}: priority{location(priority)}")


def check_effects(function: Function) -> None:
    """Checks a function's source text for emits to undeclared streams and unhandled timers.

    It reads literal arguments only; everything else is checked when the function runs.
    """
    handlers = [function.function]
    if isinstance(function, Update) and function.on_timer is not None:
        handlers.append(function.on_timer)
    for handler in handlers:
        for line, called, call in _calls(handler):
            at = f"{function.where}, line {line}"
            if isinstance(function, Update) and function.batch:
                raise DefinitionError(
                    f"{at}: an update with batch=True only changes its slates, so it cannot use "
                    f"{called}(); leave batch= out"
                )
            if called == "emit":
                _check_emit(function, call, at)
            elif isinstance(function, Map):
                raise DefinitionError(
                    f"{at}: a map has no slate, so it cannot use {called}(); make it an update"
                )
            elif called == "timer" and function.on_timer is None:
                raise DefinitionError(
                    f"{at}: sets a timer, but nothing handles it; add a function (timer, slate) "
                    f"with @{function.function.__name__}.on_timer"
                )


def _check_emit(function: Function, call: ast.Call, at: str) -> None:
    stream: ast.expr | None = call.args[0] if call.args else None
    for keyword in call.keywords:
        if keyword.arg is None:
            return
        if keyword.arg == "stream":
            stream = keyword.value
    published = ", ".join(function.publishes) or "none"
    if stream is None:
        if len(function.publishes) != 1:
            raise DefinitionError(
                f"{at}: emit() without a stream needs a function that publishes exactly one; "
                f"this one publishes {published}"
            )
    elif (
        isinstance(stream, ast.Constant)
        and isinstance(stream.value, str)
        and stream.value not in function.publishes
    ):
        raise DefinitionError(
            f"{at}: emits to stream {stream.value!r}, which it does not publish "
            f"(it publishes {published}); add it to publishes="
        )


def _calls(function: Callable[..., Any]) -> Iterator[tuple[int, str, ast.Call]]:
    """Yields calls of emit, timer and forget in the function's source: (line, name, call)."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return
    names = getattr(function, "__globals__", {})
    for line, node in _calls_in(code, code.co_filename):
        target = node.func
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            owner = names.get(target.value.id)
            called = target.attr
            ours = getattr(owner, "__name__", None) == "millstream"
        elif isinstance(target, ast.Name):
            callee = names.get(target.id)
            called = getattr(callee, "__name__", "")
            ours = getattr(callee, "__module__", None) == "millstream.model.event"
        else:
            continue
        if ours and called in ("emit", "timer", "forget"):
            yield line, called, node


@lru_cache(maxsize=1_024)  # functions made by a factory share one code object
def _calls_in(code: CodeType, path: str) -> tuple[tuple[int, ast.Call], ...]:
    """Returns all calls in the source of this code, with their lines; empty without a source.

    `path` is part of the cache key: code objects of two files may be equal.
    """
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return ()
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return tuple((first + node.lineno - 1, node) for node in calls)
