"""Samples of the progress record: rates, latencies and history over them."""

import asyncio
import random
from itertools import pairwise
from pathlib import Path

import pytest
from progress_counts import set_fields

from millstream.errors import StoreError
from millstream.server.status.sampler import Sampler
from millstream.server.status.samples import SECOND, Samples, percentile
from millstream.stores.progress import Latency, Progress, SourceProgress

START = 1_700_000_000 * SECOND


def progress(batch: int, at: float, events: int, seconds: float = 0.0, **more) -> Progress:
    """The record of a batch that was committed so many seconds after the start."""
    written = START + round(at * SECOND)
    if (latency := more.pop("latency", None)) is not None:
        more["measured"] = Latency(batch, latency, 0)
    record = Progress(batch=batch, written=written, events=events)
    return set_fields(record, seconds=seconds, **more)


def sampled(*records: Progress) -> Samples:
    samples = Samples()
    for record in records:
        samples.add(record, record.written)
    return samples


def whole(samples: Samples, at: int) -> list[int]:
    return [latency.whole for latency in samples.latencies(START + at * SECOND, 60)]


def rate(samples: Samples, at: float, seconds: int = 10) -> float:
    window = samples.window(START + round(at * SECOND), seconds)
    assert window is not None
    return window.rate(lambda one: one.events)


def steady(until: float, every: float, busy: float, per_second: int = 1000) -> Samples:
    """Batches at regular times that bring as many events as came since the one before."""
    count = round(until / every)
    return sampled(
        *(
            progress(n, n * every, round(n * every * per_second), n * busy, latency=n)
            for n in range(count + 1)
        )
    )


@pytest.mark.parametrize(("every", "busy"), [(0.2, 0.2), (1.0, 0.2), (1.0, 1.0), (4.0, 4.0)])
@pytest.mark.parametrize("after", [0.0, 0.01, 0.15])
def test_a_steady_stream_has_its_rate(every: float, busy: float, after: float) -> None:
    """The rate is that of the events for any length of batches and any time of the request."""
    samples = steady(40, every, busy)
    assert rate(samples, 40 + after) == pytest.approx(1000, rel=0.025)


@pytest.mark.parametrize("after", [0.0, 3.0, 11.0, 25.0])
def test_batches_longer_than_the_window_have_a_rate_too(after: float) -> None:
    """While the next batch may be running, what the last one did says how fast it goes."""
    assert rate(steady(120, 30, 30), 120 + after) == pytest.approx(1000)


def test_a_rate_falls_to_nothing_when_no_more_comes() -> None:
    """Ten seconds after the last batch nothing happens any more."""
    samples = steady(40, 1, 0.2)
    rates = [rate(samples, 40 + after) for after in (0, 2, 4, 6, 8, 10, 11)]
    assert all(after < before for before, after in pairwise(rates))
    assert rates[-1] == 0


def test_a_batch_after_a_long_silence_counts_whole() -> None:
    """Events of a batch are spread over the time it ran, not over the silence before."""
    samples = sampled(progress(0, 0, 0), progress(1, 3600, 500, 0.25))
    assert rate(samples, 3600) == pytest.approx(50, rel=0.03)


def test_a_new_server_rates_from_what_it_has_seen() -> None:
    """The counts of before it came are no events of now."""
    assert Samples().window(START, 10) is None
    samples = sampled(progress(70, 0, 5_000_000, 900))
    assert rate(samples, 0) == 0
    assert rate(samples, 5) == 0
    samples.add(progress(71, 2, 5_000_100, 900.1), START + 2 * SECOND)
    assert rate(samples, 2) == pytest.approx(50)


