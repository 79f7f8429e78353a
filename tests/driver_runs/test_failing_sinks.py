"""A sink that fails after the commit: tried again, stopped while it fails, given up.

The application itself breaks the sink in the middle of a batch, once the batch before it is
published, and what the driver says is the sign to mend it: so nothing here depends on time.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from fault_runs.published_rows import read_log_rows, read_rows
from millstream.driver.in_process import run
from millstream.errors import RunError
from millstream.settings.settings import Settings
from millstream.stores.home import Home, log_of
from millstream.stores.progress import decoded
from millstream.stores.trouble import read_troubles


def breaking(store: Path, place: Path) -> ms.App:
    """An application that puts a file where a folder must be, once, when it is told to."""
    app = ms.App("breaking")
    app.source("words", key="word", ts="ts", unit="us")
    app.output("loud")

    @app.map("words", publishes="loud")
    def shout(event: Any) -> Any:
        aside = place.with_name(place.name + ".aside")
        if event.key == "break" and not aside.exists():
            while any((store / "staging").glob("*.rows")):  # of the batch before
                time.sleep(0.001)
            place.rename(aside)
            place.write_text("in the way")
        yield ms.emit(value=event.key.upper())

    return app


def mend(place: Path) -> None:
    """Take the file away, and put the folder back."""
    place.unlink()
    aside = place.with_name(place.name + ".aside")
    for moved in aside.iterdir():
        place.mkdir(exist_ok=True)
        moved.rename(place / moved.name)


def settings(tmp_path: Path, **more: Any) -> Settings:
    """No two words are of one batch."""
    folder = tmp_path / "in"
    if not folder.exists():
        folder.mkdir()
        for number, word in enumerate(("one", "break", "three")):
            record = {"word": word, "ts": number}
            (folder / f"{number}.json").write_text(json.dumps(record) + "\n")
    given = {"available_now": True, "shards": 2, "batch_bytes": 16, **more}
    sinks = {"loud": f"json:{tmp_path / 'out'}"}
    return Settings.of("breaking", tmp_path / "store", {"words": f"json:{folder}"}, sinks, **given)


def published(tmp_path: Path) -> tuple[list[str], list[str]]:
    """Returns the records of the sink and of the store's own log."""
    sink = [row["value"] for row in read_rows(str(tmp_path / "out"))]
    return sink, [row["value"] for row in read_log_rows(log_of(tmp_path / "store", "loud"))]


ALL = ["ONE", "BREAK", "THREE"]


@pytest.mark.parametrize("which", ["sink", "log"])
def test_a_sink_that_is_mended_gets_the_batch(tmp_path: Path, which: str) -> None:
    """A file is in the place of the folder of the sink, or of the store's log. The failure is
    reported and recorded, and no further batch is committed. After the repair nothing is lost."""
    place = tmp_path / "out" if which == "sink" else tmp_path / "store" / "logs" / "loud"
    said: list[str] = []
    taken: list[int] = []
    troubles: list[int] = []

    def say(sentence: str) -> None:
        said.append(sentence)
        taken.append(decoded(Home.open(tmp_path / "store").read_progress()).events)
        troubles.append(len(read_troubles(tmp_path / "store")))
        if len(said) == 1:
            mend(place)

    summary = run(breaking(tmp_path / "store", place), settings(tmp_path), say=say)
    assert summary.events == 3
    assert len(said) == 2
    assert f"{place}: " in said[0]
    assert "trying again for up to 600 s" in said[0]
    assert "works again" in said[1]
    assert taken == [2, 2]
    assert troubles == [1, 0]
    assert published(tmp_path) == (ALL, ALL)


def test_a_stop_does_not_wait_for_the_sink(tmp_path: Path) -> None:
    """Stopped while a sink fails, the run ends within 5 s and without an error; the next start
    gives the sink the batch, once."""
    place, stop, asked = tmp_path / "out", threading.Event(), list[float]()

    def say(sentence: str) -> None:
        asked.append(time.monotonic())
        stop.set()

    given = settings(tmp_path, available_now=False)
    summary = run(breaking(tmp_path / "store", place), given, say=say, stop=stop)
    assert time.monotonic() - asked[0] < 5
    assert summary.events == 2
    mend(place)
    run(breaking(tmp_path / "store", place), settings(tmp_path))
    assert published(tmp_path) == (ALL, ALL)


def test_patience_ends_with_the_error(tmp_path: Path) -> None:
    """After `sink_patience` the run ends with the error; the batch is kept, and the next start
    publishes it and goes on."""
    place = tmp_path / "out"
    given = settings(tmp_path, sink_patience=1_500_000)
    with pytest.raises(RunError, match=r"out: .*File exists.*tried for 1.5 s .*start again"):
        run(breaking(tmp_path / "store", place), given)
    assert published_log(tmp_path) == ["ONE", "BREAK"]
    mend(place)
    run(breaking(tmp_path / "store", place), given)
    assert published(tmp_path) == (ALL, ALL)


def published_log(tmp_path: Path) -> list[str]:
    return [row["value"] for row in read_log_rows(log_of(tmp_path / "store", "loud"))]


def flushed_together(tmp_path: Path) -> tuple[ms.App, Settings]:
    """A run that publishes at its flushes, the second of which finds a file in its way."""
    place = tmp_path / "out"
    app = ms.App("breaking")
    app.source("words", key="word", ts="ts", unit="us")
    app.output("loud")

    @app.map("words", publishes="loud")
    def shout(event: Any) -> Any:
        if event.key == "break" and not place.is_file():
            place.rename(place.with_name("out.aside"))
            place.write_text("in the way")
        yield ms.emit(value=event.key.upper())

    return app, settings(tmp_path, flush=1)


def test_a_flush_that_fails_is_given_up_once(tmp_path: Path) -> None:
    """With batches that are flushed together, a sink that fails has its `sink_patience` once, and
    is spoken of once; the next start publishes what was kept."""
    app, given = flushed_together(tmp_path)
    said: list[str] = []
    with pytest.raises(RunError, match=r"out: .*tried for 1.5 s .*start again"):
        run(app, given.changed(sink_patience=1_500_000), say=said.append)
    mend(tmp_path / "out")
    run(app, given)
    assert published(tmp_path) == (ALL, ALL)
    assert len(said) == 1, said


def test_a_stop_does_not_wait_for_the_sink_of_a_flush(tmp_path: Path) -> None:
    """If the run is stopped while a flush cannot publish, it ends soon and without an error. It
    reports once what fails, and once that the next start will publish. The next start does."""
    app, given = flushed_together(tmp_path)
    said, stop = list[str](), threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        stop.set()

    run(app, given.changed(available_now=False), say=say, stop=stop)
    mend(tmp_path / "out")
    run(app, given)
    assert published(tmp_path) == (ALL, ALL)
    assert len(said) == 2, said
