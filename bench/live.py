"""A live application over HTTP: slates read, events taken in, and how soon these can be read.

The application (`live_app`) is started with `millstream run`, as users do. One process feeds it
4,000 events a second. Meanwhile others, one after the other, read slates as fast as they get them
(closed loop), read them at a given rate whatever comes back (open loop), and follow single events
from their acknowledgement to their slates. Then, after the feed has ended, one sends as much as is
accepted. All of it is done in rounds; a figure is the median of its rounds.

All processes share the machine's cores, including those of the load itself. So the processor time
of the server is given beside each rate: `per_core` is the number of reads that one core would give
if it did nothing else. The cost of the feed is measured separately and subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from bench import live_rows, meter, reading, sending
from bench.apart import Apart, begun
from bench.bench import Bench
from bench.calibration import calibrate
from bench.figures import Outcome
from bench.served import Served, served

Found = dict[str, Any]
LONGEST = 600.0
"""Seconds after which a feeder ends in any case."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of the benchmark; times in seconds."""

    rounds: int = 3
    warm_up: float = 10.0
    feed_only: float = 5.0
    reads: float = 10.0
    """Seconds for each of the two loops."""
    samples: int = 200
    follow: float = 20.0
    posts: float = 10.0
    keys: int = 10_000
    rate: int = 4_000
    """Events a second that the feed sends, in one request at each beat."""
    every: float = 0.05
    read_connections: int = 8
    read_rate: int = 4_000
    """Reads a second of the open loop."""
    open_connections: int = 200
    post_connections: int = 4
    post_batch: int = 500
    poll: float = 0.002
    event_time: bool = True
    """True to follow single events in event-time order too, which needs another run."""


QUICK = Plan(rounds=1, warm_up=2, feed_only=2, reads=3, samples=30, follow=3, posts=2)


def run(bench: Bench) -> Outcome:
    return run_plan(bench, QUICK if bench.quick else Plan())


def run_plan(bench: Bench, plan: Plan) -> Outcome:
    speeds = [calibrate()]
    with _application(bench, plan, "arrival") as app:
        rounds = []
        for number in range(plan.rounds):
            speeds.append(calibrate())
            bench.say(f"  round {number + 1} of {plan.rounds} ...")
            rounds.append(_round(bench, plan, app, number))
    if plan.event_time:
        with _application(bench, plan, "event_time") as app:
            rounds += [_followed(bench, plan, app, number) for number in range(plan.rounds)]
    rows = live_rows.rows(rounds, plan.rate)
    figures = {**live_rows.figures(rows), "calibration": median(speeds)}
    settings = {**asdict(plan), "shards": 16, "calibrations": [round(s, 2) for s in speeds]}
    return Outcome("live", rows, figures, live_rows.bars(figures), settings, live_rows.NOTES)


def _round(bench: Bench, plan: Plan, app: Served, number: int) -> dict[str, Found]:
    """Measures everything once; returns the results by activity."""
    found: dict[str, Found] = {}
    reads = {"seconds": plan.reads, "keys": plan.keys}
    with _fed(bench, plan, app, found) as do:
        do("feed alone", meter.idle, seconds=plan.feed_only)
        do("reads, closed", reading.read_closed, connections=plan.read_connections, **reads)
        do(
            "reads, open",
            reading.read_open,
            connections=plan.open_connections,
            rate=plan.read_rate,
            **reads,
        )
        do("end to end", reading.follow, **_samples(plan, number))
    meter.caught_up(app.url)
    found["posts"] = _done(
        bench,
        "posts",
        sending.post_closed,
        url=app.url,
        parts=app.parts,
        connections=plan.post_connections,
        batch=plan.post_batch,
        seconds=plan.posts,
        keys=plan.keys,
    )
    return found


def _followed(bench: Bench, plan: Plan, app: Served, number: int) -> dict[str, Found]:
    """Measures only how soon events can be read."""
    found: dict[str, Found] = {}
    with _fed(bench, plan, app, {}) as do:
        found["end to end, event-time"] = do("end to end", reading.follow, **_samples(plan, number))
    return found


def _samples(plan: Plan, number: int) -> dict[str, Any]:
    prefix = f"fresh-{number}-"
    return {"samples": plan.samples, "seconds": plan.follow, "poll": plan.poll, "prefix": prefix}


@contextmanager
def _application(bench: Bench, plan: Plan, order: str) -> Iterator[Served]:
    """Starts the application in one order; it is warm and has a slate for every key."""
    bench.say(f"  live_app, {order}: starting ...")
    store, log = bench.fresh("served/store"), bench.work / "served" / "log"
    with served("run", f"bench/live_app.py:{order}", store=store, log=log) as app:
        with begun(sending.fill, url=app.url, keys=plan.keys, batch=plan.post_batch) as filling:
            filling.wait()
        with _fed(bench, plan, app, {}) as do:
            warming = {"connections": 4, "rate": 500, "seconds": plan.warm_up, "keys": plan.keys}
            do("warming up", reading.read_open, **warming)
        yield app


@contextmanager
def _fed(
    bench: Bench, plan: Plan, app: Served, found: dict[str, Found]
) -> Iterator[Callable[..., Found]]:
    """Feeds events meanwhile; yields a function that runs an activity and keeps its result."""
    stop = bench.work / "served" / "stop"
    stop.unlink(missing_ok=True)
    given = {"url": app.url, "rate": plan.rate, "every": plan.every, "keys": plan.keys}
    with begun(sending.feed, **given, seconds=LONGEST, stop=str(stop)) as feeding:

        def do(what: str, function: Callable[..., Found], **arguments: Any) -> Found:
            parts = {**app.parts, "feeder": feeding.pid}
            found[what] = _done(bench, what, function, url=app.url, parts=parts, **arguments)
            _still(feeding)
            return found[what]

        yield do
        stop.touch()
        found["feed"] = feeding.wait()


def _done(bench: Bench, what: str, function: Callable[..., Found], **arguments: Any) -> Found:
    with begun(function, **arguments) as apart:
        found: Found = apart.wait()
    bench.say(f"    {what}: {live_rows.told(found)}")
    return found


def _still(feeding: Apart) -> None:
    """Check that the feeder still runs."""
    if not feeding.running():
        feeding.wait()
        raise AssertionError("the feeder ended before it was told to")
