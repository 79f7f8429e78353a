"""Runs that end event time, over files: their output, its number of copies, and later runs."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import millstream as ms
from fault_runs.published_rows import read_log_rows
from millstream.driver.in_process import run
from millstream.driver.report import RunSummary
from millstream.elements import Sessionise
from millstream.settings.settings import Settings
from millstream.stores.home import Home, log_of
from millstream.stores.progress import Progress, decoded

MINUTE = 60_000_000
Click = tuple[str, int]
"""User and minute."""


def an_app(order: Any = "event-time") -> ms.App:
    """Sessions, and sessions of sessions."""
    app = ms.App("sessions", order=order)
    app.source("clicks", key="user", ts="at", unit="us", lateness="5m", ahead=None)
    app.output("sessions")
    app.output("visits")
    app.add(Sessionise(gap="30m"), keys="clicks", publishes="sessions", name="sessionise")
    app.add(Sessionise(gap="2h"), keys="sessions", publishes="visits", name="again")
    return app


def put(folder: Path, clicks: list[Click]) -> None:
    """Adds a file of clicks."""
    (folder / "in").mkdir(exist_ok=True)
    name = f"{len([*(folder / 'in').iterdir()])}.json"
    rows = [{"user": user, "at": minute * MINUTE} for user, minute in clicks]
    (folder / "in" / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def go(folder: Path, app: ms.App, *, stop_after: int | None = None, **given: Any) -> RunSummary:
    """Runs over the existing input. Stops after a number of batches, if one is given."""
    stop, seen = threading.Event(), []

    def count(report: Any) -> None:
        seen.append(report)
        if stop_after is not None and len(seen) >= stop_after:
            stop.set()

    sources = {"clicks": f"json:{folder / 'in'}"}
    settings = Settings.of(
        app.name,
        folder / "store",
        sources,
        **{"available_now": True, "shards": 3, "check_store": False, **given},
    )
    return run(app, settings, count, stop=stop)


def told(folder: Path, stream: str) -> list[tuple[str, int, int, int]]:
    """Key, first and last minute and events of the sessions that came out."""
    values = [row["value"] for row in read_log_rows(log_of(folder / "store", stream))]
    return sorted(
        (one["key"], one["from"] // MINUTE, one["to"] // MINUTE, one["events"]) for one in values
    )


def progress_of(folder: Path) -> Progress:
    return decoded(Home.open(folder / "store").read_progress())


CLICKS: list[Click] = [("ann", 0), ("bob", 3), ("ann", 20), ("bob", 50), ("ann", 55), ("bob", 60)]
SESSIONS = [("ann", 0, 20, 2), ("ann", 55, 55, 1), ("bob", 3, 3, 1), ("bob", 50, 60, 2)]


@pytest.mark.parametrize("order", ["arrival", "event-time"])
@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_what_is_open_comes_out(tmp_path: Path, order: str, lane: str) -> None:
    """Without `final` the open sessions are missing, and the summary says that timers wait; with
    it all of them come out, those of sessions too, and nothing is left."""
    put(tmp_path, CLICKS)
    without = go(tmp_path, an_app(order), lane=lane)
    assert len(told(tmp_path, "sessions")) < len(SESSIONS)
    assert without.timers
    result = go(tmp_path, an_app(order), lane=lane, final=True)
    assert told(tmp_path, "sessions") == SESSIONS
    assert sum(one[3] for one in told(tmp_path, "visits")) == len(SESSIONS)
    assert not result.timers
    assert result.waiting == 0
    assert sum(progress_of(tmp_path).slates.values()) == 0


def test_events_after_the_end_are_late(tmp_path: Path) -> None:
    """After a final run the horizon is where event time was ended, which the summary says: an event
    up to there is late, a later one is processed, and nothing comes out twice."""
    put(tmp_path, CLICKS)
    ended = go(tmp_path, an_app(), final=True).ended
    # The visits: two hours after the last session, which came out at its end.
    assert ended is not None
    assert ended // MINUTE == 60 + 30 + 120
    put(tmp_path, [("ann", 100), ("ann", 209), ("ann", 300)])
    result = go(tmp_path, an_app(), final=True)
    assert result.late == 2
    assert told(tmp_path, "sessions") == [*SESSIONS[:2], ("ann", 300, 300, 1), *SESSIONS[2:]]
    assert result.ended is not None
    assert result.ended > ended


def test_a_second_end_changes_nothing(tmp_path: Path) -> None:
    """With nothing new, a further final run takes no batch, also where a periodic timer is left."""
    app = ms.App("reports", order="event-time")
    app.source("clicks", key="user", ts="at", unit="us", ahead=None)
    app.output("counts")

    @app.update("clicks", publishes="counts", name="count")
    def count(event: Any, slate: Any) -> Any:
        slate["n"] = slate.get("n", 0) + 1
        if slate["n"] == 1:
            yield ms.timer(after="1m")

    @count.on_timer
    def say(timer: Any, slate: Any) -> Any:
        yield ms.emit(value=slate["n"])
        yield ms.timer(after="1m")

    def counts() -> list[tuple[int, int]]:
        rows = read_log_rows(log_of(tmp_path / "store", "counts"))
        return [(row["ts"] // MINUTE, row["value"]) for row in rows]

    put(tmp_path, [("ann", 0), ("ann", 2)])
    go(tmp_path, app, final=True)
    assert counts() == [(1, 1), (2, 2), (3, 2)]
    for final in (True, False, True):
        assert go(tmp_path, app, final=final).batches == 0
    put(tmp_path, [("ann", 5)])
    go(tmp_path, app, final=True)
    assert counts()[3:] == [(4, 2), (5, 3), (6, 3)]


def test_an_end_that_was_begun_is_finished_first(tmp_path: Path) -> None:
    """A run that is stopped while event time is being ended leaves a part of it; the next start
    finishes it before it reads on, without `final` too, and comes to the same result."""
    put(tmp_path, CLICKS)
    go(tmp_path, an_app())
    go(tmp_path, an_app(), stop_after=2, final=True)
    phase = progress_of(tmp_path).final
    assert phase is not None
    assert "again" not in phase.closed
    put(tmp_path, [("ann", 70), ("ann", 1_000)])
    result = go(tmp_path, an_app())
    assert progress_of(tmp_path).final is None
    assert result.late == 1
    assert told(tmp_path, "sessions") == SESSIONS
    assert sum(one[3] for one in told(tmp_path, "visits")) == len(SESSIONS)


@hypothesis_settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 400)), min_size=1, max_size=15),
    st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=8),
    st.sampled_from(["one-task", "shuffled"]),
)
def test_stopped_anywhere_it_comes_to_the_same(
    tmp_path_factory: Any, clicks: list[Click], stops: list[tuple[int, bool]], lane: str
) -> None:
    """However often a final run is stopped, and whether or not the starts between use `final`,
    every session of the input is emitted once."""
    folder = tmp_path_factory.mktemp("stopped")
    clicks = sorted(clicks, key=lambda click: click[1])
    put(folder, clicks)
    for batches, final in stops:
        go(folder, an_app(), stop_after=batches, final=final, lane=lane)
    go(folder, an_app(), final=True, lane=lane)
    whole = ms.testing.run(
        an_app(),
        {"clicks": [{"user": user, "at": at * MINUTE} for user, at in clicks]},
        final=True,
    )
    for stream in ("sessions", "visits"):
        values = [event.value for event in whole.stream(stream)]
        assert told(folder, stream) == sorted(
            (one["key"], one["from"] // MINUTE, one["to"] // MINUTE, one["events"])
            for one in values
        )
