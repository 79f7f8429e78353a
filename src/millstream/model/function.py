"""Map and update functions as inert data, and the checks that need only the function itself."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra
from millstream.model.place import location
from millstream.model.slate import slate_kind

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
RESERVED_STREAMS = ("late", "deadletters", "dropped")
Overload = Literal["drop", "divert", "throttle"]
OVERLOADS: tuple[Overload, ...] = ("drop", "divert", "throttle")


@dataclass(frozen=True, slots=True)
class Map:
    """A memoryless function from an event to events."""

    name: str
    function: Callable[..., Any]
    subscribes: tuple[str, ...]
    publishes: tuple[str, ...] = ()

    @property
    def emits(self) -> tuple[str, ...]:
        """Every stream that its events may go to."""
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
    """If it is an aggregate; `function` is then the algebra's `lift`."""
    limit: int | None = None
    """How many events each of its shards takes in a batch; None: all."""
    overload: Overload = "throttle"
    """What becomes of the events past the limit."""
    overflow: str | None = None
    """The stream that they are diverted to."""
    keep: int | None = None
    """How many slates it keeps; None: all. The least important go first."""
    memory: int | None = None
    """How many bytes its slates may take; None: any."""
    priority: Callable[..., Any] | None = None
    """A number for `(key, slate)`: how important it is; None: the time of its last update."""

    @property
    def emits(self) -> tuple[str, ...]:
        """Every stream that its events may go to: those it publishes, and its overflow."""
        return self.publishes if self.overflow is None else (*self.publishes, self.overflow)

    @property
    def where(self) -> str:
        if self.algebra is not None:
            return f"aggregate {self.name!r}"
        return f"update {self.name!r}{location(self.function)}"

    @property
    def kind(self) -> str:
        """What its slates are, as a store remembers it: another kind cannot go on from them."""
        return slate_kind(self.slate) if self.algebra is None else self.algebra.kind


Function = Map | Update


def check_name(name: object, what: str) -> None:
    if not isinstance(name, str):
        raise DefinitionError(f"{what} name must be text; got {type(name).__name__} {name!r}")
    if not NAME.fullmatch(name):
        raise DefinitionError(
            f"{what} name {name!r} must start with a letter or _, go on with letters, digits, "
            "_ . or -, and have at most 64 characters"
        )


def takes(*names: str) -> inspect.Signature:
    """The signature that an object which is called as a function shows: `check_arguments` reads it,
    and the object may then wrap the user's own function for its place in the code."""
    kind = inspect.Parameter.POSITIONAL_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


def check_arguments(function: Callable[..., Any], wanted: tuple[str, ...], where: str) -> None:
    """The function must be callable with exactly the positional arguments `wanted`."""
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


def check_overload(limit: object, overload: object, overflow: object, where: str) -> None:
    """A limit, what to do past it, and where to divert to must go together."""
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
    """How many slates or bytes to keep, and what tells which go first, must go together."""
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
    """What the source text already shows: emits to undeclared streams, timers without a handler.

    Reads literal arguments only; what cannot be read is checked when it runs.
    """
    handlers = [function.function]
    if isinstance(function, Update) and function.on_timer is not None:
        handlers.append(function.on_timer)
    for handler in handlers:
        for line, called, call in _calls(handler):
            at = f"{function.where}, line {line}"
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
    """Calls of emit, timer and forget in the function's source: (line, name, call)."""
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(function))
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return
    names = getattr(function, "__globals__", {})
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            target = node.func
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                owner = names.get(target.value.id)
                called = target.attr
                ours = getattr(owner, "__name__", None) == "millstream"
            elif isinstance(target, ast.Name):
                made = names.get(target.id)
                called = getattr(made, "__name__", "")
                ours = getattr(made, "__module__", None) == "millstream.model.event"
            else:
                continue
            if ours and called in ("emit", "timer", "forget"):
                yield first + node.lineno - 1, called, node
