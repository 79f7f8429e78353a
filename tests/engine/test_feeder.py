"""Feeding one key's events and timers to an update."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.codec import canonical
from millstream.engine.cells.content_order import content_order
from millstream.engine.cells.feeder import Feeder, Redo
from millstream.engine.cells.key_run import Due
from millstream.engine.cells.readback import SMALL
from millstream.engine.cells.timed_feed import TimedFeed
from millstream.engine.columns import Columns
from millstream.engine.effects import Effects
from millstream.engine.plan import Plan
from millstream.errors import FunctionError
from millstream.model.slate import NoEntries
from millstream.stores.layout import unpack_slate

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Fed:
    """An update over one source, fed with events of one key at the times given."""

    def __init__(self, update: Callable[..., Any], **given: Any) -> None:
        app = ms.App("fed", on_error=given.pop("on_error", "dead-letter"))
        app.source("s")
        app.update("s", name="u", publishes="out", **given)(update)
        self.plan = Plan(app.workflow(), 1, frozenset())
        self.effects = Effects(self.plan, 0)
        self.feeder = Feeder(
            self.plan.workflow.updates[0],
            self.effects,
            self.plan.streams,
            7,
            self.plan.workflow.on_error,
            lambda key: NoEntries(),
        )

    def __call__(self, ts: list[int], row: bytes | None = None, horizon: int | None = None) -> Any:
        count = len(ts)
        events = Columns([0] * count, ts, ["k"] * count, [b"%d" % one for one in ts])
        order, again = list(range(count)), self.feeder.plain or self.feeder.timed
        given = [ms.Event("s", one, "k", one) for one in ts]
        due = Due(horizon, 0, horizon)
        try:
            if self.feeder.plain:
                return self.feeder.feed_plain("k", row, given, events, 0)
            if self.feeder.timed:
                return TimedFeed(self.feeder, due).feed("k", row, given, events, 0)
        except Redo:
            pass
        return self.feeder.feed("k", row, events, list(ts), order, due, again=again).row


def test_many_failures_cost_as_many_calls() -> None:
    """With n failing events the number of calls grows as n, not as its square."""

    def cost(count: int, padding: str) -> int:
        calls = 0

        def update(event: ms.Event, slate: dict[str, Any]) -> None:
            nonlocal calls
            calls += 1
            slate["padding"] = padding
            slate["n"] = slate.get("n", 0) + 1
            if event.ts % 2:
                raise ValueError("odd")

        fed = Fed(update)
        row = unpack_slate(fed(list(range(count))))
        assert b'"n":%d' % (count // 2) in row.data
        assert len(fed.feeder.dead) == count // 2
        return calls

    for padding in ("", "x" * SMALL):
        assert cost(1_000, padding) <= 2 * 1_000 + 10


def test_many_failures_with_timers_cost_as_many_calls() -> None:
    """The same with a timer function, where a large slate is fed twice at most."""

    def cost(count: int, padding: str) -> int:
        calls = 0

        def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
            nonlocal calls
            calls += 1
            slate["padding"] = padding
            yield ms.timer(at=event.ts + 1)
            if event.ts % 2:
                raise ValueError("odd")

        fed = Fed(update, on_timer=lambda timer, slate: None)
        fed(list(range(count)), horizon=count)
        assert len(fed.feeder.dead) == count // 2
        return calls

    for padding in ("", "x" * SMALL):
        assert cost(1_000, padding) <= 2 * 1_000 + 10


def test_a_failing_event_leaves_nothing() -> None:
    """Its effects on the slate, the streams and the timers are undone. The letter says why."""

    def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        slate[f"at{event.ts}"] = 1
        yield ms.emit()
        yield ms.timer(at=event.ts + 5, name=f"t{event.ts}")
        if event.ts == 2:
            raise ValueError("two")

    fed = Fed(update, on_timer=lambda timer, slate: None)
    row = unpack_slate(fed([1, 2, 3]))
    assert row.data == b'{"at1":1,"at3":1}'
    assert set(row.timers) == {"t1", "t3"}
    assert fed.effects.emitted.ts == [2, 4]
    (letter,) = fed.feeder.dead
    assert (letter.function, letter.stream, letter.ts, letter.key, letter.value, letter.batch) == (
        "u",
        "s",
        2,
        "k",
        2,
        7,
    )
    assert letter.error.startswith("ValueError: two (")
    assert "test_feeder.py" in letter.error


def test_a_key_whose_events_all_fail_has_no_slate() -> None:
    """If nothing succeeded there is nothing to store."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["n"] = 1
        raise ValueError("no")

    assert Fed(update)([1, 2]) is None


def test_fail_stops_at_the_first_failure() -> None:
    """With on_error="fail" the error names the update and the key."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        raise ValueError("no")

    with pytest.raises(FunctionError, match=r"update 'u' .*key 'k': ValueError: no"):
        Fed(update, on_error="fail")([1])


def test_timers_take_their_place_among_the_events() -> None:
    """A timer fires after all events up to its time and before the later ones."""
    seen: list[tuple[str, int]] = []

    def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        seen.append(("event", event.ts))
        if event.ts == 1:
            yield ms.timer(at=2, name="two")
            yield ms.timer(at=1, name="one")

    def on_timer(timer: ms.Timer, slate: dict[str, Any]) -> None:
        seen.append((timer.name, timer.ts))

    Fed(update, on_timer=on_timer)([1, 2, 3], horizon=3)
    assert seen == [("event", 1), ("one", 1), ("event", 2), ("two", 2), ("event", 3)]


def test_timers_past_the_horizon_stay_set() -> None:
    """A timer whose time has not come is in the slate's row."""

    def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        yield ms.timer(at=5)

    row = unpack_slate(Fed(update, on_timer=lambda timer, slate: None)([1], horizon=4))
    assert row.timers == {"": ("event", 5)}


@pytest.mark.parametrize("padding", ["", "x" * SMALL])
def test_a_slate_is_read_back_between_events(padding: str) -> None:
    """A tuple is a list for the next event, in a small slate and, if it stays, in a large one."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["was"] = [*slate.get("was", []), type(slate.get("pair")).__name__]
        slate["pair"] = (1, 2)
        slate["padding"] = padding

    row = unpack_slate(Fed(update)([1, 2, 3]))
    assert b'["NoneType","list","list"]' in row.data


content = st.tuples(
    st.integers(0, 1),
    st.integers(0, 3),
    st.sampled_from([b'{"b":1,"a":2}', b'{"a":2,"b":1}', b"[1, 2]", b"[1,1]", b"\x00x", b"null"]),
)


@given(st.lists(content, min_size=1, max_size=12))
def test_content_order(given: list[tuple[int, int, bytes]]) -> None:
    """Time, then the stream's name, then the canonical bytes of the value, whatever came first."""
    streams = ("zebra", "ant")
    events = Columns(
        [s for s, _, _ in given],
        [ts for _, ts, _ in given],
        ["k"] * len(given),
        [value for _, _, value in given],
    )
    order = content_order(events, streams).tolist()
    assert sorted(order) == list(range(len(given)))
    contents = [(given[i][1], streams[given[i][0]], canonical(given[i][2])) for i in order]
    assert contents == sorted(contents)
