"""Measured runs of Millstream. Called in processes of their own, see `apart`."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any, cast

import millstream as ms
from bench.data import length_of
from millstream.model.workflow import Order
from millstream.settings import Settings
from millstream.spark.query import run
from millstream.spark.report import BatchSummary


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


def hot_topics(order: str) -> ms.App:
    """The example, in either order."""
    from examples import hot_topics as example

    example.app.order = cast(Order, order)
    return example.app


APPS = {"counter": counter, "chain": chain, "hot_topics": hot_topics}
SOURCES = {"counter": "events", "chain": "events", "hot_topics": "tweets"}


def run_all(
    app: str, order: str, source: str, store: str, batches: int, keep: bool = False
) -> dict[str, Any]:
    """Run over all the files of a folder in about so many batches; `keep` goes on with a store."""
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
        {SOURCES[app]: f"json:{source}"},
        available_now=True,
        final=True,
        batch_bytes=-(-length_of(Path(source)) // batches),
    )
    summary = run(APPS[app](order), settings, report)
    return {
        "batches": ended,
        "whole_s": time.perf_counter() - began,
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
        batches.append((told.events, told.seconds, told.lane))

    threading.Thread(target=watch, daemon=True).start()
    settings = Settings("bench", Path(store), {SOURCES[app]: f"json:{source}"})
    summary = run(APPS[app](order), settings, report, stop=asked)
    return {"batches": batches, "late": summary.late, "dead_letters": summary.dead_letters}
