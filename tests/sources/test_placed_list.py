"""The list of files of a shared store: in the place before a position can name a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from millstream.places import piece_log
from millstream.places.memory_place import MemoryPlace
from millstream.sources import record_log
from millstream.sources.files import FileLog
from millstream.sources.named_format import format_named
from millstream.sources.record_log import fetch_lists, list_pieces

JSON = format_named("json")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def added(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("{}\n")
        os.utime(folder / name, (1, 1))


def opened(place: MemoryPlace, path: Path) -> FileLog:
    return FileLog(str(path), JSON, write=True, pieces=list_pieces(place, "clicks"))


def paths(log: FileLog) -> list[str]:
    return [Path(split.path).name for split in log.splits([0, 0], log.end, 1 << 20)]


def test_another_host_has_the_same_numbers(tmp_path: Path, files: Path) -> None:
    """A driver that starts with nothing numbers the files as the one before, and goes on."""
    place = MemoryPlace()
    first = opened(place, tmp_path / "first")
    for name in "cab":
        added(files, name)
        first.refresh(str(files))
    second = opened(place, tmp_path / "second")
    assert paths(second) == ["c", "a", "b"]
    added(files, "d")
    assert second.refresh(str(files)).new == 1
    assert paths(opened(place, tmp_path / "third")) == ["c", "a", "b", "d"]
    fetch_lists(place, tmp_path)
    assert (tmp_path / "clicks.log").read_bytes() == (tmp_path / "third").read_bytes()


def test_two_drivers_agree(tmp_path: Path, files: Path) -> None:
    """While one does not know yet that it does not lead, both list files: each has one number."""
    place = MemoryPlace()
    logs = [opened(place, tmp_path / f"log{number}") for number in range(2)]
    added(files, "a", "b")
    logs[0].refresh(str(files))
    added(files, "c")
    assert logs[1].refresh(str(files)).new == 3
    added(files, "d")
    logs[0].refresh(str(files))
    logs[1].refresh(str(files))
    assert paths(logs[0]) == paths(logs[1]) == ["a", "b", "c", "d"]


def test_many_pieces_are_joined(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start with many pieces joins them, and the list is the same."""
    monkeypatch.setattr(piece_log, "JOIN_PIECES", 4)
    monkeypatch.setattr(record_log, "MANY_PIECES", 4)
    now = 0.0
    place = MemoryPlace(lambda: now)
    log = opened(place, tmp_path / "log")
    for number in range(20):
        now += 1000.0
        added(files, f"{number:02d}")
        log.refresh(str(files))
    for number in range(3):
        assert paths(opened(place, tmp_path / f"again{number}")) == paths(log)
    assert len([*place.list("sources/clicks/")]) < 10
