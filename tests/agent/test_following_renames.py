"""Files that are renamed at the very moment that an agent looks for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from millstream.agent.log import log_file_list, log_follower
from millstream.agent.log.log_files import LogFile, LogGap, Mark
from millstream.agent.log.log_follower import LogFollower

Rotate = Callable[[], None]


def lines_of(follower: LogFollower) -> list[bytes]:
    """All lines that can be read now."""
    found: list[bytes] = []
    while (chunk := follower.read()) is not None:
        found += chunk.data.splitlines()
    return found


class Log:
    """A log in a folder, whose rotation counts all old files up."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "app.log"
        self.rotations = 0
        self.gaps: list[LogGap] = []

    def write(self, *lines: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))

    def rotate(self) -> None:
        for number in range(self.rotations, 0, -1):
            os.rename(f"{self.path}.{number}", f"{self.path}.{number + 1}")
        self.rotations += 1
        os.rename(self.path, f"{self.path}.1")
        self.write(b"new %d" % self.rotations)

    def followed(self, position: Sequence[Mark] = ()) -> LogFollower:
        return LogFollower(
            [f"{self.path}*"], clock=lambda: 0.0, gap=self.gaps.append, position=position
        )


def rotating(monkeypatch: pytest.MonkeyPatch, log: Log, when: str, at: int) -> None:
    """The log is rotated after its names were listed, or before a file is opened by its name, for
    the time `at`."""
    calls = 0

    def counted() -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            log.rotate()

    def listed(*given: Any, **named: Any) -> list[str]:
        names = glob(*given, **named)
        counted()
        return names

    def opened(*given: Any) -> LogFile:
        counted()
        return LogFile(*given)

    if when == "listed":
        monkeypatch.setattr(log_file_list, "glob", listed)
    else:
        monkeypatch.setattr(log_follower, "LogFile", opened)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = Log(tmp_path)
    log.write(b"old 1", b"old 2")
    log.rotate()
    log.rotate()
    return log


@pytest.mark.parametrize("when", ["listed", "opened"])
@pytest.mark.parametrize("at", range(1, 8))
def test_a_rotation_while_it_starts_again(
    monkeypatch: pytest.MonkeyPatch, log: Log, when: str, at: int
) -> None:
    """Nothing is read again, nothing is missing, and no gap is reported."""
    first = log.followed()
    assert lines_of(first) == [b"old 1", b"old 2", b"new 1", b"new 2"]
    position = first.position()
    first.close()
    log.write(b"more")
    rotating(monkeypatch, log, when, at)
    again = log.followed(position)
    found = lines_of(again)
    again.look()
    found += lines_of(again)
    rotated = [b"new 3"] if log.rotations == 3 else []
    assert found == [b"more", *rotated]
    assert log.gaps == []


@pytest.mark.parametrize("when", ["listed", "opened"])
@pytest.mark.parametrize("at", range(1, 4))
def test_a_rotation_while_it_looks_for_new_files(
    monkeypatch: pytest.MonkeyPatch, log: Log, when: str, at: int
) -> None:
    """The older of two new files is read first, though it was renamed while they were listed."""
    follower = log.followed()
    lines_of(follower)
    log.rotate()
    rotating(monkeypatch, log, when, at)
    follower.look()
    found = lines_of(follower)
    follower.look()
    found += lines_of(follower)
    assert found == [b"new %d" % number for number in range(3, log.rotations + 1)]
    assert log.gaps == []