def test_a_window_may_be_longer_than_what_is_known() -> None:
    """Then it is the time since the first sample, and never less than a second."""
    samples = sampled(progress(0, 0, 0), progress(1, 0.1, 100, 0.1))
    assert rate(samples, 0.1, 60) == pytest.approx(100)
    samples.add(progress(2, 20, 2000, 0.2), START + 20 * SECOND)
    assert rate(samples, 20, 60) == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize(
    "after",
    [
        {"batch": 3},
        {"events": 10},
        {"seconds": 0.5},
        {"processed": {"count": 5}},
        {"emitted": {"out": 1}},
        {"sources": {"in": SourceProgress(events=1)}},
        {"written": START + 5 * SECOND},
    ],
    ids=lambda change: next(iter(change)),
)
def test_counts_that_go_down_start_over(after: dict) -> None:
    """A store that was made again (or a clock set back) leaves no rate, and none below zero."""
    common = {
        "processed": {"count": 100},
        "emitted": {"out": 100},
        "sources": {"in": SourceProgress(events=100)},
    }
    samples = sampled(
        *(progress(n, n, n * 100, n, latency=5, **common) for n in range(10)),
    )
    fields = {"batch": 10, "at": 10, "events": 1000, "seconds": 10.0, "latency": 5, **common}
    written = after.pop("written", None)
    record = progress(**{**fields, **after})
    record.written = written or record.written
    samples.add(record, START + 10 * SECOND)
    assert rate(samples, 10) == 0
    assert samples.latencies(START + 10 * SECOND, 60) == []
    assert not any(samples.history(START + 10 * SECOND, 10).events)
    later = progress(20, 12, 1100, 11.0, latency=7, **common)
    samples.add(later, later.written)
    assert rate(samples, 12) >= 0
    assert whole(samples, 12) == [7]


