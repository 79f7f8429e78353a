"""The workflow: what the check of the whole graph finds."""

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from model.graphs_of import an_app, build, mapper, update

import millstream as ms
from millstream import emit, timer


def refused(build: Callable[[], Any]) -> str:
    with pytest.raises(ms.DefinitionError) as raised:
        build()
    return re.sub(r"\([^()]*\.py:\d+\)", "(HERE)", str(raised.value))


def test_an_unknown_stream_is_told_with_the_nearest_name() -> None:
    """The error for an unknown stream suggests the nearest name."""
    app = an_app()
    app.update("order", name="count")(update)
    assert refused(app.workflow) == (
        "update 'count' (HERE) subscribes to an unknown stream 'order'; there are: orders; "
        "did you mean 'orders'?"
    )


def test_an_unknown_stream_with_nothing_near() -> None:
    """Where no name is near, the message lists those there are."""
    app = an_app()
    app.map("orders", publishes="big", name="split")(mapper)
    app.update("zebra", name="count")(update)
    assert refused(app.workflow) == (
        "update 'count' (HERE) subscribes to an unknown stream 'zebra'; there are: big, orders"
    )


@pytest.mark.parametrize(("declare", "what"), [("output", "output"), ("stream", "stream")])
def test_a_declared_stream_must_be_published(declare: str, what: str) -> None:
    """An output, or a delay, of a stream that nobody publishes is an error."""
    app = an_app()
    app.map("orders", publishes="big", name="split")(mapper)
    getattr(app, declare)("bigg")
    assert refused(app.workflow) == (
        f"{what} 'bigg': no function publishes it: unknown stream 'bigg'; there are: big, "
        "orders; did you mean 'big'?"
    )


def test_a_function_name_used_twice() -> None:
    """Both holders of the name are shown, maps and updates alike, with what to do."""
    app = an_app()
    app.map("orders", name="count")(mapper)
    app.update("orders", name="count")(update)
    assert refused(app.workflow) == (
        "app 'shop': function name 'count' is used twice: map 'count' (HERE) and "
        "update 'count' (HERE); give one of them name="
    )


def test_a_source_declared_twice() -> None:
    """A source is declared once."""
    app = an_app()
    app.source("orders")
    app.update("orders", name="orders")(update)
    assert refused(app.workflow) == (
        "app 'shop': source name 'orders' is used twice; declare it once"
    )


def test_a_stream_and_a_function_may_share_a_name() -> None:
    """Streams and functions are named apart."""
    app = an_app()
    app.update("orders", name="orders")(update)
    assert app.workflow().update("orders").subscribes == ("orders",)


def test_an_app_needs_a_source_and_a_function_a_stream() -> None:
    """An application that could never run is refused, with advice."""
    assert refused(ms.App("shop").workflow) == (
        "app 'shop' has no source; declare one with app.source(name)"
    )
    app = an_app()
    app.map(name="idle")(mapper)
    assert refused(app.workflow) == "map 'idle' (HERE) must subscribe to at least one stream"


@pytest.mark.parametrize("name", ["late", "deadletters"])
def test_reserved_names(name: str) -> None:
    """Millstream's own streams cannot be published, nor come from outside."""
    app = an_app()
    app.map("orders", publishes=name, name="split")(mapper)
    assert refused(app.workflow) == (
        f"map 'split' (HERE) publishes {name!r}, a name that Millstream keeps for itself; "
        "choose another"
    )
    app = an_app()
    app.source(name)
    assert refused(app.workflow) == f"source {name!r}: Millstream keeps that name for itself"


@pytest.mark.parametrize("name", ["late", "deadletters"])
def test_reserved_streams_are_read_by_sinks(name: str) -> None:
    """A function cannot subscribe to Millstream's own streams; the error says who can."""
    app = an_app()
    app.update(name, name="count")(update)
    assert refused(app.workflow) == (
        f"update 'count' (HERE) subscribes to {name!r}: that stream is Millstream's own and is "
        f"read by a sink, not by a function: give it one with --sink {name}=FORMAT:DIR"
    )


def test_order_and_on_error_are_checked() -> None:
    """A misspelt setting is refused with the two that there are."""
    assert refused(an_app(order="time").workflow) == (
        "app 'shop': order must be 'arrival' or 'event-time'; got 'time'"
    )
    assert refused(an_app(on_error="ignore").workflow) == (
        "app 'shop': on_error must be 'dead-letter' or 'fail'; got 'ignore'"
    )


def test_emitting_to_an_unpublished_stream_is_found_at_build_time() -> None:
    """A literal stream in emit() is checked against publishes= before anything runs."""
    app = an_app()

    @app.map("orders", publishes="big")
    def split(event: ms.Event) -> Iterator[object]:
        yield ms.emit("big")
        yield ms.emit("small", key="x")

    line = split.function.__code__.co_firstlineno + 3
    assert refused(app.workflow) == (
        f"map 'split' (HERE), line {line}: emits to stream 'small', which it does not publish "
        "(it publishes big); add it to publishes="
    )


