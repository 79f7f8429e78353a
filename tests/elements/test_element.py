"""The base of elements: fields are the slate, the prototype is configured, mistakes are named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar, Literal

import pytest

import millstream as ms
from millstream.elements import Count
from millstream.elements.element import configuration, shape_of, slate_of
from millstream.spark.pickling import dumps, loads


@dataclass
class Fraction(ms.Element):
    """An element with all kinds of fields."""

    least: ms.Configured[int]
    words: ms.Configured[list[str]] = field(default_factory=list)
    how: ms.Configured[Literal["all", "some"]] = "all"
    share: ms.Configured[float] = 0.5
    rest: ms.Configured[dict[str, int] | None] = None
    limit_of: ClassVar[int] = 3
    seen: int = 0
    kinds: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._double = 2 * self.least

    def process_event(self, event: ms.Event) -> Iterator[Any]:
        self.seen += 1
        self.kinds.setdefault(event.value, []).append(event.ts)
        if self.seen >= self.least:
            yield ms.emit(value=[self.key, self.time, self._double, self.limit_of, self.seen])


def placed(element: ms.Element, **options: Any) -> ms.App:
    app = ms.App("shop")
    app.source("sales")
    app.output("out")
    app.add(element, **{"keys": "sales", "name": "one", "publishes": "out", **options})
    return app


def sales(*keys: str) -> list[ms.Event]:
    return [ms.Event("sales", ts, key, "pen") for ts, key in enumerate(keys, start=1)]


def refused(element: Any, **options: Any) -> str:
    with pytest.raises(ms.DefinitionError) as error:
        placed(element, **options)
    return str(error.value)


def test_fields_are_the_slate() -> None:
    """Each key has its own, which begins with the defaults; what is configured is not stored."""
    run = ms.testing.run(placed(Fraction(2)), sales("a", "b", "a"))
    slates = run.slates("one")
    assert {key: (slate.seen, slate.kinds) for key, slate in slates.items()} == {
        "a": (2, {"pen": [1, 3]}),
        "b": (1, {"pen": [2]}),
    }
    assert list(vars(slates["a"])) == ["seen", "kinds"]


def test_a_clone_has_key_time_and_configuration() -> None:
    """And what the prototype made of its configuration, and the variables of the class."""
    run = ms.testing.run(placed(Fraction(2)), sales("a", "b", "a"))
    assert [event.value for event in run.stream("out")] == [["a", 3, 4, 3, 2]]


def test_the_prototype_is_left_as_it_was() -> None:
    """Running changes neither its fields nor those of a second run."""
    prototype = Fraction(1)
    app = placed(prototype)
    one = ms.testing.run(app, sales("a", "a"))
    assert (prototype.seen, prototype.kinds) == (0, {})
    assert ms.testing.run(app, sales("a", "a")).slates("one") == one.slates("one")


def test_the_shape_of_a_class() -> None:
    """What is configured and what is the slate; inherited fields belong to it."""

    @dataclass
    class More(Fraction):
        extra: int = 0

    shape = shape_of(More)
    assert shape.configured == ("least", "words", "how", "share", "rest")
    assert shape.slate == ("seen", "kinds", "extra")
    assert slate_of(More, ())().extra == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"least": "2"}, "element Fraction: least must be a whole number; got str '2'"),
        ({"least": True}, "least must be a whole number; got bool True"),
        ({"least": 1.0}, "least must be a whole number; got float 1.0"),
        ({"share": "x"}, "share must be a number; got str 'x'"),
        ({"how": "none"}, "how must be one of 'all', 'some'; got str 'none'"),
        ({"words": "a"}, "words must be a list of text; got str 'a'"),
        ({"words": ["a", 1]}, "words must be a list of text; got list ['a', 1]"),
        ({"rest": {"a": "b"}}, "rest must be a table; got dict {'a': 'b'}"),
    ],
)
def test_a_configuration_of_another_type_is_refused(given: dict[str, Any], message: str) -> None:
    """The error names the element, the property, what it must be and what came."""
    assert message in refused(Fraction(**{"least": 1, **given}))


def test_a_whole_number_is_a_number_and_none_may_be_left_out() -> None:
    """Types are as TOML and JSON know them."""
    given = configuration(Fraction(1, share=2, rest={"a": 1}, words=["x"], how="some"))
    assert given == {"least": 1, "share": 2, "rest": {"a": 1}, "words": ["x"], "how": "some"}


def test_a_field_of_the_slate_is_not_set_in_the_prototype() -> None:
    """It would be another default than the class says, and gone when the file is read again."""
    message = refused(Fraction(1, seen=5))
    assert "element Fraction: seen must be left out: it is of the slate, and begins with" in message
    assert "mark it Configured[...]" in message


def test_fields_without_a_dataclass_are_refused() -> None:
    """Else they would be variables of the class, shared by all keys; the user's line is named."""

    class Plain(ms.Element):
        seen: int = 0

        def process_event(self, event: ms.Event) -> None: ...

    message = refused(Plain())
    assert "element Plain (" in message
    assert "test_element.py:" in message
    assert "has fields (seen), so it must be a dataclass: put @dataclass above Plain" in message