def test_the_same_record_again_changes_nothing() -> None:
    """Looking ten times a second at an idle application adds no samples."""
    record = progress(4, 0, 100)
    samples = sampled(record)
    for tick in range(100):
        samples.add(record, START + tick * SECOND // 10)
    assert samples.last is not None
    assert samples.last.at == START
    assert rate(samples, 10) == 0


def test_functions_that_come_and_go_have_no_wrong_rates() -> None:
    """A function that was added counts from nothing; one that was removed counts nothing."""
    samples = sampled(
        progress(0, 0, 0, 0, processed={"old": 50}),
        progress(1, 5, 10, 1, processed={"new": 20}),
    )
    window = samples.window(START + 5 * SECOND, 10)
    assert window is not None
    assert window.rate(lambda one: one.counts("new").processed) == pytest.approx(4)
    assert window.rate(lambda one: one.counts("old").processed) == 0


def test_latencies_are_of_the_last_minute_and_of_batches_with_records() -> None:
    """A batch that brought nothing has no latency of its own."""
    samples = sampled(
        progress(0, 0, 0),
        progress(1, 1, 10, 0.1, latency=1000),
        progress(2, 30, 20, 0.2, latency=2000),
        progress(3, 31, 20, 0.3, measured=Latency(2, 2000, 0)),
        progress(4, 32, 30, 0.4, latency=3000),
    )
    assert whole(samples, 60) == [1000, 2000, 3000]
    assert whole(samples, 61) == [2000, 3000]
    assert samples.latencies(START + 100 * SECOND, 60) == []


def test_percentiles_are_measured_values() -> None:
    """Nearest rank: the least value that at least so many percent are not above."""
    values = [float(value) for value in range(1, 201)]
    random.Random(3).shuffle(values)
    assert percentile(values, 50) == 100
    assert percentile(values, 99) == 198
    assert percentile(values, 100) == 200
    assert percentile([7.0], 50) == percentile([7.0], 99) == 7
    assert percentile([], 50) is None


def test_history_has_a_point_a_second() -> None:
    """Events are spread over the time of their batch; latency is the worst of the second."""
    samples = sampled(
        progress(0, 0, 0),
        progress(1, 1.5, 100, 1.0, latency=250_000),
        progress(2, 2.2, 200, 1.1, latency=100_000),
        progress(3, 2.9, 300, 1.2, latency=400_000),
        progress(4, 6.5, 300, 1.3),
    )
    history = samples.history(START + 9 * SECOND + 500_000, 12)
    first = START // SECOND
    assert history.times == list(range(first - 3, first + 9))
    assert history.events == [None] * 3 + [50, 50, 200] + [0] * 6
    assert history.batches == [None] * 3 + [0, 1, 2, 0, 0, 0, 1, 0, 0]
    assert history.latency == [None] * 4 + [0.25, 0.4] + [None] * 6
    assert history.busy == [None] * 3 + [0.5, 0.5, 0.2, 0, 0, 0, 0.1, 0, 0]


def test_history_in_steps_with_percentiles() -> None:
    """A step has the rate of its seconds; a percentile is over ten seconds at least."""
    samples = sampled(
        progress(0, 0, 0),
        *(progress(n, n, 100 * n, n, latency=n * 10_000) for n in range(1, 41)),
    )
    history = samples.history(START + 40 * SECOND, 40, step=20)
    assert history.events == [100, 100]
    assert history.p50 == [0.1, 0.29]
    assert history.p99 == [0.19, 0.39]
    by_second = samples.history(START + 40 * SECOND, 1)
    assert (by_second.p50, by_second.p99) == ([0.34], [0.39])


def test_a_server_that_starts_again_knows_the_last_hour(tmp_path: Path) -> None:
    """Older batches, and those while no server ran, are not known."""
    now = START
    record = progress(0, 0, 0)
    file = tmp_path / "history"

    async def lived(records: list[Progress]) -> None:
        nonlocal now, record
        sampler = Sampler(lambda: record, lambda: now, file)
        await sampler.start()
        for record in records:
            now = record.written
            sampler.take()
        await sampler.stop()

    asyncio.run(lived([progress(0, 0, 0), progress(1, 1.5, 100, 1.0, latency=250_000)]))
    now = START + 600 * SECOND
    known = Sampler(lambda: record, lambda: now, file).samples.history(now, 600)
    assert known.events[:3] == [50, 50, None]
    assert known.latency[1] == 0.25
    now = START + 3_700 * SECOND
    assert not any(Sampler(lambda: record, lambda: now, file).samples.history(now, 3600).events)


def test_history_says_nothing_of_what_a_running_batch_may_bring() -> None:
    """Until the next batch can be there, its seconds are not known."""
    samples = sampled(progress(0, 0, 0), progress(1, 5, 500, 5.0))
    assert samples.history(START + 7 * SECOND, 4).events == [100, 100, None, None]
    assert samples.history(START + 12 * SECOND, 8).events[:3] == [100, 0, 0]


def test_history_of_nothing_is_unknown() -> None:
    """Before the first sample there is nothing but times."""
    history = Samples().history(START, 600)
    assert len(history.times) == 600
    assert history.events == history.latency == history.batches == [None] * 600


def test_history_adds_up_to_all_events() -> None:
    """Over any batches, the seconds together hold each event once."""
    chance = random.Random(11)
    at, busy, events, records = 0.0, 0.0, 0, [progress(0, 0, 0)]
    for batch in range(1, 300):
        ran = chance.uniform(0.05, 3)
        at += ran + chance.choice([0, 0, 0.3])
        busy += ran
        events += chance.randrange(1000)
        records.append(progress(batch, at, events, busy))
    samples = sampled(*records)
    history = samples.history(records[-1].written + 10 * SECOND, 600)
    known = [value for value in history.events if value is not None]
    assert sum(known) == pytest.approx(events, abs=1)
    assert sum(value for value in history.batches if value is not None) == 299


def test_what_is_kept_is_bounded() -> None:
    """An hour of batches leaves a minute of samples and some minutes of seconds."""
    samples = Samples()
    for n in range(36_000):
        record = progress(n, n / 10, n, n / 10)
        samples.add(record, record.written)
    assert len(samples._recent) <= 602
    assert len(samples._seconds) <= 7200
    assert rate(samples, 3600, 60) == pytest.approx(10, rel=0.01)


def test_the_sampler_looks_until_it_is_stopped_and_bears_a_missing_store() -> None:
    """A store that cannot be read for a while only leaves a gap."""
    looks = iter([progress(0, 0, 0), StoreError("gone"), OSError("gone"), progress(1, 5, 50)])
    clock = iter(range(START, START + 100 * SECOND, 2 * SECOND))

    def read() -> Progress:
        look = next(looks, None)
        if isinstance(look, Exception):
            raise look
        return look or progress(1, 5, 50)

    sampler = Sampler(read, lambda: next(clock) + 5 * SECOND)

    async def watch() -> None:
        await sampler.start()
        async with asyncio.timeout(10):
            while sampler.samples.last is None or sampler.samples.last.progress.batch < 1:
                await asyncio.sleep(0.01)
        await sampler.stop()
        await sampler.stop()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(watch())
