"""A run in the background that is poured into: what is waited for is committed, or it says why."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.driver import in_process
from millstream.driver.pour.background_run import BackgroundRun
from millstream.driver.pour.pour_storage import FolderPourStorage
from millstream.driver.pour.poured_log import Piece, PouredLog
from millstream.errors import RunError, StoreLocked
from millstream.log.retention import Retention
from millstream.settings.settings import Settings
from millstream.stores.home import held, log_of
from millstream.stores.reader import SlateReader


def counting(*, fails: bool = False) -> ms.App:
    app = ms.App("counting", on_error="fail")
    app.source("words", key="word")

    @app.update("words")
    def count(event: Any, slate: Any) -> None:
        if fails and event.key == "poison":
            raise ValueError("poison")
        slate["count"] = slate.get("count", 0) + 1

    return app


@contextmanager
def running(store: Path, app: ms.App, work: Any = in_process.run) -> Iterator[BackgroundRun]:
    settings = Settings.of(app.name, store, {"words": "log"}, shards=2)
    run = BackgroundRun(store, partial(work, app, settings))
    run.start()
    try:
        yield run
    finally:
        run.close()


def pour(store: Path, batch: int, *words: str) -> list[int]:
    """Pour the words, as one batch, unless that was done; where they end."""
    lines = b"".join(b'{"word":"%s"}\n' % word.encode() for word in words)
    storage = FolderPourStorage(store, "words", log_of(store, "words"), Retention())
    with closing(PouredLog(storage, "words")) as log:
        if not log.has("query", batch):
            log.pour("query", batch, [Piece(lines)])
        return log.end


def counts(store: Path) -> dict[str, int]:
    with SlateReader(store) as reader:
        return {slate.key: slate.value["count"] for slate in reader.scan("count")}


def test_what_was_waited_for_is_committed(tmp_path: Path) -> None:
    """After the wait the slates have the batch; a repeat changes nothing, nor does a new run."""
    for number in range(2):
        with running(tmp_path, counting()) as run:
            run.wait_for("words", pour(tmp_path, 0, "a", "b", "a"))
            assert counts(tmp_path) == {"a": 2 + number, "b": 1}
            for _ in range(2):
                run.wait_for("words", pour(tmp_path, 1 + number, "a"))
                assert counts(tmp_path) == {"a": 3 + number, "b": 1}


def test_a_batch_without_records_is_not_waited_for(tmp_path: Path) -> None:
    """The first batch of a query may be empty."""
    with running(tmp_path, counting()) as run:
        run.wait_for("words", pour(tmp_path, 0))


def test_a_run_that_fails_says_so_and_goes_on_when_it_is_mended(tmp_path: Path) -> None:
    """A waiting caller gets the error that ended the run. The next start neither loses nor repeats
    anything."""
    with running(tmp_path, counting(fails=True)) as run:
        run.wait_for("words", pour(tmp_path, 0, "a"))
        with pytest.raises(RunError, match=r"update 'count'.*key 'poison'.*ValueError"):
            run.wait_for("words", pour(tmp_path, 1, "a", "poison"))
        assert run.ended
    with running(tmp_path, counting()) as run:
        run.wait_for("words", pour(tmp_path, 1, "a", "poison"))
    assert counts(tmp_path) == {"a": 2, "poison": 1}


def test_a_store_that_another_holds_is_refused_at_the_start(tmp_path: Path) -> None:
    """The start raises what kept it from the store."""
    with held(tmp_path), pytest.raises(StoreLocked), running(tmp_path, counting()):
        pass


def test_a_run_that_is_stopped_leaves_nobody_waiting(tmp_path: Path) -> None:
    """A wait for what will not come ends with the run."""
    with running(tmp_path, counting()) as run:
        threading.Timer(0.05, run.stop).start()
        with pytest.raises(RunError, match="stopped before"):
            run.wait_for("words", [1 << 40, 1 << 40])


def test_a_failure_that_is_not_ours_is_said_with_its_kind(tmp_path: Path) -> None:
    """A bug does not look like a stop."""

    def broken(app: Any, settings: Any, *, ready: Any, **more: Any) -> None:
        ready()
        raise KeyError("gone")

    with (
        running(tmp_path, counting(), broken) as run,
        pytest.raises(RunError, match="KeyError: 'gone'"),
    ):
        run.wait_for("words", [1, 1])
