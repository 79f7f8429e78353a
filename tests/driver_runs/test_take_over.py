"""A driver that takes over leads from its first commit on, whatever it still has to do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from driver_runs.test_failing_sinks import ALL, settings

import millstream as ms
from fault_runs.published_rows import read_rows
from millstream.driver.in_process import run
from millstream.errors import RunError, SinkError
from millstream.places.directory_place import DirectoryPlace
from millstream.sinks.files import FileSink
from millstream.stores.shared.leader_beat import LeaderBeat, last_beat

PATIENCE = 10.0


def test_a_driver_beats_while_it_waits_for_a_sink_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last driver left a batch that its sink did not take. Until the sink takes it, the next
    driver runs no batch; its beats keep a standby from taking over meanwhile."""
    place, failing, publish = DirectoryPlace(tmp_path / "place"), [True], FileSink.publish

    def publish_or_fail(sink: FileSink, batch: int, rows: list[dict[str, Any]]) -> None:
        if failing and rows:
            raise SinkError("sink out: a test made it fail")
        publish(sink, batch, rows)

    monkeypatch.setattr(FileSink, "publish", publish_or_fail)
    app = ms.App("breaking")
    app.source("words", key="word", ts="ts", unit="us")
    app.output("loud")

    @app.map("words", publishes="loud")
    def shout(event: Any) -> Any:
        yield ms.emit(value=event.key.upper())

    given: dict[str, Any] = {"place": place.address, "cache": str(tmp_path / "cache")}
    with pytest.raises(RunError, match="sink_patience"):
        run(app, settings(tmp_path, sink_patience=0, **given))
    before, beats = last_beat(place), list[LeaderBeat]()
    assert before is not None
    assert not before.ended

    def say(sentence: str) -> None:
        until = time.monotonic() + PATIENCE
        while not beats and time.monotonic() < until:
            beat = last_beat(place)
            if beat is not None and beat.run != before.run:
                beats.append(beat)
            time.sleep(0.01)
        failing.clear()

    run(app, settings(tmp_path, **given), say=say)
    assert beats
    assert not beats[0].ended
    after = last_beat(place)
    assert after is not None
    assert after.ended
    assert [row["value"] for row in read_rows(str(tmp_path / "out"))] == ALL
