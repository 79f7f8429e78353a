"""A processing element: a small class whose fields are its slate (S4, sections II.B and III).

    @dataclass
    class QueryCounter(ms.Element):
        count: int = 0

        def process_event(self, event):
            self.count += 1

        def output(self):
            yield self.publish({"query": self.key, "count": self.count})

    app.add(QueryCounter(), keys={"queries": "query"}, every="10m", publish="counts")

The object that is added is the *prototype*: what is configured in it (fields marked `Configured`)
is the same for every key, is not stored, and follows the configuration when that changes. The other
fields are the slate: each key has its own, which begins with the fields' defaults. There is no
mechanism under it but maps, updates, slates and timers: see `placing`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass
from functools import cache
from inspect import get_annotations
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from millstream.errors import DefinitionError, FunctionError
from millstream.model.app import App
from millstream.model.event import INHERITED, Emit, Event, Forget, SetTimer, Timer
from millstream.model.place import location

T = TypeVar("T")
_CONFIGURED = "configured"
Configured = Annotated[T, _CONFIGURED]
"""Marks a field that the prototype sets: `size: Configured[int] = 10`."""

Effects = Iterable[Emit | SetTimer | Forget] | None
"""What a method of an element gives: it yields them, or returns a list, or nothing."""


class Element:
    """The base of processing elements. A subclass with fields is a dataclass.

    `key` and `time` are set before each call: the value that this element is for, and the `ts` of
    the event in hand; in `output`, the end of the time that it is for.
    """

    key: str
    time: int
    most_idle = 1_000
    """How often `output` is called by time without an event in between, before it rests."""
    _publish_to: str | None = None
    _publishes: tuple[str, ...] = ()

    def process_event(self, event: Event) -> Effects:
        """Take an event: change the fields, yield what is to be emitted."""
        raise NotImplementedError

    def output(self) -> Effects:
        """Give out what is known; called every t seconds or every n events, as it is configured."""
        raise NotImplementedError

    def on_timer(self, timer: Timer) -> Effects:
        """Take a timer that this element has set."""
        raise NotImplementedError

    def priority(self) -> float:
        """How important this element is: when there is no room, the least important go first."""
        raise NotImplementedError

    def publish(self, value: Any, *, key: str | None = None) -> Emit:
        """What to yield to put a value under this element's key into the outside store."""
        if self._publish_to is None:
            raise FunctionError(
                f"{type(self).__name__} publishes, but was not told where: add it with publish= "
                "the name of an output"
            )
        alone = len(self._publishes) == 1
        return Emit(
            None if alone else self._publish_to,  # the engine has a short way for the only one
            self.key if key is None else key,
            value,
            None,
        )

    def to_all(self, value: Any = INHERITED, *, key: Any = INHERITED) -> list[Emit]:
        """What to yield to put a value onto every stream that this element was told to publish."""
        if key is INHERITED:
            key = self.__dict__.get("key", key)  # a prototype has none
        if len(self._publishes) == 1:
            return [Emit(None, key, value, None)]
        return [Emit(stream, key, value, None) for stream in self._publishes]

    def add_to(self, app: App, **placement: Any) -> None:
        """Make the functions of this element; see `placing.place` for what may be said."""
        from millstream.elements.placing import check_placement, place

        check_placement(self, placement)
        place(app, self, **placement)

    def __eq__(self, other: object) -> bool:
        """Two elements are equal that are configured alike; a dataclass has its own, like it."""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # its fields change


SINCE, NEXT, IDLE = "since_output", "next_output", "idle_outputs"
"""What the slate has besides the fields: the events since `output`, its next time, and how often it
was called since the last event."""
_OWN = {name for name in (*vars(Element), *get_annotations(Element)) if not name.startswith("__")}


@dataclass(frozen=True, slots=True)
class Shape:
    """What the fields of an element's class are."""

    configured: tuple[str, ...]
    slate: tuple[str, ...]
    hints: dict[str, Any] = field(compare=False, hash=False)
    where: str = ""


