"""`App`: accepted and refused declarations, and their errors."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.model.function import Update

HERE = Path(__file__).name


def an_app() -> ms.App:
    app = ms.App("shop")
    app.source("orders", key="user")
    return app


def refused(build: Callable[[], Any]) -> str:
    """The message of the DefinitionError that building raises."""
    with pytest.raises(ms.DefinitionError) as raised:
        build()
    return str(raised.value)


def placeless(message: str) -> str:
    """The message with the file and line in it replaced by HERE."""
    return re.sub(r"\([^()]*\.py:\d+\)", "(HERE)", message)


def test_building_runs_nothing() -> None:
    """Declaring functions and checking the graph never calls them."""
    app = an_app()
    calls = []

    @app.update("orders")
    def count(event: Any, slate: Any) -> None:
        calls.append(event)

    app.workflow()
    assert calls == []


def test_a_decorated_function_is_still_the_function() -> None:
    """User code and its tests can call a map or an update directly, and see its name and doc."""
    app = an_app()

    @app.update("orders")
    def count(event: Any, slate: dict[str, int]) -> None:
        """Counts."""
        slate["n"] = slate.get("n", 0) + 1

    slate: dict[str, int] = {}
    count(ms.Event("orders", 1, "ann", None), slate)
    assert slate == {"n": 1}
    assert (count.__name__, count.__doc__, count.name) == ("count", "Counts.", "count")


def test_a_function_takes_its_python_name_or_the_given_one() -> None:
    """name= sets an update's name, and so that of its slates, apart from the function's."""
    app = an_app()

    def count(event: Any, slate: Any) -> None: ...

    app.update("orders")(count)
    app.update("orders", name="count.again")(count)
    assert [f.name for f in app.workflow().functions] == ["count", "count.again"]


def test_a_handle_can_be_declared_again() -> None:
    """The result of a decorator stands for its function: another app can use it."""
    app, other = an_app(), an_app()

    @app.update("orders")
    def count(event: Any, slate: Any) -> None: ...

    other.update("orders")(count)
    assert app == other


def test_callables_without_a_name_need_name() -> None:
    """A partial or an object with __call__ can be a function when it is given a name."""

    class Doubler:
        def __call__(self, event: Any) -> list[Any]:
            return []

    def scale(factor: int, event: Any) -> None: ...

    app = an_app()
    app.map("orders", name="doubler")(Doubler())
    app.map("orders", name="scaled")(functools.partial(scale, 3))
    assert [f.name for f in app.workflow().functions] == ["doubler", "scaled"]


def test_everything_that_is_declared_is_in_the_workflow() -> None:
    """Sources, functions and streams arrive in the graph, with durations in microseconds."""

    @dataclass
    class Total:
        total: int = 0

    def fired(timer: Any, slate: Any) -> None: ...

    app = ms.App("shop", order="event-time", on_error="fail")
    app.source("orders", key="user", ts="time", unit="ms", lateness="5s", idle=timedelta(minutes=1))
    app.stream("again", delay="1s")
    app.output("big")
    app.output("again")

    @app.update(
        "orders", "again", publishes=["again", "big"], slate=Total, ttl="1d", on_timer=fired
    )
    def total(event: Any, slate: Any) -> None: ...

    workflow = app.workflow()
    (source,) = workflow.sources
    assert (source.key, source.ts, source.unit) == ("user", "time", "ms")
    assert (source.lateness, source.idle) == (5_000_000, 60_000_000)
    assert workflow.functions == (
        Update(
            "total",
            total.function,
            ("orders", "again"),
            ("again", "big"),
            Total,
            86_400_000_000,
            fired,
        ),
    )
    assert workflow.outputs == ("again", "big")
    assert workflow.delay("again") == 1_000_000
    assert (workflow.order, workflow.on_error) == ("event-time", "fail")


def test_apps_that_mean_the_same_are_equal() -> None:
    """Apps are compared by their graph; a difference in any part shows."""

    def count(event: Any, slate: Any) -> None: ...

    def build(ttl: str) -> ms.App:
        app = an_app()
        app.update("orders", ttl=ttl)(count)
        return app

    assert build("60s") == build("1m")
    assert build("60s") != build("61s")


@pytest.mark.parametrize("name", ["", "9lives", "a b", "a/b", "-a", "é", "a" * 65, "a\n"])
def test_names_that_are_refused(name: str) -> None:
    """Names go into file names and addresses, so they are plain; the error says the rule."""
    rule = (
        f"name {name!r} must start with a letter or _, go on with letters, digits, _ . or -, "
        "and have at most 64 characters"
    )
    assert refused(lambda: ms.App(name)) == f"app {rule}"
    assert refused(lambda: an_app().source(name)) == f"source {rule}"
    assert refused(lambda: an_app().output(name)) == f"output {rule}"
    assert refused(lambda: an_app().stream(name)) == f"stream {rule}"
    publishing = an_app().map("orders", publishes=[name], name="m")
    assert refused(lambda: publishing(lambda event: None)) == f"stream {rule}"


@pytest.mark.parametrize("name", ["a", "_a", "A.b-c_9", "a" * 64])
def test_names_that_are_accepted(name: str) -> None:
    """Letters, digits, _ . and - make a name."""
    assert ms.App(name).name == name


def test_a_name_must_be_text() -> None:
    """Something else than text is told by its type."""
    assert refused(lambda: ms.App(5)) == "app name must be text; got int 5"  # type: ignore[arg-type]


def test_a_lambda_needs_a_name() -> None:
    """A lambda has no name for its slates; with name= it is as good as any function."""
    app = an_app()
    message = refused(lambda: app.update("orders")(lambda event, slate: None))
    assert placeless(message) == "update (HERE): a lambda has no name; give it name="
    assert HERE in message
    app.update("orders", name="quiet")(lambda event, slate: None)
    assert app.workflow().update("quiet")


def test_wrong_arguments() -> None:
    """A function with the wrong parameters is refused at once, with the expected ones."""
    app = an_app()

    def no_slate(event): ...  # type: ignore[no-untyped-def]

    def too_many(event, slate, more): ...  # type: ignore[no-untyped-def]

    def keywords(event, *, slate): ...  # type: ignore[no-untyped-def]

    def spare(event, slate, more=None): ...  # type: ignore[no-untyped-def]

    assert placeless(refused(lambda: app.update("orders")(no_slate))) == (
        "update 'no_slate' (HERE) must take (event, slate); it takes (event)"
    )
    assert placeless(refused(lambda: app.map("orders")(too_many))) == (
        "map 'too_many' (HERE) must take (event); it takes (event, slate, more)"
    )
    assert "must take (event, slate); it takes" in refused(lambda: app.update("orders")(keywords))
    app.update("orders")(spare)


def test_a_message_points_to_the_line() -> None:
    """The place in a message is the file and the line of the user's function."""

    def no_slate(event): ...  # type: ignore[no-untyped-def]

    line = no_slate.__code__.co_firstlineno
    assert f"{HERE}:{line})" in refused(lambda: an_app().update("orders")(no_slate))


