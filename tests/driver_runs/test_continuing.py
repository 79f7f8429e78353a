"""Going on from a store: with a changed application, in a changed format. Without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.driver.in_process import run
from millstream.errors import InputError, StoreError
from millstream.settings.settings import Settings
from millstream.stores.home import FORMAT, Home
from millstream.stores.reader import SlateReader
from millstream.stores.soft import read_committed


def put(folder: Path, source: str, name: str, *records: Any) -> None:
    (folder / source).mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / source / name).write_text(lines)


def settings(folder: Path, *sources: str, **more: Any) -> Settings:
    for source in sources:
        (folder / source).mkdir(parents=True, exist_ok=True)
    addresses = {source: f"json:{folder / source}" for source in sources}
    given = {"available_now": True, "shards": 2, **more}
    return Settings.of("going", folder / "store", addresses, **given)


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


def test_waiting_events_keep_their_stream(tmp_path: Path) -> None:
    """Events that wait in the store are of the stream they came on, though the application has
    another source before it now, and no longer has one that it had."""
    put(tmp_path, "b", "1.json", {"ts": 10})
    put(tmp_path, "c", "1.json", {"ts": 20})
    run(listening("b", "c"), settings(tmp_path, "b", "c"))
    assert heard(tmp_path) is None
    run(listening("a", "c"), settings(tmp_path, "a", "c", final=True))
    assert heard(tmp_path) == [["b", 10], ["c", 20]]


def test_an_update_that_events_wait_for_cannot_be_renamed(tmp_path: Path) -> None:
    """The events would be lost silently. So the start is refused, and the error says how to go
    on."""
    put(tmp_path, "b", "1.json", {"ts": 10})
    run(listening("b"), settings(tmp_path, "b"))
    with pytest.raises(StoreError, match=r"events wait for 'hear'.*--final"):
        run(listening("b", name="listen"), settings(tmp_path, "b"))
    run(listening("b"), settings(tmp_path, "b", final=True))
    with pytest.raises(StoreError, match=r"'hear': is gone.*--accept-loss hear"):
        run(listening("b", name="listen"), settings(tmp_path, "b"))
    run(listening("b", name="listen"), settings(tmp_path, "b", accept_loss=("hear",)))


def in_format_2(store: Path) -> None:
    """Turns the store into one of the version that left batches to Spark, with a planned batch that
    was never run."""
    home = Home.open(store)
    home.facts.format = 2
    home.write_facts()
    for folder in ("offsets", "commits"):
        (store / "checkpoint" / folder).mkdir(parents=True)
    for batch in range(home.committed() + 2):
        (store / "checkpoint" / "offsets" / str(batch)).write_text("v1\n{}\n{}")
    for batch in range(home.committed() + 1):
        (store / "checkpoint" / "commits" / str(batch)).write_text("v1\n{}")


def test_a_store_of_the_format_before_goes_on(tmp_path: Path) -> None:
    """The first start says that it carries the store over, removes Spark's files and goes on with
    nothing lost or doubled; the next has nothing to say."""
    said: list[str] = []
    put(tmp_path, "b", "1.json", {"ts": 10})
    run(listening("b"), settings(tmp_path, "b", final=True))
    in_format_2(tmp_path / "store")
    assert heard(tmp_path) == [["b", 10]]
    put(tmp_path, "b", "2.json", {"ts": 30})
    for _ in range(2):
        run(listening("b"), settings(tmp_path, "b", final=True), say=said.append)
        assert heard(tmp_path) == [["b", 10], ["b", 30]]
    (sentence,) = said
    assert "the store had format 2 and has format 6 now" in sentence
    assert Home.open(tmp_path / "store").facts.format == FORMAT
    assert not (tmp_path / "store" / "checkpoint").exists()


def test_a_lost_progress_of_the_format_before_is_refused(tmp_path: Path) -> None:
    """Spark's files tell that there was a batch; they stay, as all does."""
    put(tmp_path, "b", "1.json", {"ts": 10})
    run(listening("b"), settings(tmp_path, "b", final=True))
    in_format_2(tmp_path / "store")
    (tmp_path / "store" / "progress").rename(tmp_path / "progress")
    with pytest.raises(StoreError, match=r"progress: is missing.*nothing was changed"):
        run(listening("b"), settings(tmp_path, "b"))
    assert (tmp_path / "store" / "checkpoint").exists()
    (tmp_path / "progress").rename(tmp_path / "store" / "progress")
    assert heard(tmp_path) == [["b", 10]]


def test_a_source_does_not_feed_on_the_store(tmp_path: Path) -> None:
    """A store or a sink inside a source's directory would be read as events: refused at once."""
    given = settings(tmp_path, "b")
    with pytest.raises(InputError, match="must not lie in the source's directory"):
        run(listening("b"), Settings.of("going", tmp_path / "b" / "store", given.addresses.sources))
    assert not (tmp_path / "b" / "store").exists()


def letters(record: Any) -> Any:
    yield record["letter"], 1


def windows_of(size: str) -> ms.App:
    """Counts letters in windows of this size."""
    app = ms.App("going", order="event-time")
    app.source("a", ts="ts", unit="s")
    job = ms.windows.Job(map=letters, combine=ms.algebra.sum(), range=size)
    app.add(job, name="counts", nodes=["a"])
    return app


def test_other_windows_than_the_stores_are_refused(tmp_path: Path) -> None:
    """A job with other window sizes is refused, since stored panes would be taken for other times.
    The unchanged job continues, and so does a job of another size with its own store."""
    put(tmp_path, "a", "1.json", *({"ts": at, "letter": "x"} for at in (1, 2, 11)))
    run(windows_of("10s"), settings(tmp_path, "a"))
    for _ in range(2):
        with pytest.raises(StoreError, match="'counts' has windows of 10s every 10s in panes of"):
            run(windows_of("5s"), settings(tmp_path, "a"))
    put(tmp_path, "a", "2.json", {"ts": 21, "letter": "x"})
    run(windows_of("10s"), settings(tmp_path, "a"))


def test_the_latency_has_the_waiting_for_the_horizon_in_it(tmp_path: Path) -> None:
    """Events that waited in the store while nothing ran have waited that long: from their coming in
    to the commit of the batch that fed them."""
    put(tmp_path, "b", "1.json", {"ts": 10})
    run(listening("b"), settings(tmp_path, "b"))
    waiting = read_committed(tmp_path / "store")
    assert waiting.measured is None  # nothing was fed so far
    put(tmp_path, "b", "2.json", {"ts": 2 * 3600 * 1_000_000})
    run(listening("b"), settings(tmp_path, "b"))
    fed = read_committed(tmp_path / "store")
    assert fed.measured is not None
    apart = fed.written - waiting.written
    assert 0 < fed.measured.waited <= apart <= fed.measured.whole
