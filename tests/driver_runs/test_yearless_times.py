"""A source whose times have no year, over a leap day, read in a later year."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from fault_runs.published_rows import read_log_rows
from millstream.driver.in_process import run
from millstream.model.time_text import time_reader
from millstream.settings.settings import Settings
from millstream.stores.home import log_of
from millstream.stores.reader import SlateReader

LINES = ("Feb 28 23:59:59 one", "Feb 29 00:00:01 two", "Mar  1 08:00:00 three")


@pytest.mark.parametrize("until", ["2024-03-02", None])
def test_a_leap_day_that_is_past(tmp_path: Path, until: str | None) -> None:
    """With its last day the log is of one year, in order. Without it the leap day is a dead letter
    that says so, and is in no year of its own, unless it was within the last year."""
    app = ms.App("logs", order="event-time")
    app.source(
        "lines",
        ts="time",
        time_format="%b %d %H:%M:%S",
        until=until,
        pattern=r"(?P<time>\w+ +\d+ \S+) (?P<text>\w+)",
    )

    @app.update("lines")
    def texts(event: Any, slate: Any) -> None:
        slate.setdefault("at", []).append([event.ts, event.value["text"]])

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.log").write_text("\n".join(LINES) + "\n")
    given = Settings.of(
        "logs",
        tmp_path / "store",
        {"lines": f"text:{tmp_path / 'in'}"},
        shards=2,
        available_now=True,
        final=True,
    )
    summary = run(app, given)
    with SlateReader(tmp_path / "store") as reader:
        slate = reader.get("texts", "")
    assert slate is not None
    if until is None:
        letters = read_log_rows(log_of(tmp_path / "store", "deadletters"))
        refused = [letter["error"] for letter in letters]
        assert len(refused) == summary.dead_letters <= 1  # none within a year of a leap day
        assert all("since its format has no year" in error for error in refused)
        return
    read = time_reader("%Y %b %d %H:%M:%S", None, "here")
    times = [read(f"2024 {line[:15]}", 0) for line in LINES]
    assert [ts for ts, _ in slate.value["at"]] == times