def test_a_subclass_with_more_fields_must_be_a_dataclass_too() -> None:
    """A field that only the subclass notes would not be kept, without a word."""

    class Louder(Count):
        volume: int = 0
        shared: ClassVar[int] = 1

    assert "has fields (volume), so it must be a dataclass: put @dataclass above Louder" in refused(
        Louder()
    )

    class Same(Count):
        shared: ClassVar[int] = 1

    run = ms.testing.run(placed(Same()), sales("a", "a"))
    assert run.slate("one", "a").count == 2


def test_slots_and_frozen_are_refused() -> None:
    """A clone takes its fields from the slate, and changes them."""

    @dataclass(slots=True)
    class Slotted(ms.Element):
        seen: int = 0

        def process_event(self, event: ms.Event) -> None: ...

    @dataclass(frozen=True)
    class Frozen(ms.Element):
        seen: int = 0

        def process_event(self, event: ms.Event) -> None: ...

    assert "element Slotted" in refused(Slotted())
    assert "must be a dataclass without slots=True" in refused(Slotted())
    assert "must be a dataclass without frozen=True" in refused(Frozen())
    assert "fields (seen)" in refused(Frozen())


@pytest.mark.parametrize("name", ["key", "time", "output", "publish", "next_output"])
def test_names_that_every_element_has_are_refused(name: str) -> None:
    """Such a field would be overwritten, or hide a method."""
    kind = type("Odd", (ms.Element,), {"__annotations__": {name: int}, name: 0})
    kind.process_event = lambda self, event: None  # type: ignore[attr-defined]
    assert f"a field must not be called {name}: every element has that" in refused(
        dataclass(kind)()
    )


def test_a_field_without_a_default_is_refused() -> None:
    """A new key begins with the defaults; or it was meant to be configured."""

    @dataclass
    class Open(ms.Element):
        seen: int

        def process_event(self, event: ms.Event) -> None: ...

    message = refused(Open(1))
    assert "field 'seen' is of the slate, so it must have a default" in message
    assert "if it is configured, mark it Configured[...]" in message


def test_a_type_that_is_not_known_is_refused() -> None:
    """The slate could not be read again."""

    @dataclass
    class Unknown(ms.Element):
        seen: Missing = 0  # type: ignore[name-defined]  # noqa: F821

        def process_event(self, event: ms.Event) -> None: ...

    assert "the types of its fields must be known where the class is: name 'Missing'" in refused(
        Unknown()
    )


def test_what_is_not_a_field_is_not_lost_in_silence() -> None:
    """An attribute that a method sets on itself would be gone with the clone: a dead letter."""

    @dataclass
    class Forgetful(ms.Element):
        seen: int = 0

        def process_event(self, event: ms.Event) -> None:
            self.seen += 1
            if event.key == "b":
                self.last = event.ts
            elif event.key == "c":
                del self.seen

    run = ms.testing.run(placed(Forgetful()), sales("a", "b", "c", "a"))
    assert {key: slate.seen for key, slate in run.slates("one").items()} == {"a": 2}
    errors = [letter.error for letter in run.dead_letters]
    assert "element Forgetful: only its fields are kept" in errors[0]
    assert "got last, which it has set on itself: make it a field" in errors[0]
    assert "element Forgetful: seen must not be deleted" in errors[1]


@pytest.mark.parametrize("changed", ["step", "_twice"])
def test_what_is_configured_is_not_changed_in_silence(changed: str) -> None:
    """What the prototype has, and what it has made of that, is not kept either: so it is said."""

    @dataclass
    class Stepping(ms.Element):
        step: ms.Configured[int] = 1
        total: int = 0

        def __post_init__(self) -> None:
            self._twice = 2 * self.step

        def process_event(self, event: ms.Event) -> None:
            self.total += self.step
            if event.value:
                setattr(self, changed, 5)

    app = ms.App("steps")
    app.source("in")
    app.add(Stepping(), keys="in", name="stepping")
    run = ms.testing.run(app, [ms.Event("in", ts, "k", ts == 2) for ts in (1, 2, 3)])
    (letter,) = run.dead_letters
    assert f"element Stepping: {changed} must stay as it was configured" in letter.error
    assert run.slate("stepping", "k").total == 2


