"""Measured runs of Millstream. Called in processes of their own, see `apart`."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any, cast

import millstream as ms
from bench.data import length_of
from millstream.driver.report import BatchSummary
from millstream.model.algebra import Algebra
from millstream.model.workflow import Order
from millstream.settings import Settings
from millstream.spark.runner import run


def counter(order: str) -> ms.App:
    """A count for each key, in a dict."""
    app = ms.App("bench", order=cast(Order, order))
    app.source("events", key="key", ts="ts", unit="us")

    @app.update("events")
    def count(event: ms.Event, slate: dict[str, int]) -> None:
        slate["count"] = slate.get("count", 0) + 1

    return app


def chain(order: str) -> ms.App:
    """Two updates: the first counts and passes on, the second keeps the latest."""
    app = ms.App("bench", order=cast(Order, order))
    app.source("events", key="key", ts="ts", unit="us")

    @app.update("events", publishes="counts")
    def first(event: ms.Event, slate: dict[str, int]) -> Any:
        slate["count"] = slate.get("count", 0) + 1
        yield ms.emit(value={"count": slate["count"], "created": event.ts})

    @app.update("counts")
    def second(event: ms.Event, slate: dict[str, int]) -> None:
        slate.update(event.value)

    return app


def poisoned(order: str) -> ms.App:
    """The counter, which cannot bear some of its events."""
    app = ms.App("bench", order=cast(Order, order))
    app.source("events", key="key", ts="ts", unit="us")

    @app.update("events")
    def count(event: ms.Event, slate: dict[str, int]) -> None:
        slate["count"] = slate.get("count", 0) + 1
        if event.value["n"] < 0:
            raise ValueError("poison")

    return app


SLOW = 250e-6
"""Seconds that an event costs the slow update."""


def slow(order: str, limit: int | None = None) -> ms.App:
    """An update whose every event takes a while of computing."""
    app = ms.App("bench", order=cast(Order, order))
    app.source("events", key="key", ts="ts", unit="us")

    @app.update("events", limit=limit)
    def second(event: ms.Event, slate: dict[str, int]) -> None:
        until = time.perf_counter() + SLOW
        while time.perf_counter() < until:
            pass
        slate["count"] = slate.get("count", 0) + 1

    return app


def slow_unshared(order: str) -> ms.App:
    """The same without a share for each key: a limit, never reached, takes its place."""
    return slow(order, limit=10**9)


def aggregate(order: str, algebra: Algebra) -> ms.App:
    """An algebra's slate for each key."""
    app = ms.App("bench", order=cast(Order, order))
    app.source("events", key="key", ts="ts", unit="us")
    app.aggregate("events", algebra=algebra, name="hits")
    return app


def count(order: str) -> ms.App:
    """A count for each key, by its algebra."""
    return aggregate(order, ms.algebra.count())


def total(order: str) -> ms.App:
    """A sum for each key, by its algebra."""
    return aggregate(order, ms.algebra.sum("n"))


def hot_topics(order: str) -> ms.App:
    """The example, in either order."""
    from examples import hot_topics as example

    example.app.order = cast(Order, order)
    return example.app


APPS = {
    "counter": counter,
    "chain": chain,
    "count": count,
    "sum": total,
    "hot_topics": hot_topics,
    "poisoned": poisoned,
    "slow": slow,
    "slow_unshared": slow_unshared,
}
SOURCES = {"hot_topics": "tweets"}
"""The sources that are not called `events`."""


def run_all(
    app: str,
    order: str,
    source: str,
    store: str,
    batches: int,
    keep: bool = False,
    flush: int | None = None,
) -> dict[str, Any]:
    """Run over all the files of a folder in about so many batches; `keep` goes on with a store.

    The target for a batch's time is so long that the batches are of the size that is asked for, as
    Spark's own ways have them.
    """
    if not keep:
        shutil.rmtree(store, ignore_errors=True)
    ended: list[tuple[int, float]] = []
    told: list[BatchSummary] = []

    def report(batch: BatchSummary) -> None:
        ended.append((batch.events, time.perf_counter()))
        told.append(batch)

    began = time.perf_counter()
    settings = Settings(
        "bench",
        Path(store),
        {SOURCES.get(app, "events"): f"json:{source}"},
        available_now=True,
        final=True,
        batch_bytes=-(-length_of(Path(source)) // batches),
        flush=flush,
        batch_seconds=60_000_000,
    )
    summary = run(APPS[app](order), settings, report)
    return {
        "batches": ended,
        "whole_s": time.perf_counter() - began,
        "seconds": [batch.seconds for batch in told if batch.events],
        "lanes": sorted({batch.lane for batch in told if batch.events}),
        "late": summary.late,
        "dead_letters": summary.dead_letters,
    }


def run_until(app: str, order: str, source: str, store: str, stop: str) -> dict[str, Any]:
    """Run over whatever comes into a folder until the file `stop` is there."""
    shutil.rmtree(store, ignore_errors=True)
    asked, batches = threading.Event(), []

    def watch() -> None:
        while not Path(stop).exists():
            time.sleep(0.1)
        asked.set()

    def report(told: BatchSummary) -> None:
        batches.append((told.events, told.seconds, told.lane, time.time()))

    threading.Thread(target=watch, daemon=True).start()
    settings = Settings("bench", Path(store), {SOURCES.get(app, "events"): f"json:{source}"})
    summary = run(APPS[app](order), settings, report, stop=asked)
    return {"batches": batches, "late": summary.late, "dead_letters": summary.dead_letters}
