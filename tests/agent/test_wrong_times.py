"""Times of a log that are late, wrong or of another year: what the agent does and says."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

from agent_runs import manifests, once, placed, running, write
from taking_root import Root

import millstream as ms


def test_much_that_is_late_is_said_once(tmp_path: Path, log: Path, root: Root) -> None:
    """A log whose times go back by hours: the agent says what is likely."""
    hour = 3_600
    write(
        log, *((10 * hour + n, "a") for n in range(60)), *((5 * hour + n, "b") for n in range(90))
    )
    with running(tmp_path, root, placed(), once=True) as agent:
        agent.ended()
    (said,) = [one for one in agent.said if "came late" in one]
    assert said.startswith("warning: web1: ")
    assert said.endswith("up to 5h behind: is its log in another time zone (zone)?")


def test_seconds_that_are_taken_for_milliseconds_are_said_once(
    tmp_path: Path, log: Path, root: Root
) -> None:
    """Their times are of 1970, which could be meant. The agent says what is likely."""
    now = time.time_ns() // 1_000_000_000
    write(log, *((now + n, "a") for n in range(3)))
    logs = ms.windows.Logs(ts="ts", unit="ms")
    with running(tmp_path, root, replace(placed(), logs=logs), once=True) as agent:
        status = agent.ended()
    assert (status["read"], status["on_time"]) == (3, 3)
    (said,) = [one for one in agent.said if "likely to be" in one]
    assert said.startswith("warning: web1: its times are likely to be in seconds (unit='s')")


def test_a_leap_day_of_an_older_log(tmp_path: Path, log: Path, root: Root) -> None:
    """Times without a year, of a log that ended long ago: with its last day, all are of the year in
    which they were written, and none is late."""
    lines = ("Feb 28 23:59:59", "Feb 29 00:00:01", "Mar  1 08:00:00")
    log.write_text("".join(f"{line} a\n" for line in lines))
    logs = ms.windows.Logs(
        pattern=r"(?P<time>\w+ +\d+ \S+) (?P<line>\w+)",
        ts="time",
        time_format="%b %d %H:%M:%S",
        until="2024-03-02",
    )
    status = once(tmp_path, root, placed(logs, range="1d", pane="1d"))
    assert (status["on_time"], status["late"], status["dead"]) == (3, 0, 0)
    days = [pane for pane, _, _, records, _ in manifests(root) if records]
    assert days == [19_781, 19_782, 19_783]  # 28 February to 1 March 2024


def test_much_that_is_set_aside_for_its_times_is_said_once(
    tmp_path: Path, log: Path, root: Root
) -> None:
    """A log whose times are in milliseconds is read with the unit of seconds: the agent says how
    much it has set aside, and its dead letters which unit is likely."""
    now = time.time_ns() // 1_000_000_000
    write(log, (now, "a"), *((now * 1_000 + n, "b") for n in range(150)))
    with running(tmp_path, root, placed(), once=True) as agent:
        status = agent.ended()
    assert (status["read"], status["dead"], status["misdated"]) == (151, 150, 150)
    (said,) = [one for one in agent.said if "set aside" in one]
    assert said.startswith("warning: web1: ")
    assert "unit, format or zone" in said
    letters = next((tmp_path / "state").rglob("dead-letters.jsonl")).read_text().splitlines()
    assert "it is likely to be in milliseconds: unit='ms'" in json.loads(letters[0])["error"]
