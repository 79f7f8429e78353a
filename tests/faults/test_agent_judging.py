"""The records that the agents' fault runs count as lost and doubled."""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fault_runs.agents import judging
from fault_runs.agents.app import APPS, NAME, NODE, job_of
from fault_runs.agents.struck import POINTS
from fault_runs.agents.writing import Log, Rotation
from millstream.windows.panes.message import Message
from millstream.windows.panes.pane_maker import Maker, Making

JOB = job_of(APPS["by_sequence"])
SPAN = JOB.span


def logged(folder: Path, rotation: Rotation = "rename") -> Log:
    """A log of some windows, with two rotations."""
    log = Log(folder / "log", SPAN, Random(3), rotation)
    for _ in range(3):
        log.write(700)
        log.rotate()
    log.write(300)
    log.close()
    return log


def lines_of(folder: Path) -> list[bytes]:
    """All lines of a log, the oldest first."""
    files = [folder / "log" / f"app.log.{number}" for number in (3, 2, 1)]
    files.append(folder / "log" / "app.log")
    return b"".join(file.read_bytes() for file in files).splitlines()


def messages_of(lines: list[bytes]) -> list[Message]:
    """Returns the messages of a node without faults about the lines."""
    maker, making = Maker(JOB, NODE), Making()
    found: list[Message] = []
    for line in lines:
        try:
            record = json.loads(line)
            found += maker.take(making, record, 0, len(line))
        except (ValueError, KeyError):
            maker.dead(making, len(line))
    last = SPAN.windows_of(making.pane or 0)[-1]
    found += maker.end(making, SPAN.panes_of(last)[-1] + 1)
    return deepcopy(found)


def told(log: Log, messages: list[Message]) -> tuple[int, int]:
    found = judging.told(messages, {NODE: log.truth})
    return found.lost, found.doubled


def windows(log: Log, messages: list[Message], late: Counter[int] | None = None) -> tuple[int, int]:
    run = judging.in_memory(APPS["by_sequence"], messages)
    rows = [(event.key, event.value) for event in run.stream(NAME)]
    found = judging.windows(SPAN, judging.answers(SPAN, rows), [log.truth], late)
    return found.lost, found.doubled


@pytest.mark.parametrize("rotation", ["rename", "copy"])
def test_a_node_without_faults_loses_and_doubles_nothing(tmp_path: Path, rotation: Any) -> None:
    """The truth of a log is what is in its files, whichever way they were rotated."""
    log = logged(tmp_path, rotation)
    lines = lines_of(tmp_path)
    assert len(lines) == log.truth.lines == 2_400
    assert log.truth.dead > 10
    messages = messages_of(lines)
    assert told(log, messages) == windows(log, messages) == (0, 0)


def test_a_message_that_is_missing_is_lost(tmp_path: Path) -> None:
    """Its lines, and what its window does not say."""
    log = logged(tmp_path)
    messages = messages_of(lines_of(tmp_path))
    gone = messages.pop(5)
    lost, doubled = told(log, messages)
    assert lost > gone.nodes[NODE].records > 0
    assert doubled == 0
    assert windows(log, messages)[0] > 0


def test_a_message_that_comes_again_counts_once(tmp_path: Path) -> None:
    """As the root takes none whose pane it has."""
    log = logged(tmp_path)
    messages = messages_of(lines_of(tmp_path))
    messages.insert(9, deepcopy(messages[4]))
    assert told(log, messages) == windows(log, messages) == (0, 0)
    assert judging.accounts(messages)[NODE].repeated == 1


def test_lines_that_are_counted_twice_are_doubled(tmp_path: Path) -> None:
    """A node that reads a part of its log again says too much, in the counts and in the sums."""
    log = logged(tmp_path)
    lines = lines_of(tmp_path)
    messages = messages_of([*lines[:1_000], *lines[990:]])
    assert told(log, messages)[1] >= 9
    assert windows(log, messages)[1] > 0


def test_late_lines_are_counted_and_not_lost(tmp_path: Path) -> None:
    """Lines that a manifest counts as late are neither. A window may lack them, but never has
    more."""
    log = logged(tmp_path)
    lines = lines_of(tmp_path)
    at = next(n for n, line in enumerate(lines) if n > 50 and b'"line"' in line)
    messages = messages_of([*lines[:at], *lines[at + 1 : 800], lines[at], *lines[800:]])
    late = judging.accounts(messages)[NODE].late
    assert late.total() == 1
    assert told(log, messages) == (0, 0)
    assert windows(log, messages, late) == (0, 0)
    assert windows(log, messages) == (1, 0)


def test_a_residual_is_a_loss(tmp_path: Path) -> None:
    """A reader that has counted more lines than its panes have is found out."""
    log = logged(tmp_path)
    messages = messages_of(lines_of(tmp_path))
    for message in messages:
        message.nodes[NODE].total += 1
    assert told(log, messages) != (0, 0)


def test_points_of_strikes():
    """Each point at which an agent can be killed names a function that is there."""
    for owner, name, _ in POINTS.values():
        assert callable(getattr(owner, name))
