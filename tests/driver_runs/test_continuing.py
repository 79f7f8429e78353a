"""Going on from a store: with a changed application, after a power cut, after a stop."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.errors import InputError, StoreError
from millstream.settings import Settings
from millstream.spark.runner import run
from millstream.stores.reader import SlateReader

pytestmark = pytest.mark.spark


def put(folder: Path, source: str, name: str, *records: Any) -> None:
    (folder / source).mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / source / name).write_text(lines)


def settings(folder: Path, *sources: str, **more: Any) -> Settings:
    for source in sources:
        (folder / source).mkdir(parents=True, exist_ok=True)
    addresses = {source: f"json:{folder / source}" for source in sources}
    given = {"available_now": True, "shards": 2, **more}
    return Settings("going", folder / "store", addresses, **given)


def listening(*sources: str, name: str = "hear") -> ms.App:
    """Keeps which streams it heard, in order; everything waits until the end."""
    app = ms.App("going", order="event-time")
    for source in sources:
        app.source(source, ts="ts", unit="us", lateness="1h")

    @app.update(*sources, name=name)
    def hear(event: Any, slate: Any) -> None:
        slate.setdefault("heard", []).append([event.stream, event.ts])

    return app


def heard(folder: Path) -> Any:
    with SlateReader(folder / "store") as reader:
        slate = reader.get("hear", "")
        return slate.value["heard"] if slate is not None else None


def test_waiting_events_keep_their_stream(spark: Any, tmp_path: Path) -> None:
    """Events that wait in the store are of the stream they came on, though the application has
    another source before it now, and no longer has one that it had."""
    put(tmp_path, "b", "1.json", {"ts": 10})
    put(tmp_path, "c", "1.json", {"ts": 20})
    run(listening("b", "c"), settings(tmp_path, "b", "c"), context=spark)
    assert heard(tmp_path) is None
    run(listening("a", "c"), settings(tmp_path, "a", "c", final=True), context=spark)
    assert heard(tmp_path) == [["b", 10], ["c", 20]]


def test_an_update_that_events_wait_for_cannot_be_renamed(spark: Any, tmp_path: Path) -> None:
    """They would be lost without a word: the start is refused, and says how to go on."""
    put(tmp_path, "b", "1.json", {"ts": 10})
    run(listening("b"), settings(tmp_path, "b"), context=spark)
    with pytest.raises(StoreError, match=r"events wait for 'hear'.*--final"):
        run(listening("b", name="listen"), settings(tmp_path, "b"), context=spark)
    run(listening("b"), settings(tmp_path, "b", final=True), context=spark)
    run(listening("b", name="listen"), settings(tmp_path, "b"), context=spark)


def test_what_a_power_cut_leaves_of_sparks_files(spark: Any, tmp_path: Path) -> None:
    """Spark's commit of the last batch and its plan of the next may be empty after a power cut;
    neither is needed, and nothing is lost or doubled."""
    put(tmp_path, "b", "1.json", {"ts": 10})
    run(listening("b"), settings(tmp_path, "b", final=True), context=spark)
    checkpoint = tmp_path / "store" / "checkpoint"
    last = max(int(p.name) for p in (checkpoint / "commits").iterdir() if p.name.isdigit())
    (checkpoint / "commits" / str(last)).write_bytes(b"")
    (checkpoint / "offsets" / str(last + 1)).write_bytes(b"")
    put(tmp_path, "b", "2.json", {"ts": 30})
    run(listening("b"), settings(tmp_path, "b", final=True), context=spark)
    assert heard(tmp_path) == [["b", 10], ["b", 30]]


def test_a_source_does_not_feed_on_the_store(spark: Any, tmp_path: Path) -> None:
    """A store or a sink inside a source's directory would be read as events: refused at once."""
    given = settings(tmp_path, "b")
    with pytest.raises(InputError, match="must not lie in the source's directory"):
        run(listening("b"), Settings("going", tmp_path / "b" / "store", given.sources), context=spark)
    assert not (tmp_path / "b" / "store").exists()


def slow(folder: Path) -> ms.App:
    app = ms.App("going")
    app.source("b", ts="ts", unit="us")

    @app.update("b")
    def hear(event: Any, slate: Any) -> None:
        if not (folder / "hurry").exists():
            (folder / "begun").touch()
            time.sleep(0.5)
        slate.setdefault("heard", []).append(event.ts)

    return app


def test_stopped_in_a_slow_batch(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Stopped while a batch is running that takes too long, the application ends soon, without
    noise, with nothing half done; the next start does the batch."""
    put(tmp_path, "b", "1.json", *({"ts": n} for n in range(60)))
    stop, ended = threading.Event(), []
    given = settings(tmp_path, "b", available_now=False)

    def drive() -> None:
        ended.append(run(slow(tmp_path), given, context=spark, stop=stop))

    thread = threading.Thread(target=drive)
    thread.start()
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline
        stop.wait(0.02)
        stop.clear()
    stop.set()
    thread.join(25)
    assert [summary.events for summary in ended] == [0]
    assert "StackOverflowError" not in capfd.readouterr().err
    (tmp_path / "hurry").touch()
    run(slow(tmp_path), settings(tmp_path, "b"), context=spark)
    assert heard(tmp_path) == list(range(60))


def letters(record: Any) -> Any:
    yield record["letter"], 1


def windows_of(size: str) -> ms.App:
    """Counts letters in windows of this size."""
    app = ms.App("going", order="event-time")
    app.source("a", ts="ts", unit="s")
    job = ms.windows.Job(map=letters, combine=ms.algebra.sum(), range=size)
    app.add(job, name="counts", nodes=["a"])
    return app


def test_other_windows_than_the_stores_are_refused(spark: Any, tmp_path: Path) -> None:
    """Panes that lie in the store would be taken for those of other times; as it was, it goes on,
    and so does a job of another size that has a store of its own."""
    put(tmp_path, "a", "1.json", *({"ts": at, "letter": "x"} for at in (1, 2, 11)))
    run(windows_of("10s"), settings(tmp_path, "a"), context=spark)
    for _ in range(2):
        with pytest.raises(StoreError, match="'counts' has windows of 10s every 10s in panes of"):
            run(windows_of("5s"), settings(tmp_path, "a"), context=spark)
    put(tmp_path, "a", "2.json", {"ts": 21, "letter": "x"})
    run(windows_of("10s"), settings(tmp_path, "a"), context=spark)
