"""The start of a run, and its end during a batch: by a stop, and by an error beside the batch."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.driver import driver
from millstream.driver.in_process import run
from millstream.errors import InputError, RunError
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader

HOUR = 3_600_000_000


class Held:
    """An application whose batch with the key "hold" waits until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go, self.over = (threading.Event() for _ in range(3))

    def app(self) -> ms.App:
        app = ms.App("held")
        app.source("words", key="word", ts="ts", unit="us")

        @app.update("words")
        def count(event: Any, slate: Any) -> None:
            if event.key == "hold":
                self.begun.set()
                assert self.go.wait(30)
                self.over.set()
            slate["n"] = slate.get("n", 0) + 1

        return app


def put(folder: Path, *words: str) -> None:
    """A file for each word; no two of them are of one batch."""
    (folder / "in").mkdir(exist_ok=True)
    for number, word in enumerate(words):
        line = json.dumps({"word": word, "ts": number}) + "\n"
        (folder / "in" / f"{number}.json").write_text(line)


def settings(folder: Path, **more: Any) -> Settings:
    given = {"shards": 2, "batch_bytes": 16, **more}
    return Settings.of("held", folder / "store", {"words": f"json:{folder / 'in'}"}, **given)


def counts(folder: Path) -> dict[str, int]:
    with SlateReader(folder / "store") as reader:
        return {slate.key: slate.value["n"] for slate in reader.scan("count")}


class Running:
    """A run in a thread of its own, and how it ended."""

    def __init__(self, app: ms.App, given: Settings) -> None:
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self._app, self._given = app, given
        self._thread = threading.Thread(target=self._drive, daemon=True)
        self._thread.start()

    def _drive(self) -> None:
        try:
            run(self._app, self._given, stop=self.stop)
        except BaseException as error:
            self.error = error

    def ended(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()


@pytest.mark.parametrize("flush", [None, HOUR], ids=["batch", "interval"])
def test_a_batch_that_ends_in_time_after_a_stop_is_committed(
    tmp_path: Path, flush: int | None
) -> None:
    """The run waits for it, and then ends."""
    put(tmp_path, "hold", "later")
    held = Held()
    running = Running(held.app(), settings(tmp_path, flush=flush))
    assert held.begun.wait(30)
    running.stop.set()
    held.go.set()
    assert running.ended(30)
    assert running.error is None
    assert counts(tmp_path) == {"hold": 1}


@pytest.mark.parametrize("flush", [None, HOUR], ids=["batch", "interval"])
def test_a_batch_that_takes_too_long_after_a_stop_never_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: int | None
) -> None:
    """The next start undoes its changes and processes it again, once."""
    monkeypatch.setattr(driver, "STOP_PATIENCE", 0.0)
    put(tmp_path, "first", "hold")
    held = Held()
    running = Running(held.app(), settings(tmp_path, flush=flush))
    assert held.begun.wait(30)
    running.stop.set()
    assert not running.ended(0.5)
    held.go.set()
    assert running.ended(30)
    assert running.error is None
    assert counts(tmp_path) == {"first": 1}
    run(held.app(), settings(tmp_path, flush=flush, available_now=True))
    assert counts(tmp_path) == {"first": 1, "hold": 1}


@pytest.mark.parametrize("flush", [None, HOUR], ids=["batch", "interval"])
def test_an_error_beside_a_batch_waits_for_its_tasks(tmp_path: Path, flush: int | None) -> None:
    """A source's folder disappears while a batch runs: the run ends with the error, but not while
    its tasks still write to the store, which would be free for another driver by then."""
    put(tmp_path, "first", "hold")
    held = Held()
    running = Running(held.app(), settings(tmp_path, flush=flush))
    assert held.begun.wait(30)
    (tmp_path / "in").rename(tmp_path / "away")
    early = running.ended(3)
    held.go.set()
    assert running.ended(30)
    assert held.over.wait(30)
    assert isinstance(running.error, InputError)
    assert not early, "the run ended while a task of its batch was running"
    (tmp_path / "away").rename(tmp_path / "in")
    run(held.app(), settings(tmp_path, flush=flush, available_now=True))
    assert counts(tmp_path) == {"first": 1, "hold": 1}


def test_a_run_says_that_it_has_started(tmp_path: Path) -> None:
    """First that it holds the store, then that batches run, also if there is no input yet."""
    put(tmp_path, "a")
    told: list[str] = []
    run(
        Held().app(),
        settings(tmp_path, available_now=True),
        lambda report: told.append("batch"),
        ready=lambda: told.append("ready"),
        running=lambda: told.append("running"),
    )
    assert told[:3] == ["ready", "running", "batch"]
    stop, told = threading.Event(), []
    stop.set()
    run(Held().app(), settings(tmp_path), stop=stop, running=lambda: told.append("running"))
    assert told == ["running"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
def test_a_function_that_ends_its_thread_ends_the_run(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    """With an error that says where, and nothing of the batch is committed. It is no dead letter,
    since such an exception is not about an event; and the run does not wait for its thread."""
    app = ms.App("held")
    app.source("words", key="word", ts="ts", unit="us")

    @app.update("words")
    def count(event: Any, slate: Any) -> None:
        slate["n"] = slate.get("n", 0) + 1
        if event.key == "wrong":
            raise kind("over")

    put(tmp_path, "right", "wrong")
    running = Running(app, settings(tmp_path, available_now=True, final=True))
    assert running.ended(30)
    assert isinstance(running.error, RunError)
    assert f"{kind.__name__}: over (" in str(running.error)
    assert "in count)" in str(running.error)
