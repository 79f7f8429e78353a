"""The base of elements: fields are the slate, the prototype is configured, and values that would be
lost are errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from elements.one_element import Fraction, placed, sales

import millstream as ms
from millstream.elements import Count
from millstream.elements.element_base import configuration, shape_of, slate_of
from millstream.spark.function_pickle import dumps, loads


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
    """Fields are either configured or part of the slate, inherited ones too."""

    @dataclass
    class More(Fraction):
        extra: int = 0

    shape = shape_of(More)
    assert shape.configured == ("least", "words", "how", "share", "rest")
    assert shape.slate == ("seen", "kinds", "extra")
    assert slate_of(More, ())().extra == 0


def test_a_whole_number_is_a_number_and_none_may_be_left_out() -> None:
    """Types are as TOML and JSON know them."""
    given = configuration(Fraction(1, share=2, rest={"a": 1}, words=["x"], how="some"))
    assert given == {"least": 1, "share": 2, "rest": {"a": 1}, "words": ["x"], "how": "some"}


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
    """Changes of configured attributes, and of values made from them, would be lost too, so they
    are an error."""

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
    """It runs as a map. Attributes that it sets on itself are an error."""

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
    """Without publish= there is no outside store, so the event is a dead letter that says so."""

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
