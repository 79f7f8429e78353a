"""Measured runs of Millstream. Called in processes of their own, see `apart`."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import millstream as ms
from bench.bench import Bench
from bench.data import length_of
from bench.means import batch_mean, mean, table_mean
from bench.processes import below, processes
from millstream.driver.report import BatchSummary
from millstream.model.algebra import Algebra
from millstream.model.workflow import Order
from millstream.settings.settings import Settings
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


def single(order: str) -> ms.App:
    """The counter, its update called `second` as those that are watched are."""
    app = ms.App("bench", order=cast(Order, order))
    app.source("events", key="key", ts="ts", unit="us")

    @app.update("events")
    def second(event: ms.Event, slate: dict[str, int]) -> None:
        slate["count"] = slate.get("count", 0) + 1

    return app


def poisoned(order: str) -> ms.App:
    """The counter, which fails on some of its events."""
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
    """An update that computes for a while for each event."""
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
    """Like `slow`, but with a limit that is never reached instead of a share for each key."""
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
    "single": single,
    "count": count,
    "mean": mean,
    "batch_mean": batch_mean,
    "table_mean": table_mean,
    "sum": total,
    "hot_topics": hot_topics,
    "poisoned": poisoned,
    "slow": slow,
    "slow_unshared": slow_unshared,
}
SOURCES = {"hot_topics": "tweets"}
"""The sources that are not called `events`."""


def measured(
    bench: Bench, what: str, app: str, source: Path, batches: int, order: str = "arrival"
) -> dict[str, Any]:
    """The row of a run of an application over files, in a process of its own (`run_all`)."""
    return bench.measure(
        what,
        run_all,
        app=app,
        order=order,
        source=source,
        store=bench.fresh("store"),
        batches=batches,
    )


def run_all(
    app: str,
    order: str,
    source: str,
    store: str,
    batches: int,
    keep: bool = False,
    flush: int | None = None,
    place: str = "",
    cache: str = "",
    master: str = "local[*]",
    cpu: bool = False,
    address: str = "",
    listen: str = "",
    secret_file: str = "",
) -> dict[str, Any]:
    """Run over all the files of a folder in about `batches` batches; with `keep`, continues with an
    existing store. With `cpu`, the processor time of all processes is recorded at the end of each
    batch. `address` is another source of the same records. With `listen` the driver is on that
    address, and all traffic is encrypted.

    The target for a batch's time is so long that batches have the requested size, as with Spark's
    own ways.
    """
    if not keep:
        shutil.rmtree(store, ignore_errors=True)
    ended: list[tuple[int, float]] = []
    told: list[BatchSummary] = []
    spent: list[float] = []

    def report(batch: BatchSummary) -> None:
        ended.append((batch.events, time.perf_counter()))
        told.append(batch)
        if cpu:
            spent.append(sum(one.cpu for one in below(os.getpid(), processes())))

    began = time.perf_counter()
    settings = Settings.of(
        "bench",
        Path(store),
        {SOURCES.get(app, "events"): address or f"json:{source}"},
        available_now=True,
        final=True,
        batch_bytes=-(-length_of(Path(source)) // batches),
        flush=flush,
        batch_seconds=60_000_000,
        place=place,
        cache=cache,
        master=master,
        listen=listen,
        secret_file=Path(secret_file) if secret_file else None,
        python=sys.executable if listen else "",
        runtime="installed" if listen else "",
    )
    summary = run(APPS[app](order), settings, report)
    return {
        "batches": ended,
        "whole_s": time.perf_counter() - began,
        "cpu": spent,
        "seconds": [batch.seconds for batch in told if batch.events],
        "lanes": sorted({batch.lane for batch in told if batch.events}),
        "late": summary.late,
        "dead_letters": summary.dead_letters,
    }


def run_until(
    app: str, order: str, address: str, store: str, stop: str, place: str = "", cache: str = ""
) -> dict[str, Any]:
    """Run over all records that come to an address until the file `stop` exists."""
    shutil.rmtree(store, ignore_errors=True)
    asked, batches = threading.Event(), []

    def watch() -> None:
        while not Path(stop).exists():
            time.sleep(0.1)
        asked.set()

    def report(told: BatchSummary) -> None:
        batches.append((told.events, told.seconds, told.lane, time.time(), told.batch))

    threading.Thread(target=watch, daemon=True).start()
    sources = {SOURCES.get(app, "events"): address}
    settings = Settings.of("bench", Path(store), sources, place=place, cache=cache)
    summary = run(APPS[app](order), settings, report, stop=asked)
    return {"batches": batches, "late": summary.late, "dead_letters": summary.dead_letters}
