"""Feeding an update with timers on the path that keeps nothing, and on the careful one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.engine.cells.feeder import Feeder, Redo
from millstream.engine.cells.key_run import Due, KeyRun
from millstream.engine.cells.timed_feed import TimedFeed
from millstream.engine.columns import Columns
from millstream.engine.effects import Effects
from millstream.engine.plan import Plan
from millstream.model.slate import NoEntries
from millstream.stores.layout import Timers, pack_slate

CLOCK, SECOND = 1_000, 1_000_000


@dataclass(frozen=True)
class Turn:
    """What a function does when it is called for the n-th time for its slate."""

    timers: tuple[tuple[str, str, int], ...] = ()
    """Name, clock and distance of each timer that it sets."""
    emits: int = 0
    forgets: bool = False
    leaves: Any = 0
    """What it puts into the slate."""
    fails: bool = False


@dataclass
class Fields:
    n: int = 0
    left: Any = None
    seen: str = ""
    notes: list[int] = field(default_factory=list)


_set = st.tuples(st.sampled_from("ab"), st.sampled_from(["event", "wall"]), st.integers(1, 6))


@dataclass
class Scalars:
    n: int = 0
    left: int | float | str | None = None
    seen: str = ""


turns = st.builds(
    Turn,
    st.lists(_set, max_size=2).map(tuple),
    st.integers(0, 2),
    st.integers(0, 5).map(lambda n: n == 0),
    st.sampled_from([0, 1.5, "text", (1, 2), [1], {"a": 1}, 1 << 70, "x" * 300, None]),
    st.integers(0, 11).map(lambda n: n == 0),
)


def app_of(script: list[Turn], timer_script: list[Turn], ttl: int | None, slate: type) -> ms.App:
    """An update that follows a script, by the number of calls that its slate has seen."""
    app = ms.App("timed")
    app.source("s")
    app.output("out")

    def follow(turn: Turn, slate: Any, ts: int) -> Iterator[Any]:
        held = slate if isinstance(slate, dict) else vars(slate)
        held["n"] = held.get("n", 0) + 1
        held["seen"] = type(held.get("left")).__name__  # a tuple must be a list by now
        held["left"] = turn.leaves
        for name, clock, after in turn.timers:
            yield ms.timer(at=(ts if clock == "event" else CLOCK) + after, name=name, clock=clock)  # type: ignore[arg-type]
        for number in range(turn.emits):
            yield ms.emit(value=[number, held["seen"]])
        if turn.fails:
            raise ValueError("no")
        if turn.forgets:
            yield ms.forget()

    def count(slate: Any) -> int:
        return slate.get("n", 0) if isinstance(slate, dict) else slate.n

    def update(event: ms.Event, slate: Any) -> Iterator[Any]:
        yield from follow(script[count(slate) % len(script)], slate, event.ts)

    def on_timer(timer: ms.Timer, slate: Any) -> Iterator[Any]:
        if count(slate) < 30:  # else a timer that sets itself again would do so for a long time
            yield from follow(timer_script[count(slate) % len(timer_script)], slate, timer.now)

    update.__annotations__["slate"] = on_timer.__annotations__["slate"] = slate
    given = {} if ttl is None else {"ttl": f"{ttl}us"}
    app.update("s", name="u", publishes="out", slate=slate, on_timer=on_timer, **given)(update)  # type: ignore[call-overload]
    return app


class Feeding:
    """A feeder of an application's only update."""

    def __init__(self, app: ms.App) -> None:
        plan = Plan(app.workflow(), 1, frozenset())
        self.effects = Effects(plan, 0, CLOCK)
        update, streams = plan.workflow.updates[0], plan.streams
        self.feeder = Feeder(update, self.effects, streams, 7, "dead-letter", lambda _: NoEntries())

    @property
    def emitted(self) -> tuple[list[int], list[str], list[bytes]]:
        events = self.effects.emitted
        return events.ts, events.keys, events.values


stored_timers = st.dictionaries(
    st.sampled_from("abc"),
    st.tuples(st.sampled_from(["event", "wall"]), st.integers(0, 12)),
    max_size=2,
)


@settings(max_examples=300)
@given(
    st.lists(turns, min_size=1, max_size=4),
    st.lists(turns, min_size=1, max_size=3),
    st.lists(st.integers(0, 12), max_size=6).map(sorted),
    st.none() | st.tuples(st.integers(0, 4), stored_timers),
    st.sampled_from([None, 3]),
    st.sampled_from([dict, Fields, Scalars]),
    st.none() | st.integers(0, 20),
    st.none() | st.just(CLOCK + 4),
)
def test_both_paths_do_the_same(
    script: list[Turn],
    timer_script: list[Turn],
    times: list[int],
    stored: tuple[int, Timers] | None,
    ttl: int | None,
    slate: type,
    horizon: int | None,
    wall: int | None,
) -> None:
    """Either the path feeds a key as the careful one does, or it asks for that one and leaves
    nothing."""
    app = app_of(script, timer_script, ttl, slate)
    row = None
    if stored is not None:
        row = pack_slate(stored[0], b'{"n":2}', stored[1])
    due = Due(horizon, wall, horizon)
    count = len(times)
    events = Columns([0] * count, times, ["k"] * count, [b"%d" % ts for ts in times])
    quick, careful = Feeding(app), Feeding(app)
    run = KeyRun(careful.feeder, "k", row, careful=True)
    fed = run.through(events, times, range(count), due)
    timed = TimedFeed(quick.feeder, due)
    made = list(events.made([*times], ("s",)))
    try:
        new = timed.feed("k", row, made, events, 0)
    except Redo:
        assert quick.emitted == ([], [], [])
        failing = any(turn.fails or turn.leaves == 1 << 70 for turn in (*script, *timer_script))
        assert failing or careful.feeder.dead or slate is not dict
        return
    assert not careful.feeder.dead
    assert (new, timed.timers if new is not None else {}) == (fed.row, fed.timers)
    assert (timed.last, timed.reach) == (fed.last, fed.reach)
    assert quick.emitted == careful.emitted