def test_emitting_by_keyword_and_by_imported_name_is_found_too() -> None:
    """`emit(stream=...)`, imported by its own name, is the same call."""
    app = an_app()

    @app.map("orders", publishes="big")
    def split(event: ms.Event) -> Iterator[object]:
        yield emit(stream="small")

    assert "emits to stream 'small', which it does not publish" in refused(app.workflow)


def test_emitting_from_a_timer_function_is_checked_too() -> None:
    """A timer function publishes what its update does."""
    app = an_app()

    @app.update("orders")
    def count(event: ms.Event, slate: Any) -> Iterator[object]:
        yield timer(after="1s")

    @count.on_timer
    def fired(timer: ms.Timer, slate: Any) -> Iterator[object]:
        yield ms.emit("small")

    assert "emits to stream 'small', which it does not publish (it publishes none)" in refused(
        app.workflow
    )


@pytest.mark.parametrize(("publishes", "shown"), [((), "none"), (("a", "b"), "a, b")])
def test_emit_without_a_stream_needs_exactly_one(publishes: tuple[str, ...], shown: str) -> None:
    """The stream can be left out only if there is exactly one."""
    app = an_app()

    @app.map("orders", publishes=publishes)
    def split(event: ms.Event) -> Iterator[object]:
        yield ms.emit(key="x")

    message = refused(app.workflow)
    assert message.endswith(
        "emit() without a stream needs a function that publishes exactly one; "
        f"this one publishes {shown}"
    )


def test_what_the_text_cannot_show_is_left_to_the_run() -> None:
    """A stream that is computed, and an emit that is not ours, pass the check."""
    app = an_app()
    app.output("big")
    name = "big"
    arguments: dict[str, Any] = {"stream": name}

    class Other:
        def emit(self, stream: str) -> None: ...

    other = Other()

    @app.map("orders", publishes="big")
    def split(event: ms.Event) -> Iterator[object]:
        other.emit("elsewhere")
        yield ms.emit(name)
        yield ms.emit(**arguments)

    app.workflow()


def test_a_timer_without_a_handler() -> None:
    """An update that sets a timer which nothing handles is refused, with what to add."""
    app = an_app()

    @app.update("orders")
    def count(event: ms.Event, slate: Any) -> Iterator[object]:
        yield ms.timer(after="1s")

    line = count.function.__code__.co_firstlineno + 2
    assert refused(app.workflow) == (
        f"update 'count' (HERE), line {line}: sets a timer, but nothing handles it; add a function "
        "(timer, slate) with @count.on_timer"
    )


def test_a_map_has_neither_timers_nor_a_slate() -> None:
    """timer() and forget() are for updates."""
    for effect in ("timer", "forget"):
        app = an_app()

        if effect == "timer":

            @app.map("orders")
            def split(event: ms.Event) -> Iterator[object]:
                yield ms.timer(after="1s")

        else:

            @app.map("orders")
            def split(event: ms.Event) -> Iterator[object]:
                yield ms.forget()

        assert refused(app.workflow).endswith(
            f"a map has no slate, so it cannot use {effect}(); make it an update"
        )


def test_a_stream_that_nobody_reads_is_a_warning() -> None:
    """It may be a typing error, so the warning names the nearest stream that is read. The
    application still runs."""
    app = an_app()
    app.map("orders", publishes="bigg", name="split")(mapper)
    app.map("orders", publishes="big", name="other")(mapper)
    app.update("big", name="count")(update)
    with pytest.warns(UserWarning, match="is read by nobody") as warned:
        workflow = app.workflow()
    (message,) = workflow.warnings
    assert [str(w.message) for w in warned] == [message]
    assert re.sub(r"\([^()]*\.py:\d+\)", "(HERE)", message) == (
        "stream 'bigg', published by map 'split' (HERE), is read by nobody (did you mean 'big'?); "
        "declare it with app.output('bigg') or drop it"
    )


def test_a_source_that_nobody_reads_is_a_warning() -> None:
    """An unread source is told too."""
    with pytest.warns(UserWarning, match="stream 'orders', a source, is read by nobody"):
        an_app().workflow()


def test_an_output_is_read() -> None:
    """A declared output needs no other reader."""
    app = an_app()
    app.map("orders", publishes="big", name="split")(mapper)
    app.output("big")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        app.workflow()


def test_unknown_functions_are_told_with_the_nearest_name() -> None:
    """The error for an unknown function or update lists the existing ones."""
    workflow = build([("update", "count", ("orders",), ()), ("map", "split", ("orders",), ())])
    assert refused(lambda: workflow.update("cuont")) == (
        "unknown update 'cuont'; there are: count; did you mean 'count'?"
    )
    assert refused(lambda: workflow.function("xyz")) == (
        "unknown function 'xyz'; there are: count, split"
    )
