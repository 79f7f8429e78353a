"""The application that most scenarios disturb: a small one with every feature of exact workflows.

`python -m fault_runs.chain FOLDER LANE POINT BATCH` runs it as a driver of its own, which leads a
process group; a fault kills the whole group at once. Its JVM and Spark's Python workers have groups
of their own and live on for a moment, as they do when a driver dies: the fence refuses their late
commits, or the next start undoes them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import millstream as ms
from fault_runs.outcome import Difference, add_logs, compared, read_outcome
from millstream.model.event import Event
from millstream.settings.settings import Settings

LANES = ("one-task", "shuffled")
Record = dict[str, Any]
Disturb = Callable[[str, int], None]
"""Called in the worker with a function's name and the number of its event, before it runs."""


def _leave(function: str, number: int) -> None:
    """Disturb nothing."""


def chain(disturb: Disturb = _leave) -> ms.App:
    """A map with poison, two chained updates that depend on order, timers, a cycle with a delay, a
    table and an output; in event-time order, so that the result must equal the reference's."""
    app = ms.App("chain", order="event-time")
    app.source("records", key="key", ts="ts", unit="us")
    app.output("alerts")
    app.stream("echoes", delay="400us")

    @app.map("records", publishes="numbers")
    def numbers(event: Any) -> Any:
        disturb("numbers", event.value["n"])
        if event.value["n"] % 50 == 13:
            raise ValueError("poison")
        yield ms.emit(value=event.value["n"])

    @app.update("numbers", "echoes", publishes=("folded", "echoes"))
    def fold(event: Any, slate: Any) -> Any:
        disturb("fold", event.value)
        slate["hash"] = (slate.get("hash", 7) * 31 + event.value) % 1_000_003
        yield ms.emit("folded", key=f"g{slate['hash'] % 5}", value=slate["hash"])
        if event.value % 10 == 3 and event.stream == "numbers":
            yield ms.emit("echoes", value=event.value + 1)

    @app.update("folded", publishes="alerts", slate=ms.Table)
    def keep(event: Any, slate: Any) -> Any:
        disturb("keep", event.ts // 10)
        slate[f"{event.value % 20:02d}"] = event.ts
        slate["sum"] = slate.get("sum", 0) * 3 % 1_000_003 + event.value
        yield ms.timer(after="20us")

    @keep.on_timer
    def ring(timer: Any, slate: Any) -> Any:
        yield ms.emit(value=slate["sum"])

    return app


def records(seed: int, count: int = 400) -> list[Record]:
    """Records about 10 microseconds apart, some of them out of order, a few late."""
    random = Random(seed)
    return [
        {"key": f"k{random.randrange(20)}", "ts": 10 * n + random.randrange(30), "n": n}
        for n in range(count)
    ]


def write_records(folder: Path, given: Sequence[Record], a_file: int = 100) -> None:
    """Write the records to `folder`/in, `a_file` of them in each file."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number in range(0, len(given), a_file):
        lines = (json.dumps(record) + "\n" for record in given[number : number + a_file])
        (folder / "in" / f"{number:06d}.json").write_text("".join(lines))


def settings_of(folder: Path, lane: str = "auto", **more: Any) -> Settings:
    """Settings to read `folder`/in to its end, about 4,000 bytes a batch; the store is
    `folder`/store, the sink `folder`/out/alerts."""
    given: dict[str, Any] = {
        "shards": 3,
        "tasks": 2,
        "lane": lane,
        "batch_bytes": 4_000,
        "available_now": True,
        "final": True,
        **more,
    }
    sources = {"records": f"json:{folder / 'in'}"}
    sinks = {"alerts": f"json:{folder / 'out' / 'alerts'}"}
    return Settings.of("chain", folder / "store", sources, sinks, **given)


def events_of(given: Sequence[Record]) -> list[Event]:
    """The events that the source makes of the records."""
    return [Event("records", record["ts"], record["key"], record) for record in given]


def chain_difference(folder: Path, given: Sequence[Record]) -> Difference:
    """The difference between the outcome in `folder` and the reference over the records: slates,
    output in its sink and in its log, dead letters."""
    app = chain()
    found = read_outcome(app.checked(), folder)
    add_logs(found, folder / "store")
    return compared(app, events_of(given), found)


def main(arguments: Sequence[str]) -> None:
    """Runs the application as a driver."""
    place, lane, point, batch = arguments
    if point != "none":
        os.environ["MILLSTREAM_FAULT"] = f"{point}:{batch}:{os.getpgrp()}"
    from millstream.spark.runner import run

    run(chain(), settings_of(Path(place), lane))


if __name__ == "__main__":
    main(sys.argv[1:])
