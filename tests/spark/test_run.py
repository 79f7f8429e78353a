"""The driver by hand-made cases, on both runners: restart, lanes, errors, idle streams."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from driver_runs.harness import Run, kept_rows

import millstream as ms
from fault_runs.published_rows import read_rows
from millstream.errors import RunError, StoreError, StoreLocked
from millstream.settings.settings import Settings
from millstream.stores.home import Home, held
from millstream.stores.reader import SlateReader


@dataclass
class Count:
    count: int = 0


def counting(order: Any = "arrival", on_error: Any = "dead-letter") -> ms.App:
    app = ms.App("counting", order=order, on_error=on_error)
    app.source("words", key="word", ts="ts", unit="us", lateness="5us")

    @app.update("words", slate=Count)
    def count(event: Any, slate: Any) -> None:
        if event.value.get("poison"):
            raise ValueError("poison")
        slate.count += 1

    return app


def put(folder: Path, name: str, *records: Any) -> None:
    """Move a file in whole, as a user should."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps(record) + "\n" for record in records))
    hidden.rename(folder / name)


def words(*pairs: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"word": word, "ts": ts} for word, ts in pairs]


def settings(tmp_path: Path, **more: Any) -> Settings:
    given = {"available_now": True, "shards": 4, **more}
    sources = {"words": f"json:{tmp_path / 'in'}"}
    return Settings.of("counting", tmp_path / "store", sources, given.pop("sinks", {}), **given)


def counts(tmp_path: Path) -> dict[str, Any]:
    with SlateReader(tmp_path / "store") as reader:
        return {slate.key: slate.value["count"] for slate in reader.scan("count")}


def test_a_second_run_takes_only_what_is_new(run: Run, tmp_path: Path) -> None:
    """The next run on the same store does not process the same records again."""
    put(tmp_path / "in", "a.json", *words(("x", 1), ("y", 2), ("x", 3)))
    assert run(counting(), settings(tmp_path)).events == 3
    put(tmp_path / "in", "b.json", *words(("x", 4)))
    assert run(counting(), settings(tmp_path)).events == 1
    assert run(counting(), settings(tmp_path)).events == 0
    assert counts(tmp_path) == {"x": 3, "y": 1}


def test_a_failing_event_is_a_dead_letter(run: Run, tmp_path: Path) -> None:
    """The slate is as if the failed event had not come, and the letter says what and where."""
    poison = {"word": "x", "ts": 2, "poison": True}
    put(tmp_path / "in", "a.json", *words(("x", 1)), poison, *words(("x", 3)))
    summary = run(counting(), settings(tmp_path))
    assert (summary.events, summary.dead_letters) == (3, 1)
    assert counts(tmp_path) == {"x": 2}
    (letter,) = kept_rows(tmp_path / "store", "deadletters")
    assert letter["function"] == "count"
    assert letter["key"] == "x"
    assert letter["value"] == poison
    assert "ValueError: poison" in letter["error"]
    assert "test_run.py" in letter["error"]


def test_on_error_fail_stops_with_the_users_line(run: Run, tmp_path: Path) -> None:
    """on_error="fail" ends the run with the function, the key and the user's line, and a run on
    mended code goes on from there with nothing lost."""
    put(tmp_path / "in", "a.json", *words(("x", 1)), {"word": "x", "ts": 2, "poison": True})
    with pytest.raises(RunError, match=r"update 'count' .*test_run.py.*key 'x'.*poison"):
        run(counting(on_error="fail"), settings(tmp_path))
    assert Home.open(tmp_path / "store").committed() == -1
    assert run(counting(), settings(tmp_path)).dead_letters == 1
    assert counts(tmp_path) == {"x": 1}


def test_a_malformed_line_is_a_dead_letter_with_file_and_line(run: Run, tmp_path: Path) -> None:
    """Torn, malformed and unusable lines become dead letters; the others are processed."""
    put(tmp_path / "in", "a.json", *words(("x", 1)))
    with open(tmp_path / "in" / "a.json", "a") as file:
        file.write('{"word": "x", "ts": 2}\nnot json\n{"ts": 3}\n{"word": "x", "t')
    run(counting(), settings(tmp_path))
    assert counts(tmp_path) == {"x": 2}
    letters = list(kept_rows(tmp_path / "store", "deadletters"))
    assert sorted(letter["line"] for letter in letters) == [3, 4, 5]
    assert all(letter["file"] == str(tmp_path / "in" / "a.json") for letter in letters)


