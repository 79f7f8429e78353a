"""How the reference treats functions that fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from reference_apps import an_app

import millstream as ms
from millstream import Event


@dataclass
class Count:
    n: int = 0


def failing() -> ms.App:
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out", slate=ms.Table)
    def table(event: Event, slate: ms.Table) -> Iterator[object]:
        slate["n"] = slate.get("n", 0) + 1
        slate["last"] = event.value
        yield ms.emit(value=["table", event.value])
        yield ms.timer(at=1_000 + event.ts)
        if event.value == ["bad"]:
            event.value.append("changed")
            raise ValueError("no")

    @table.on_timer
    def table_timer(timer: ms.Timer, slate: ms.Table) -> Iterator[object]:
        yield ms.emit(value=["table timer", timer.ts])

    @app.update("a", publishes="out", slate=Count)
    def count(event: Event, slate: Count) -> Iterator[object]:
        slate.n += 1
        yield ms.emit(value=["count", event.value])
        yield ms.timer(after="1ms")
        if event.value == ["bad"]:
            yield ms.forget()
            raise ValueError("no")

    @count.on_timer
    def count_timer(timer: ms.Timer, slate: Count) -> Iterator[object]:
        yield ms.emit(value=["count timer", slate.n, timer.ts])

    return app


def test_an_event_that_fails_leaves_no_trace() -> None:
    """Slates, streams and timers are as if it had not come; the dead letter tells of it."""
    good = [("a", 1, "k", [1]), ("a", 9, "k", [2]), ("a", 9_999, "z", [3])]
    bad = [("a", 5, "k", ["bad"]), ("a", 6, "new", ["bad"])]
    with_bad, without = ms.testing.run(failing(), good + bad), ms.testing.run(failing(), good)
    for name in ("count", "table"):
        assert with_bad.slates(name) == without.slates(name)
    assert with_bad.stream("out") == without.stream("out")
    assert without.dead_letters == []
    assert [
        (d.function, d.stream, d.ts, d.key, d.value, d.error.split(" (")[0], d.timer)
        for d in with_bad.dead_letters
    ] == [
        ("count", "a", 5, "k", ["bad"], "ValueError: no", None),
        ("table", "a", 5, "k", ["bad"], "ValueError: no", None),
        ("count", "a", 6, "new", ["bad"], "ValueError: no", None),
        ("table", "a", 6, "new", ["bad"], "ValueError: no", None),
    ]


def test_an_event_that_fails_does_not_revive_an_expired_slate() -> None:
    """After a failure beyond the ttl, the next event still finds a fresh slate."""
    app = an_app()

    @app.update("a", ttl="10us")
    def count(event: Event, slate: dict[str, int]) -> None:
        slate["n"] = slate.get("n", 0) + 1
        if event.value == "bad":
            raise ValueError

    run = ms.testing.run(app, [("a", 1, "k", 0), ("a", 20, "k", "bad"), ("a", 21, "k", 0)])
    assert run.slate("count", "k") == {"n": 1}


def test_a_slate_that_json_cannot_carry_fails_its_event() -> None:
    """The slate stays as it was before the event that spoilt it."""
    app = an_app()

    @app.update("a")
    def last(event: Event, slate: dict[str, Any]) -> None:
        slate["x"] = float("nan") if event.value == "nan" else event.value

    run = ms.testing.run(app, [("a", 1, "k", "fine"), ("a", 2, "k", "nan")])
    assert run.slate("last", "k") == {"x": "fine"}
    assert run.dead_letters[0].error.startswith("CodecError: a value must be what JSON can carry")


def test_a_slate_that_could_not_be_read_back_fails_its_event() -> None:
    """A field of the wrong type is told at once, not by every later event of the key."""
    app = an_app()

    @app.update("a", slate=Count)
    def last(event: Event, slate: Count) -> None:
        slate.n = event.value

    run = ms.testing.run(app, [("a", 1, "k", 7), ("a", 2, "k", "x"), ("a", 3, "k", 8)])
    assert run.slate("last", "k") == Count(8)
    (letter,) = run.dead_letters
    assert letter.ts == 2
    assert letter.error.startswith("CodecError: slate Count cannot be read back: Expected `int`")


def test_a_map_that_fails_emits_nothing() -> None:
    """Events that a map yielded before it raised are discarded."""
    app = an_app()
    app.output("out")

    @app.map("a", publishes="out")
    def say(event: Event) -> Iterator[object]:
        yield ms.emit()
        event.value.append(2)
        raise ValueError("no")

    run = ms.testing.run(app, [("a", 1, "k", [1])])
    assert run.stream("out") == []
    assert run.dead_letters[0].value == [1], "the dead letter has the value that came"


def test_a_timer_that_fails_is_spent() -> None:
    """Its slate is untouched, it does not fire again, and the dead letter names it."""
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out")
    def count(event: Event, slate: dict[str, int]) -> Iterator[object]:
        slate["n"] = slate.get("n", 0) + 1
        yield ms.timer(after="5us", name="alarm")

    @count.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        slate["n"] = 99
        yield ms.emit()
        raise ValueError("no")

    run = ms.testing.run(app, [("a", 1, "k", 0), ("a", 50, "z", 0)])
    assert run.slate("count", "k") == {"n": 1}
    assert run.stream("out") == []
    (letter,) = run.dead_letters
    assert (letter.function, letter.ts, letter.key, letter.timer) == ("count", 6, "k", "alarm")


def test_a_slate_that_cannot_be_coded_is_found_before_any_event() -> None:
    """The error is the application's, so no event becomes a dead letter for it."""

    @dataclass
    class Odd:
        thing: dict[str, list[int] | set[int]] | None = None

    app = an_app()
    app.update("a", slate=Odd, name="odd")(lambda event, slate: None)
    with pytest.raises(ms.DefinitionError, match="slate Odd: its fields must be of types that"):
        ms.testing.run(app)
