"""A stop while Spark runs a batch that takes too long: the batch is cancelled, and done later."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.settings.settings import Settings
from millstream.spark.runner import run
from millstream.stores.reader import SlateReader

pytestmark = pytest.mark.spark
RECORDS = 60


def slow(folder: Path) -> ms.App:
    """Takes half a second for each event, until it is told to hurry."""
    app = ms.App("slow")
    app.source("numbers", ts="ts", unit="us")

    @app.update("numbers")
    def hear(event: Any, slate: Any) -> None:
        if not (folder / "hurry").exists():
            (folder / "begun").touch()
            time.sleep(0.5)
        slate.setdefault("heard", []).append(event.ts)

    return app


def settings(folder: Path, *, available_now: bool, lane: Any) -> Settings:
    sources = {"numbers": f"json:{folder / 'in'}"}
    return Settings.of(
        "slow", folder / "store", sources, available_now=available_now, shards=2, lane=lane
    )


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_stopped_in_a_slow_batch(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], lane: str
) -> None:
    """The application ends soon, without noise, with nothing half done; the next start does the
    batch."""
    (tmp_path / "in").mkdir()
    lines = "".join(json.dumps({"ts": number}) + "\n" for number in range(RECORDS))
    (tmp_path / "in" / "1.json").write_text(lines)
    stop, ended = threading.Event(), []

    def drive() -> None:
        given = settings(tmp_path, available_now=False, lane=lane)
        ended.append(run(slow(tmp_path), given, context=spark, stop=stop))

    thread = threading.Thread(target=drive)
    thread.start()
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    stop.set()
    thread.join(15)
    assert [summary.events for summary in ended] == [0]
    assert capfd.readouterr().err == ""
    (tmp_path / "hurry").touch()
    run(slow(tmp_path), settings(tmp_path, available_now=True, lane=lane), context=spark)
    with SlateReader(tmp_path / "store") as reader:
        slate = reader.get("hear", "")
    assert slate is not None
    assert slate.value["heard"] == list(range(RECORDS))
