"""The latency of events, including their wait for the horizon."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.latency import MOST_ARRIVALS, arrived_in, measure, thinned
from millstream.engine.progress import Report, SourceReport
from millstream.stores.progress import Arrival, Latency, Progress


def brought(highest: int, oldest: int | None = None) -> Report:
    """The report of a task whose source had events up to `highest`."""
    return Report(sources={"in": SourceReport(highest=highest)}, oldest=oldest)


def after(before: Progress, *, written: int, horizon: int | None = None) -> Progress:
    return Progress(batch=before.batch + 1, written=written, horizon=horizon)


def test_in_arrival_order_a_batch_feeds_what_it_brought() -> None:
    """The latency is from its oldest record to its commit; a batch without records keeps the last
    one."""
    first = after(Progress(), written=1_500)
    measure(Progress(), first, [Report()], oldest=1_000, clock=1_100, waits=False)
    assert first.measured == Latency(0, 500, 0)
    second = after(first, written=9_000)
    measure(first, second, [Report()], oldest=None, clock=8_000, waits=False)
    assert second.measured == first.measured
    assert second.arrivals == []


def test_in_event_time_order_the_waiting_counts() -> None:
    """Events that came with batch 0 and are fed with batch 2 have waited in between."""
    first = after(Progress(), written=1_500, horizon=10)
    measure(
        Progress(),
        first,
        [brought(50)],
        oldest=1_000,
        clock=1_100,
        waits=True,
    )
    assert first.measured is None  # nothing was fed
    second = after(first, written=3_000, horizon=20)
    measure(
        first,
        second,
        [brought(60)],
        oldest=2_000,
        clock=2_500,
        waits=True,
    )
    third = after(second, written=9_000, horizon=55)
    measure(second, third, [Report(oldest=0)], oldest=None, clock=8_500, waits=True)
    assert third.measured == Latency(2, 8_000, 7_000)
    assert [one.batch for one in third.arrivals] == [1]  # all of batch 0 have been fed


def test_what_is_fed_at_once_has_not_waited() -> None:
    first = after(Progress(), written=1_500, horizon=50)
    measure(
        Progress(),
        first,
        [brought(50, oldest=0)],
        oldest=1_000,
        clock=1_100,
        waits=True,
    )
    assert first.measured == Latency(0, 500, 0)
    assert first.arrivals == []


@given(st.integers(1, 300))
def test_few_batches_are_remembered_and_no_wait_is_shown_too_short(count: int) -> None:
    """However many batches wait, few are kept. A forgotten batch counts as an earlier one, never as
    a later one."""
    arrivals: list[Arrival] = []
    for batch in range(count):
        arrivals = thinned([*arrivals, Arrival(batch, batch, batch, 10**9)])
    assert len(arrivals) <= MOST_ARRIVALS
    for batch in range(count):
        found = arrived_in(arrivals, batch)
        assert found is not None
        assert found.batch <= batch