def test_one_driver_at_a_time(run: Run, tmp_path: Path) -> None:
    """A second driver on the same store is refused, and says who holds it."""
    put(tmp_path / "in", "a.json", *words(("x", 1)))
    run(counting(), settings(tmp_path))
    with (
        held(tmp_path / "store"),
        pytest.raises(StoreLocked, match="another driver holds this store"),
    ):
        run(counting(), settings(tmp_path))


def test_waiting_events_are_not_left_behind_by_a_change_of_order(run: Run, tmp_path: Path) -> None:
    """Events that wait for the horizon would wait for ever in arrival order: that is refused, and
    the message says how to let them through first."""
    put(tmp_path / "in", "a.json", *words(("x", 1), ("x", 2), ("x", 3)))
    run(counting("event-time"), settings(tmp_path))
    with pytest.raises(StoreError, match=r"wait for the horizon.*--final"):
        run(counting("arrival"), settings(tmp_path))
    run(counting("event-time"), settings(tmp_path, final=True))
    run(counting("arrival"), settings(tmp_path))
    assert counts(tmp_path) == {"x": 3}


@pytest.mark.parametrize("how", ["lost", "damaged"])
def test_without_its_progress_a_store_is_refused(run: Run, tmp_path: Path, how: str) -> None:
    """A store whose record of the last batch is gone or damaged is not filled from the beginning
    again: the start says what to do, and when the record is back the slates are as they were."""
    put(tmp_path / "in", "a.json", *words(("x", 1)))
    run(counting(), settings(tmp_path))
    progress = tmp_path / "store" / "progress"
    content = progress.read_bytes()
    if how == "lost":
        progress.unlink()
    else:
        progress.write_bytes(content.replace(b'"events":1', b'"events":2'))
    with pytest.raises(StoreError, match=r"store/progress: .*(missing|damaged).*restore"):
        run(counting(), settings(tmp_path))
    progress.write_bytes(content)
    assert counts(tmp_path) == {"x": 1}
    assert run(counting(), settings(tmp_path)).events == 0


def alarms() -> ms.App:
    app = ms.App("counting", order="event-time")
    app.source("words", key="word", ts="ts", unit="us", idle="200ms")
    app.output("alarm")

    @app.update("words", publishes="alarm", slate=Count)
    def count(event: Any, slate: Any) -> Any:
        slate.count += 1
        yield ms.timer(after="300ms", name="event")
        yield ms.timer(after="100ms", name="wall", clock="wall")

    @count.on_timer
    def ring(timer: Any, slate: Any) -> Any:
        yield ms.emit(value=timer.name)

    return app


def test_timers_and_waiting_events_move_on_an_idle_stream(run: Run, tmp_path: Path) -> None:
    """With no new records batches keep coming: the waiting event is processed, its
    wall timer fires by the clock, and its event timer fires as the horizon moves on idle time."""
    put(tmp_path / "in", "a.json", *words(("x", 1)))
    given = settings(tmp_path, available_now=False, sinks={"alarm": f"json:{tmp_path / 'alarm'}"})
    stop, failed = threading.Event(), []

    def drive() -> None:
        try:
            run(alarms(), given, stop=stop)
        except BaseException as error:
            failed.append(error)

    driver = threading.Thread(target=drive)
    driver.start()
    deadline = time.monotonic() + 60
    rung: list[Any] = []
    while len(rung) < 2 and time.monotonic() < deadline and not failed:
        if (tmp_path / "alarm").exists():
            rung = [row["value"] for row in read_rows(str(tmp_path / "alarm"))]
        stop.wait(0.05)
    stop.set()
    driver.join(30)
    assert not failed
    assert sorted(rung) == ["event", "wall"]


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_a_batch_that_was_published_is_not_published_twice(
    run: Run, tmp_path: Path, lane: str
) -> None:
    """Output streams hold each event once, in content order, over several runs."""
    app = ms.App("counting")
    app.source("words", key="word", ts="ts", unit="us")
    app.output("loud")

    @app.map("words", publishes="loud")
    def shout(event: Any) -> Any:
        yield ms.emit(key=event.key.upper())

    sinks = {"loud": f"parquet:{tmp_path / 'loud'}"}
    put(tmp_path / "in", "a.json", *words(("b", 2), ("a", 1)))
    run(app, settings(tmp_path, sinks=sinks, lane=lane))
    put(tmp_path / "in", "b.json", *words(("c", 3)))
    run(app, settings(tmp_path, sinks=sinks, lane=lane))
    assert [row["key"] for row in read_rows(str(tmp_path / "loud"))] == ["A", "B", "C"]