def test_a_memoryless_element_keeps_nothing_either() -> None:
    """It runs as a map, and says so of what it sets on itself."""

    class Passes(ms.Element):
        def process_event(self, event: ms.Event) -> Iterator[Any]:
            self.count = getattr(self, "count", 0) + 1
            yield ms.emit()

    run = ms.testing.run(placed(Passes()), sales("a"))
    assert run.stream("out") == []
    assert "element Passes: only its fields are kept" in run.dead_letters[0].error


class Returns(ms.Element):
    """Gives its effects in the way that the event's value says."""

    def process_event(self, event: ms.Event) -> Any:
        effects = [ms.emit(value=1), ms.emit(value=2)]
        match event.value:
            case "list":
                return effects
            case "generator":
                return iter(effects)
            case "nothing":
                return None
            case "lone":
                return ms.emit()
            case _:
                return 5


def test_ways_to_give_effects() -> None:
    """A generator, a list or nothing; a lone effect, or what is none, is a dead letter."""
    given = ["list", "generator", "nothing", "lone", "five"]
    events = [ms.Event("sales", ts, "k", value) for ts, value in enumerate(given)]

    @dataclass
    class Remembers(Returns):
        seen: int = 0

    for element in (Returns(), Remembers()):
        run = ms.testing.run(placed(element), events)
        assert [event.value for event in run.stream("out")] == [1, 2, 1, 2]
        assert [letter.value for letter in run.dead_letters] == ["lone", "five"]
        assert "write 'yield' in place of 'return'" in run.dead_letters[0].error


def test_an_event_that_fails_leaves_the_fields_as_they_were() -> None:
    """Also when the method had yielded before, and changed a list in place; its line is named."""

    @dataclass
    class Half(ms.Element):
        seen: list[int] = field(default_factory=list)

        def process_event(self, event: ms.Event) -> Iterator[Any]:
            self.seen.append(event.ts)
            yield ms.emit(value=event.ts)
            if event.ts == 2:
                raise ValueError("two")

    run = ms.testing.run(placed(Half()), sales("a", "a", "a"))
    assert run.slate("one", "a").seen == [1, 3]
    assert [event.value for event in run.stream("out")] == [1, 3]
    (letter,) = run.dead_letters
    assert letter.error.startswith("ValueError: two (")
    assert "test_element.py:" in letter.error
    assert "in process_event)" in letter.error
    assert (letter.function, letter.key, letter.ts) == ("one", "a", 2)


def test_elements_are_equal_that_are_configured_alike() -> None:
    """So that two applications can be compared; another class is another element."""
    assert Returns() == Returns()
    assert Count() == Count()
    assert Fraction(1) != Fraction(2)
    assert Returns() != Count()
    assert placed(Returns()) == placed(Returns())
    assert placed(Fraction(1)) != placed(Fraction(2))


def test_publish_needs_to_be_told_where() -> None:
    """Without publish= there is no outside store: a dead letter that says so."""

    @dataclass
    class Publishes(ms.Element):
        seen: int = 0

        def process_event(self, event: ms.Event) -> Iterator[Any]:
            yield self.publish(1)
            yield self.publish(2, key="other")

    run = ms.testing.run(placed(Publishes()), sales("a"))
    assert "add it with publish= the name of an output" in run.dead_letters[0].error
    run = ms.testing.run(placed(Publishes(), publish="store"), sales("a"))
    assert [(event.key, event.value) for event in run.stream("store")] == [("a", 1), ("other", 2)]


def test_elements_go_to_workers_by_value() -> None:
    """Classes, their bases and key functions that no worker could import are pickled whole."""
    code = """
from dataclasses import dataclass
import millstream as ms

@dataclass
class Base(ms.Element):
    seen: int = 0
    def process_event(self, event):
        self.seen += 1
        yield ms.emit(value=self.seen)

class Passes(ms.Element):
    def process_event(self, event):
        yield ms.emit()

def first(event):
    return event.value[0]

app = ms.App("a")
app.source("sales")
app.output("out")
app.add(Base(), name="one", keys={"sales": first}, publishes="out")
app.add(Passes(), name="two", keys={"sales": first}, publishes="out")
app.add(ms.elements.Count(), name="three", keys={"sales": first})
"""
    module = ModuleType("made_here")
    module.__file__ = __file__
    sys.modules["made_here"] = module
    try:
        exec(compile(code, "made_here.py", "exec"), vars(module))
        workflow = module.app.checked()
        data = dumps(workflow, workflow)
    finally:
        del sys.modules["made_here"]
    update = loads(data).update("one")
    slate = update.slate()
    (effect,) = update.function(ms.Event("one.sales", 1, "p", "pen"), slate)
    assert (effect.value, slate.seen) == (1, 1)
    (passed,) = loads(data).function("two").function(ms.Event("sales", 1, "", "pen"))
    assert passed.key == "p"
    (keyed,) = loads(data).function("three.keys").function(ms.Event("sales", 1, "", "pen"))
    assert keyed.key == "p"
