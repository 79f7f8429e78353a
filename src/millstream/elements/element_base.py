"""The fields of an element: those that are configured, and those that are its slate.

`element.Element`, from which users derive, adds `add_to` to the class here. The functions that an
element becomes (`element_functions`, `placement`) know only this module, so that `Element` can
import them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass
from functools import cache
from inspect import get_annotations
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from millstream.errors import DefinitionError, FunctionError
from millstream.model.event import INHERITED, Emit, Event, Forget, SetTimer, Timer
from millstream.model.place import location

T = TypeVar("T")
_CONFIGURED = "configured"
Configured = Annotated[T, _CONFIGURED]
"""Marks a field that is set in the prototype: `size: Configured[int] = 10`."""

Effects = Iterable[Emit | SetTimer | Forget] | None
"""The result of an element's method: it yields effects, or returns a list of them, or None."""


class ElementBase:
    """A processing element as the functions of the model know it: everything but `add_to`.

    `key` and `time` are set before each call. `key` is the key of this element. `time` is the `ts`
    of the current event; in `output`, the end of the period.
    """

    key: str
    time: int
    most_idle = 1_000
    """`output` stops being called by time after this many calls without an event in between."""
    _publish_to: str | None = None
    _publishes: tuple[str, ...] = ()

    def process_event(self, event: Event) -> Effects:
        """Processes an event: changes the fields, yields events to emit."""
        raise NotImplementedError

    def output(self) -> Effects:
        """Emits the current results. Called every t seconds or every n events, as configured."""
        raise NotImplementedError

    def on_timer(self, timer: Timer) -> Effects:
        """Handles a timer that this element has set."""
        raise NotImplementedError

    def priority(self) -> float:
        """Returns the importance of this element. When room runs out, the least important go
        first."""
        raise NotImplementedError

    def publish(self, value: Any, *, key: str | None = None) -> Emit:
        """Returns the effect that publishes a value under this element's key. Yield it."""
        if self._publish_to is None:
            raise FunctionError(
                f"{type(self).__name__} publishes, but has no output: add it with publish= "
                "the name of an output"
            )
        only = len(self._publishes) == 1
        return Emit(
            None if only else self._publish_to,  # the engine has a fast path for a single stream
            self.key if key is None else key,
            value,
            None,
        )

    def to_all(self, value: Any = INHERITED, *, key: Any = INHERITED) -> list[Emit]:
        """Returns the effects that emit a value on every stream that this element publishes."""
        if key is INHERITED:
            key = self.__dict__.get("key", key)  # a prototype has no key
        if len(self._publishes) == 1:
            return [Emit(None, key, value, None)]
        return [Emit(stream, key, value, None) for stream in self._publishes]

    def __eq__(self, other: object) -> bool:
        """True if both have the same class and attributes. (Dataclasses have a similar method of
        their own.)"""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # its fields change


SINCE, NEXT, IDLE = "since_output", "next_output", "idle_outputs"
"""The slate's additional fields: the events since the last `output`, the time of the next one, and
the number of calls since the last event."""
_OWN = {
    "add_to",
    *(
        name
        for name in (*vars(ElementBase), *get_annotations(ElementBase))
        if not name.startswith("__")
    ),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of an element's class, by kind."""

    configured: tuple[str, ...]
    slate: tuple[str, ...]
    hints: dict[str, Any] = field(compare=False, hash=False)
    where: str = ""


def shape_of(kind: type[Any]) -> Shape:
    """Returns the fields of an element's class. Raises DefinitionError if they cannot be a
    slate."""
    where = f"element {kind.__name__}{location(kind.process_event)}"
    known = {item.name for item in fields(kind)} if is_dataclass(kind) else set()
    for base in kind.__mro__[: kind.__mro__.index(ElementBase)]:
        annotated = _annotated(base) - known
        if annotated:
            raise DefinitionError(
                f"{where} has fields ({', '.join(sorted(annotated))}), so it must be a dataclass: "
                f"put @dataclass above {base.__name__}"
            )
    if not is_dataclass(kind):
        return Shape((), (), {}, where)
    if "__slots__" in kind.__dict__:
        raise DefinitionError(f"{where}: must be a dataclass without slots=True")
    taken = sorted(known & (_OWN | {SINCE, NEXT, IDLE}))
    if taken:
        raise DefinitionError(
            f"{where}: a field must not be called {', '.join(taken)}: every element has an "
            "attribute of that name; give the field another name"
        )
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"{where}: the types of its fields must be known where the class is: {error}"
        ) from None
    configured, slate = [], []
    for item in fields(kind):
        if _CONFIGURED in getattr(hints[item.name], "__metadata__", ()):
            configured.append(item.name)
            continue
        if item.default is item.default_factory is MISSING:
            raise DefinitionError(
                f"{where}: field {item.name!r} belongs to the slate, so it must have a "
                "default, with which a new key begins; if it is configured, mark it Configured[...]"
            )
        slate.append(item.name)
    dataclass_kind: Any = kind
    if slate and dataclass_kind.__dataclass_params__.frozen:
        raise DefinitionError(
            f"{where}: must be a dataclass without frozen=True, since process_event changes its "
            f"fields ({', '.join(slate)}); if they are configured, mark them Configured[...]"
        )
    return Shape(tuple(configured), tuple(slate), hints, where)


