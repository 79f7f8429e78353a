"""A real store with every kind of durable file, filled by the engine without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from engine.in_process import InProcess

import millstream as ms
from millstream.actions.record import Position, make_folder, write_position
from millstream.description import describe, write_description
from millstream.durable import with_checksum, write_whole
from millstream.engine.sink_rows import SinkRows
from millstream.log.reader import LogReader
from millstream.log.writer import Entry, LogWriter
from millstream.model.event import Event
from millstream.sources.record_log import RecordLog
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.progress import decoded

SHARDS = 2


def an_app(ttl: str | None = None, order: str = "event-time") -> ms.App:
    """Counts with timers, and a table; half of what comes waits for the horizon."""
    app = ms.App("filled", order=order)
    app.source("clicks", lateness="10us")

    @app.update("clicks", ttl=ttl)
    def count(event, slate):
        slate["n"] = slate.get("n", 0) + 1
        slate["text"] = "x" * (event.ts % 50)
        yield ms.timer(after="1h")

    @count.on_timer
    def ring(timer, slate):
        slate["rang"] = True

    @app.update("clicks", slate=ms.Table, ttl=ttl)
    def seen(event, table):
        table[str(event.ts)] = event.value

    return app


def clicks(start: int, stop: int) -> list[Event]:
    return [Event("clicks", ts, f"key {ts % 97}", {"at": ts}) for ts in range(start, stop)]


def fill(path: Path, app: ms.App, batches: Sequence[list[Event]]) -> InProcess:
    """Run the batches over a store in a folder; the engine goes on from there."""
    workflow = app.checked()
    home = Home.make(path, app.name, SHARDS, workflow.slate_kinds)
    home.number_streams(workflow.streams)
    home.know_functions([f.name for layer in workflow.layers for f in layer])
    engine = InProcess(workflow, shards=SHARDS, store=home.store())
    engine.epoch = home.raise_epoch()
    engine.progress = decoded(home.read_progress())
    for number in range(SHARDS):
        engine.store.shard(number).roll_back(engine.epoch, engine.progress.batch)
    for events in batches:
        engine.batch(events)
    engine.store.close()
    home.write_progress(engine.progress)
    write_description(path, describe(workflow, {"clicks": "json:in"}))
    return engine


def dress(path: Path, engine: InProcess) -> None:
    """Add all that a driver leaves beside the shards."""
    home, progress = Home.open(path), engine.progress
    progress.query = "a-query"
    progress.staged = [f"{progress.batch:012d}-driver.rows"]
    staged = with_checksum(msgspec.msgpack.encode(SinkRows({"out": [(1, "k", b"{}")]})))
    write_whole(home.staging / progress.staged[0], staged)
    log = LogWriter(home.log_of("late"), segment_bytes=2_000)
    for number in range(40):
        log.append([Entry.of([b'{"ts":%d}' % number] * 3, f"a-query:{number}:0")])
    log.close()
    reader = LogReader(home.log_of("late"))
    reader.commit("someone", reader.end)
    reader.close()
    files = RecordLog(str(home.source_log("clicks")), write=True)
    files.append({"log": "files", "version": 1, "format": "json"})
    for number in range(5):
        files.append([[f"/in/{number}.json", 100, 1, 100]])
    files.close()
    store = home.store()
    for number in range(SHARDS):  # nothing to write: only the fence file
        store.shard(number).commit(Fence(engine.epoch, progress.batch, 999), {})
    progress.last_batches = [store.shard(number).last_batch for number in range(SHARDS)]
    store.close()
    make_folder(path)
    write_position(path, "notify", Position(3))
    home.write_progress(progress)
