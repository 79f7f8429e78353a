"""The intake of a batch, and the share of a key: decisions without a clock."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.driver.batch_plan.pace import (
    FIRST_BYTES,
    LEAST_BYTES,
    LEAST_SHARE,
    divided,
    first_intake,
    next_intake,
    next_pace,
    rest_after,
    shares_of,
    slowed,
)
from millstream.model.algebra import Algebra
from millstream.model.workflow import Order

MIB = 1 << 20
MOST = 32 * MIB


def simulated(loads: Iterable[float], cost: float, overhead: float = 0.2) -> list[float]:
    """The times of the batches of an application at loads in bytes a second, one for each batch,
    when a byte costs `cost` seconds and a batch `overhead` besides."""
    intake, backlog, times = None, 0.0, []
    seconds = overhead
    for load in loads:
        backlog += load * seconds
        taken = int(min(backlog, first_intake(intake, MOST, 2.0)))
        backlog -= taken
        seconds = overhead + taken * cost
        times.append(seconds)
        intake = next_intake(intake, taken, seconds, target=2.0, most=MOST, warm=True)
    return times


@pytest.mark.parametrize("cost", [1e-7, 2e-7, 1e-6, 2e-5])
def test_batches_stay_near_the_target_when_the_load_rises_tenfold(cost: float) -> None:
    """When the load rises tenfold from half of capacity, batches return to about the target time
    within a few batches, and shorten again when it falls."""
    bears = 1.8 / 2.0 / cost
    calm, storm = 0.5 * bears, 5 * bears
    times = simulated([calm] * 20 + [storm] * 40 + [0.1 * bears] * 200, cost)
    assert max(times[:20]) < 2.2
    assert max(times[30:60]) < 2.4
    assert min(times[30:60]) > 1.2  # and as large as they may be
    assert times[-1] < 0.6


@given(
    st.one_of(st.none(), st.integers(1, MOST)),
    st.integers(0, MOST),
    st.floats(0.001, 1_000),
    st.booleans(),
)
def test_the_intake_stays_within_bounds(
    intake: int | None, taken: int, seconds: float, warm: bool
) -> None:
    """For any measurements the intake is never over the setting, never too small to progress, and
    never more than four times the last."""
    after = next_intake(intake, taken, seconds, target=2.0, most=MOST, warm=warm)
    if not taken:
        assert after == intake
        return
    assert after is not None
    assert min(LEAST_BYTES, first_intake(intake, MOST, 2.0)) <= after <= MOST
    assert after <= 4 * first_intake(intake, MOST, 2.0) or after == LEAST_BYTES


def test_a_small_batch_keeps_the_intake() -> None:
    """An application that keeps up keeps its intake, so that a burst finds it as it was."""
    assert next_intake(8 * MIB, MIB, 0.3, target=2.0, most=MOST, warm=True) == 8 * MIB


@pytest.mark.parametrize("block", [1_000, 9_000, 10_000, 13_000, 3_000_000])
def test_the_intake_recovers_whatever_the_blocks(block: int) -> None:
    """A source is taken in whole blocks, so no batch may be full. After one batch that took far too
    long, an application with a backlog still comes back to a large intake within ten batches."""
    intake = next_intake(8 * MIB, 2_000, 60.0, target=2.0, most=MOST, warm=True)
    assert intake == LEAST_BYTES
    for _ in range(10):
        taken = max(1, intake // block) * block
        intake = next_intake(intake, taken, 0.2, target=2.0, most=MOST, warm=True)
        assert intake is not None
    assert intake >= 2 * block
    assert intake >= MIB


@given(st.integers(0, MOST), st.dictionaries(st.text(max_size=3), st.integers(0, MOST)))
def test_the_intake_is_divided_among_who_has_records(intake: int, waiting: dict[str, int]) -> None:
    """No source gets more than it has waiting, and all together get no more than the intake. All of
    it is used while records wait, except for a remainder that cannot be divided. A source that
    wants less than an even share gets all that it wants."""
    parts = divided(intake, waiting)
    assert parts.keys() == waiting.keys()
    assert all(0 <= parts[name] <= waiting[name] for name in parts)
    assert sum(parts.values()) <= intake
    assert sum(parts.values()) == min(intake, sum(waiting.values()))
    for name, part in parts.items():
        assert part >= min(waiting[name], intake // len(waiting))


@given(st.integers(0, 10**9), st.dictionaries(st.text("abc", max_size=2), st.integers(0, 10**9)))
def test_sources_that_wait_for_each_other_go_in_step(intake: int, waiting: dict[str, int]) -> None:
    """No more than the intake, and of each source the same part, to a byte."""
    parts = divided(intake, waiting, in_step=True)
    total = sum(waiting.values())
    assert sum(parts.values()) <= max(intake, 0)
    for name, size in waiting.items():
        assert parts[name] == (size if total <= intake else intake * size // total)


def test_the_first_batch_is_small_and_does_not_mislead() -> None:
    """Nothing is known of the cost yet; and Spark's start is not the functions' fault."""
    assert first_intake(None, MOST, 2.0) == 2 * FIRST_BYTES
    assert first_intake(None, MOST, 600.0) == MOST
    assert (
        next_intake(None, 2 * FIRST_BYTES, 9.0, target=2.0, most=MOST, warm=False)
        == 2 * FIRST_BYTES
    )


def test_pressure_slows_the_sources() -> None:
    """In proportion, down to nothing."""
    assert [slowed(1_000, p) for p in (0.0, 0.25, 1.0, 7.0)] == [1_000, 750, 0, 0]


def test_the_pace_follows_the_last_batches() -> None:
    """A batch with hardly any input says nothing about what input costs."""
    assert next_pace(None, 1_000_000, 100_000) == 10.0
    assert next_pace(10.0, 2_000_000, 100_000) == 15.0
    assert next_pace(10.0, 2_000_000, 100) == 10.0


def _app(order: Order) -> ms.App:
    app = ms.App("shares", order=order)
    app.source("in")

    @app.update("in")
    def plain(event: ms.Event, slate: dict[str, int]) -> None: ...

    @app.update("in", limit=5)
    def limited(event: ms.Event, slate: dict[str, int]) -> None: ...

    @app.update("in", immediate=True)
    def immediate(event: ms.Event, slate: dict[str, int]) -> None: ...

    one = Algebra("one", lambda: 0, lambda event: 1, lambda a, b: a + b)
    app.aggregate("in", algebra=one, name="counted")
    return app


def test_shares_are_for_updates_without_another_way() -> None:
    """A key has a quarter of the target at what an event costs; an update with a limit, with an
    algebra, that is immediate, of unknown cost, or in event-time order has no share."""
    costs = {"plain": 100.0, "limited": 100.0, "immediate": 100.0, "counted": 100.0}
    assert shares_of(_app("arrival").checked(), costs, 2.0) == {"plain": 5_000}
    assert shares_of(_app("arrival").checked(), {"plain": 1e9}, 2.0) == {"plain": LEAST_SHARE}
    assert shares_of(_app("arrival").checked(), {}, 2.0) == {}
    assert shares_of(_app("event-time").checked(), costs, 2.0) == {}


def test_small_batches_are_followed_by_a_rest() -> None:
    """The pause is half of the batch's time, at most 25 ms. After a long batch there is none."""
    assert rest_after(0.02) == 0.01
    assert rest_after(0.09) == 0.025
    assert rest_after(0.2) == 0