def test_async_functions_are_refused() -> None:
    """An async function would return a coroutine that nobody awaits."""
    app = an_app()

    async def waits(event: Any) -> None: ...

    async def yields(event: Any, slate: Any) -> Any:
        yield ms.emit()

    wanted = "must be a plain function, not an async one: drop 'async'"
    assert placeless(refused(lambda: app.map("orders")(waits))) == f"map 'waits' (HERE) {wanted}"
    assert placeless(refused(lambda: app.update("orders")(yields))) == (
        f"update 'yields' (HERE) {wanted}"
    )


def test_what_is_no_function_is_refused() -> None:
    """A thing that cannot be called is told by its type."""
    assert refused(lambda: an_app().map("orders", name="five")(5)) == (  # type: ignore[arg-type]
        "map 'five' must be a function; got int"
    )


def test_a_decorator_without_its_brackets_is_refused() -> None:
    """`@app.map` without streams would declare nothing: the error says how to write it."""
    app = an_app()

    def recognise(event: Any) -> None: ...

    message = placeless(refused(lambda: app.map(recognise)))  # type: ignore[arg-type]
    assert message == (
        "map (HERE) must name the streams it reads, as in @app.map('stream'); "
        "got function recognise"
    )
    assert "@app.update('stream'); got list ['a']" in refused(
        lambda: app.update(["a"])  # type: ignore[arg-type]
    )