def shape_of(kind: type[Any]) -> Shape:
    """The fields of an element's class; DefinitionError if they cannot be a slate."""
    where = f"element {kind.__name__}{location(kind.process_event)}"
    known = {one.name for one in fields(kind)} if is_dataclass(kind) else set()
    for base in kind.__mro__[: kind.__mro__.index(Element)]:
        noted = _noted(base) - known
        if noted:
            raise DefinitionError(
                f"{where} has fields ({', '.join(sorted(noted))}), so it must be a dataclass: put "
                f"@dataclass above {base.__name__}"
            )
    if not is_dataclass(kind):
        return Shape((), (), {}, where)
    if "__slots__" in kind.__dict__:
        raise DefinitionError(f"{where}: must be a dataclass without slots=True")
    taken = sorted(known & (_OWN | {SINCE, NEXT, IDLE}))
    if taken:
        raise DefinitionError(
            f"{where}: a field must not be called {', '.join(taken)}: every element has that of "
            "its own; give it another name"
        )
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"{where}: the types of its fields must be known where the class is: {error}"
        ) from None
    configured, slate = [], []
    for one in fields(kind):
        if _CONFIGURED in getattr(hints[one.name], "__metadata__", ()):
            configured.append(one.name)
            continue
        if one.default is one.default_factory is MISSING:
            raise DefinitionError(
                f"{where}: field {one.name!r} is of the slate, so it must have a default, which a "
                "new key begins with; if it is configured, mark it Configured[...]"
            )
        slate.append(one.name)
    made: Any = kind
    if slate and made.__dataclass_params__.frozen:
        raise DefinitionError(
            f"{where}: must be a dataclass without frozen=True, since process_event changes its "
            f"fields ({', '.join(slate)}); if they are configured, mark them Configured[...]"
        )
    return Shape(tuple(configured), tuple(slate), hints, where)


def _noted(kind: type[Any]) -> set[str]:
    """The names that a class itself gives a type to, those of class variables left out."""
    return {
        name
        for name, hint in get_annotations(kind).items()
        if "ClassVar" not in str(hint) and "InitVar" not in str(hint)
    }


@cache
def slate_of(kind: Any, scheduled: tuple[tuple[str, Any, Any], ...]) -> type:
    """The dataclass of an element's slate: its own fields, and what its schedule remembers."""
    shape = shape_of(kind)
    by_name = {one.name: one for one in fields(kind)} if is_dataclass(kind) else {}
    made = []
    for name in shape.slate:
        one = by_name[name]
        kept = (
            field(default=one.default)
            if one.default is not MISSING
            else field(default_factory=one.default_factory)
        )
        made.append((name, shape.hints[name], kept))
    made += [(name, hint, field(default=default)) for name, hint, default in scheduled]
    slate = make_dataclass(kind.__name__, made)
    slate.__module__ = kind.__module__
    return slate


def configuration(prototype: Element) -> dict[str, Any]:
    """What is configured in a prototype; DefinitionError if it is of another type than it says."""
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
                f"element {kind.__name__}: {name} must be left out: it is of the slate, and begins "
                "with its default for each key; mark it Configured[...] to set it in the prototype"
            )
    return {name: getattr(prototype, name) for name in shape.configured}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, as far as JSON and TOML know types."""
    origin, given = get_origin(hint) or hint, get_args(hint)
    if origin is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in given)
    if origin is Literal:
        return value in given
    if origin is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is list:
        return isinstance(value, list) and all(_fits(one, given[0]) for one in value if given)
    if origin is dict:
        return isinstance(value, dict) and all(
            _fits(k, given[0]) and _fits(v, given[1]) for k, v in value.items() if given
        )
    return not isinstance(origin, type) or isinstance(value, origin)


_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _words(hint: Any) -> str:
    origin, given = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_words(one) for one in given if one is not type(None))
    if origin is Literal:
        return "one of " + ", ".join(repr(one) for one in given)
    if origin is list:
        return "a list" + (f" of {_words(given[0])}" if given else "")
    if origin is dict:
        return "a table"
    return _WORDS.get(origin, getattr(origin, "__name__", str(origin)))
