"""A driver in a process of its own, to be ended by force: child.py FOLDER LANE POINT BATCH.

It leads a process group, JVM included, and the fault ends the whole group at once, as a power cut
would; Spark's Python workers have a group of their own and live on for a moment, as they would
when a driver dies.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import millstream as ms


def chain() -> ms.App:
    """A map, two updates in a chain that depend on order, timers, a cycle and an output."""
    app = ms.App("chain", order="event-time")
    app.source("records", key="key", ts="ts", unit="us")
    app.output("alerts")
    app.stream("echoes", delay="400us")

    @app.map("records", publishes="numbers")
    def numbers(event: Any) -> Any:
        if event.value["n"] % 50 == 13:
            raise ValueError("poison")
        yield ms.emit(value=event.value["n"])

    @app.update("numbers", "echoes", publishes=("folded", "echoes"))
    def fold(event: Any, slate: Any) -> Any:
        slate["hash"] = (slate.get("hash", 7) * 31 + event.value) % 1_000_003
        yield ms.emit("folded", key=f"g{slate['hash'] % 5}", value=slate["hash"])
        if event.value % 10 == 3 and event.stream == "numbers":
            yield ms.emit("echoes", value=event.value + 1)

    @app.update("folded", publishes="alerts", slate=ms.Table)
    def keep(event: Any, slate: Any) -> Any:
        slate[f"{event.value % 20:02d}"] = event.ts
        slate["sum"] = slate.get("sum", 0) * 3 % 1_000_003 + event.value
        yield ms.timer(after="20us")

    @keep.on_timer
    def ring(timer: Any, slate: Any) -> Any:
        yield ms.emit(value=slate["sum"])

    return app


def settings_of(folder: Path, lane: str) -> Any:
    from millstream.settings import Settings

    return Settings(
        "chain",
        folder / "store",
        {"records": f"json:{folder / 'in'}"},
        {"alerts": f"json:{folder / 'out' / 'alerts'}"},
        shards=3,
        tasks=2,
        lane=lane,  # type: ignore[arg-type]  # one of the two
        batch_bytes=4_000,
        available_now=True,
        final=True,
    )


if __name__ == "__main__":
    place, lane, point, batch = sys.argv[1:]
    if point != "none":
        os.environ["MILLSTREAM_FAULT"] = f"{point}:{batch}:{os.getpgrp()}"
    from millstream.spark.query import run

    run(chain(), settings_of(Path(place), lane))