def test_what_cannot_be_a_slate_is_refused() -> None:
    """A slate is dict, a dataclass or a table."""

    def count(event: Any, slate: Any) -> None: ...

    assert placeless(refused(lambda: an_app().update("orders", slate=list)(count))) == (
        "update 'count' (HERE): slate must be dict, a dataclass or millstream.Table; "
        "got <class 'list'>"
    )


def test_a_slate_needs_defaults() -> None:
    """A new key finds a fresh slate, so every field needs a default: found when it is declared."""

    @dataclass
    class Count:
        seen: list[str] = field(default_factory=list)
        total: int = field(init=False)
        count: int = field(kw_only=True)

    def count(event: Any, slate: Any) -> None: ...

    assert placeless(refused(lambda: an_app().update("orders", slate=Count)(count))) == (
        "update 'count' (HERE): slate Count: every field needs a default, so that a new key finds "
        "a fresh slate; 'count' has none"
    )


def test_bad_durations_say_whose() -> None:
    """A duration that cannot be read is told with the place where it stands."""

    def count(event: Any, slate: Any) -> None: ...

    what = "must be a duration such as '90d', '1h30m' or '250ms'"
    assert placeless(refused(lambda: an_app().update("orders", ttl="90")(count))).startswith(
        f"update 'count' (HERE): ttl {what}"
    )
    assert refused(lambda: an_app().source("a", lateness="soon")).startswith(
        f"source 'a': lateness {what}"
    )
    assert refused(lambda: an_app().source("a", idle=10)).startswith(  # type: ignore[arg-type]
        f"source 'a': idle {what}"
    )
    assert refused(lambda: an_app().stream("a", delay="1 s")).startswith(
        f"stream 'a': delay {what}"
    )


def test_bad_source_arguments() -> None:
    """A unit that is none, or a key that picks nothing, is refused where it is declared."""
    assert refused(lambda: an_app().source("a", ts="t", unit="min")) == (
        "source 'a': unit must be one of s, ms, us, ns; got 'min'"
    )
    assert refused(lambda: an_app().source("a", key=5)) == (  # type: ignore[arg-type]
        "source 'a': key must be a field, a dotted path or a function of the record; got int"
    )


def test_a_timer_function_is_named_once() -> None:
    """on_timer= and @update.on_timer are the same thing, and there is one a function."""
    app = an_app()

    @app.update("orders")
    def count(event: Any, slate: Any) -> None: ...

    @count.on_timer
    def first(timer: Any, slate: Any) -> None: ...

    assert app.workflow().update("count").on_timer is first

    def second(timer: Any, slate: Any) -> None: ...

    assert placeless(refused(lambda: count.on_timer(second))) == (
        "update 'count' (HERE) has a timer function already (HERE)"
    )


def test_a_timer_function_takes_timer_and_slate() -> None:
    """A timer function with other arguments is refused, and the update is named."""
    app = an_app()

    @app.update("orders")
    def count(event: Any, slate: Any) -> None: ...

    def fired(timer): ...  # type: ignore[no-untyped-def]

    assert placeless(refused(lambda: count.on_timer(fired))) == (
        "update 'count' (HERE): its timer function (HERE) must take (timer, slate); "
        "it takes (timer)"
    )


def test_importing_millstream_loads_no_spark() -> None:
    """The model and the testing module are usable where there is no Java."""
    import subprocess
    import sys

    code = (
        "import sys, millstream; print([m for m in ('pyspark', 'starlette') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