def _annotated(kind: type[Any]) -> set[str]:
    """Returns the names that a class itself annotates with a type, without class variables."""
    return {
        name
        for name, hint in get_annotations(kind).items()
        if "ClassVar" not in str(hint) and "InitVar" not in str(hint)
    }


@cache
def slate_of(kind: Any, scheduled: tuple[tuple[str, Any, Any], ...]) -> type:
    """Makes the dataclass of an element's slate: the slate's fields, and those of the schedule."""
    shape = shape_of(kind)
    by_name = {item.name: item for item in fields(kind)} if is_dataclass(kind) else {}
    columns = []
    for name in shape.slate:
        item = by_name[name]
        copied = (
            field(default=item.default)
            if item.default is not MISSING
            else field(default_factory=item.default_factory)
        )
        columns.append((name, shape.hints[name], copied))
    columns += [(name, hint, field(default=default)) for name, hint, default in scheduled]
    slate = make_dataclass(kind.__name__, columns)
    slate.__module__ = kind.__module__
    return slate


def configuration(prototype: ElementBase) -> dict[str, Any]:
    """Returns the configuration of a prototype. Raises DefinitionError if a value does not have the
    annotated type."""
    kind: Any = type(prototype)
    shape = shape_of(kind)
    for name in shape.configured:
        hint = get_args(shape.hints[name])[0]
        value = getattr(prototype, name)
        if not _fits(value, hint):
            raise DefinitionError(
                f"element {kind.__name__}: {name} must be {_words(hint)}; "
                f"got {type(value).__name__} {value!r}"
            )
    fresh = slate_of(kind, ())()
    for name in shape.slate:
        if getattr(prototype, name) != getattr(fresh, name):
            raise DefinitionError(
                f"element {kind.__name__}: {name} must be left out: it belongs to the slate, and "
                "begins with its default for each key; mark it Configured[...] to set it in the "
                "prototype"
            )
    return {name: getattr(prototype, name) for name in shape.configured}


def _fits(value: Any, hint: Any) -> bool:
    """True if a value has a type, as far as JSON and TOML know types."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, item) for item in arguments)
    if origin is Literal:
        return value in arguments
    if origin is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is list:
        return isinstance(value, list) and all(
            _fits(item, arguments[0]) for item in value if arguments
        )
    if origin is dict:
        return isinstance(value, dict) and all(
            _fits(k, arguments[0]) and _fits(v, arguments[1]) for k, v in value.items() if arguments
        )
    return not isinstance(origin, type) or isinstance(value, origin)


_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _words(hint: Any) -> str:
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_words(item) for item in arguments if item is not type(None))
    if origin is Literal:
        return "one of " + ", ".join(repr(item) for item in arguments)
    if origin is list:
        return "a list" + (f" of {_words(arguments[0])}" if arguments else "")
    if origin is dict:
        return "a table"
    return _WORDS.get(origin, getattr(origin, "__name__", str(origin)))
