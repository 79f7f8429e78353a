"""Where emitted events go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from engine.columns_of import columns, times

import millstream as ms
from millstream.codec import shard_of
from millstream.engine.columns import Columns
from millstream.engine.plan import SOURCE, Plan
from millstream.engine.router import FeedbackOutbox, Router
from millstream.errors import FunctionError
from millstream.model.workflow import OnError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def nothing(event: ms.Event, slate: Any = None) -> None:
    """A function that does nothing."""


def passes(event: ms.Event) -> Iterator[Any]:
    yield ms.emit()


def app_of(on_error: OnError = "dead-letter") -> ms.App:
    app = ms.App("routes", on_error=on_error)
    app.source("s")
    return app


def router_of(app: ms.App, shards: int = 1, outputs: set[str] | None = None) -> Router:
    return Router(Plan(app.workflow(), shards, frozenset(outputs or ())), batch=4)


def test_maps_run_at_once_one_behind_the_other() -> None:
    """An event goes through every map behind its stream before it reaches an update's inbox."""
    app = app_of()
    app.map("s", publishes="a", name="first")(passes)
    app.map("a", publishes="b", name="second")(passes)
    app.update("b", name="last")(nothing)
    router = router_of(app)
    router.route(SOURCE, columns(5))
    assert {place: times(inbox) for place, inbox in router.placed.items()} == {(2, 0): [7]}
    assert {number: counts.processed for number, counts in router.counts.items()} == {
        0: 1,
        1: 1,
        2: 0,
    }
    assert router.highest == 7


def test_every_subscriber_gets_its_own_copy() -> None:
    """A stream with several readers goes to each of them."""
    app = app_of()
    app.update("s", name="one")(nothing)
    app.map("s", publishes="a", name="map")(passes)
    app.update("s", "a", name="two")(nothing)
    router = router_of(app, outputs={"a"})
    router.route(SOURCE, columns(5))
    assert {place: sorted(times(inbox)) for place, inbox in router.placed.items()} == {
        (0, 0): [5],
        (2, 0): [5, 6],
    }
    assert {stream: times(events) for stream, events in router.outputs.items()} == {1: [6]}


def test_a_function_sees_a_value_of_its_own() -> None:
    """A map that changes its event's value changes nobody else's."""
    app = app_of()

    def change(event: ms.Event) -> Iterator[Any]:
        event.value.append(1)
        yield ms.emit(key="k", value=event.value)

    app.map("s", publishes="a", name="one")(change)
    app.map("s", publishes="b", name="two")(change)
    router = router_of(app, outputs={"a", "b"})
    router.route(SOURCE, columns(5, value=b"[]"))
    assert [events.values for events in router.outputs.values()] == [[b"[1]"], [b"[1]"]]


def test_events_are_placed_by_shard() -> None:
    """An update's inbox is that of the shard of (function, key)."""
    app = app_of()
    app.update("s", name="u")(nothing)
    router = router_of(app, shards=5)
    keys = ["", "a", "é", "😀", "\x00", "k" * 600]
    router.route(SOURCE, Columns([0] * 6, list(range(6)), keys, [b"null"] * 6))
    found = {(key, shard) for (_, shard), inbox in router.placed.items() for key in inbox.keys}
    assert found == {(key, shard_of("u", key, 5)) for key in keys}


def test_feedback_goes_to_the_outbox() -> None:
    """Along an edge that closes a cycle events are handed back to the emitter."""
    app = app_of()
    app.update("s", "again", publishes="again", name="u")(nothing)
    router, outbox = router_of(app, outputs={"again"}), FeedbackOutbox()
    router.route(0, columns(5, 6, stream=1), outbox)
    assert router.placed == {}
    assert {target: times(events) for target, events in outbox.deliveries.items()} == {0: [5, 6]}
    assert len(outbox) == 2
    assert times(router.outputs[1]) == [5, 6]


def test_several_streams_in_one_call() -> None:
    """Events that a function emits to several streams are sent stream by stream."""
    app = app_of()
    app.map("s", publishes=("a", "b"), name="m")(nothing)
    app.update("a", name="on_a")(nothing)
    app.update("b", name="on_b")(nothing)
    router = router_of(app)
    both = columns(1, stream=1)
    both.extend(columns(2, stream=2))
    router.route(0, both)
    assert {place: times(inbox) for place, inbox in router.placed.items()} == {
        (1, 0): [1],
        (2, 0): [2],
    }


def test_a_map_that_fails() -> None:
    """Its event is an unchanged dead letter, its emitted events are discarded, and the others
    pass."""
    app = app_of()

    def fails(event: ms.Event) -> Iterator[Any]:
        yield ms.emit()
        event.value["changed"] = True
        if event.ts == 2:
            raise ValueError("two")

    app.map("s", publishes="a", name="m")(fails)
    router = router_of(app, outputs={"a"})
    router.route(SOURCE, columns(1, 2, 3, value=b"{}"))
    assert times(router.outputs[1]) == [2, 4]
    (letter,) = router.dead
    assert (letter.function, letter.ts, letter.value, letter.batch) == ("m", 2, {}, 4)
    assert "ValueError: two" in letter.error
    assert router.counts[0].processed == 2


def test_a_map_that_fails_may_stop_the_application() -> None:
    """With on_error="fail" the error names the map and the key."""
    app = app_of("fail")

    def fails(event: ms.Event) -> None:
        raise ValueError("no")

    app.map("s", name="m")(fails)
    with pytest.raises(FunctionError, match=r"map 'm' .*key 'k': ValueError: no"):
        router_of(app).route(SOURCE, columns(1))


def test_delivering_to_one_function() -> None:
    """Feedback is delivered to its target alone: into its inbox, or through it if it is fused."""
    app = app_of()
    app.map("s", publishes="a", name="m")(passes)
    app.update("s", "a", name="u")(nothing)
    router = router_of(app)
    router.deliver(1, columns(5))
    router.deliver(0, columns(8))
    assert times(router.placed[1, 0]) == [5, 9]


def test_taking_the_inboxes_empties_the_router() -> None:
    """The same events are not returned again."""
    app = app_of()
    app.update("s", name="u")(nothing)
    router = router_of(app)
    router.route(SOURCE, columns(1))
    assert list(router.take()) == [(0, 0)]
    assert router.take() == {}
    router.route(SOURCE, Columns())
    assert router.take() == {}
