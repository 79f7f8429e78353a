"""Files of a log in unusual trouble: numbers that come back, rights that are taken, very many."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_following import Log

from millstream.agent.log import log_follower
from millstream.agent.log.first_seen_times import FirstSeenTimes
from millstream.agent.log.log_follower import LINGER


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def rotate(log: Log) -> None:
    """Rotates the log. Two old files are kept."""
    for old, new in (("app.log.1", "app.log.2"), ("app.log", "app.log.1")):
        if (log.folder / old).exists():
            (log.folder / old).rename(log.folder / new)


@pytest.mark.parametrize(("first", "second"), [(30, 10), (1, 50)])
def test_the_number_of_a_file_that_was_deleted_comes_back(
    log: Log, first: int, second: int
) -> None:
    """Rotation deletes the oldest file, which was closed. The new file, or the renamed one, may get
    its inode number. It is read whole, and no gap is reported."""
    for line in ("c" * first, "b" * second, "a"):
        rotate(log)
        log.write(line)
        log.read()
    log.read(LINGER + 1)
    log.read(LINGER + 1)
    rotate(log)
    log.write("d")
    assert log.read() == ["d"]
    assert log.read() == []
    assert log.gaps == []


def test_a_file_that_may_not_be_read_when_the_agent_starts(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading resumes at the same position once the file is readable again, also after another
    restart."""
    log.write("a", "b")
    assert log.read() == ["a", "b"]
    position = log.follower.position()
    log.follower.close()
    true_open = os.open

    def refused(path: Any, *more: Any) -> int:
        if Path(path) == log.path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return true_open(path, *more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        log.start(position)
        assert log.read() == []
        assert log.follower.unreadable == {str(log.path): "Permission denied"}
        log.again()
    log.write("c")
    assert log.read() == ["c"]
    assert log.gaps == []


def test_a_disk_that_fails_for_a_while(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of reading is said and tried again: the file is not taken for gone, nor for new."""
    log.write("a")
    assert log.read() == ["a"]
    log.write("b")

    def broken(*given: Any) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", broken)
        assert log.read() == []
    assert log.follower.unreadable == {str(log.path): "Input/output error"}
    assert log.read() == ["b"]
    assert log.gaps == []


def test_of_very_many_files_few_are_open(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are read, in their order, and none twice after a start."""
    monkeypatch.setattr(log_follower, "MOST_OPEN", 20)
    written = [f"{number:03}" for number in range(100)]
    for line in reversed(written):
        log.write(line, to=f"app.log.{200 - int(line)}")
    log.follower.close()
    log = Log(log.folder, first_time=int, pane_of=lambda line: int(line) // 7)
    assert log.read() == written
    handles = Path("/proc/self/fd")
    mine = [os.readlink(one) for one in handles.iterdir() if one.exists()]
    assert sum(str(log.folder) in one for one in mine) <= 21
    log.again()
    assert log.read() == []
    log.write("100", to="app.log.150")
    assert log.read() == ["100"]
    assert log.gaps == []


def test_cut_off_and_written_again_with_the_same_beginning(log: Log) -> None:
    """A long banner that is the same each time does not hide that the rest is new."""
    banner = "#" * 300
    log.write(banner, "a")
    log.read()
    log.path.write_text("")
    log.write(banner, "b", "c", "d")
    assert log.read() == [banner, "b", "c", "d"]
    assert [gap.why for gap in log.gaps] == ["it was truncated"]


def test_rotation_while_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The known times of a file that was copied and truncated are written when there is room,
    before the time of any later record. After a restart the same times are known."""
    stamps = FirstSeenTimes(tmp_path / "stamps")
    log = Log(tmp_path, stamps=stamps)
    log.write("a", "b")
    log.read()
    stamps.stamp(log.follower._files[0].key, 0, 4, 4, now=100)
    shutil.copy(log.path, tmp_path / "app.log.1")
    log.write("b2", to="app.log.1")
    log.path.write_text("")
    log.write("c")

    def full(*given: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        assert log.read() == ["b2", "c"]
        copy, new = (file.key for file in log.follower._files)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                stamps.stamp(new, 0, 2, 2, now=200)
    assert stamps.stamp(new, 0, 2, 2, now=300) == 200
    again = FirstSeenTimes(tmp_path / "stamps")
    assert [again.stamp(copy, 2, 2, 4, now=999), again.stamp(new, 0, 2, 2, now=999)] == [100, 200]
    assert log.gaps == []


def test_times_of_a_file_that_is_gone_at_the_start_are_forgotten(tmp_path: Path) -> None:
    """A new file may have its number and its first line, but not the times of its records."""
    stamps = FirstSeenTimes(tmp_path / "stamps")
    log = Log(tmp_path, stamps=stamps)
    log.write("a", "b")
    log.read()
    key, position = log.follower._files[0].key, log.follower.position()
    stamps.stamp(key, 0, 4, 4, now=100)
    log.path.unlink()
    log.start(position)
    assert stamps.stamp(key, 0, 4, 4, now=200) == 200


def again(log: Log, start: list[dict[str, Any]], end: list[dict[str, Any]]) -> list[str]:
    """Reads the lines between two positions again."""
    chunks = log.follower.again(start, end)
    return [line for chunk in chunks for line in chunk.data.decode().splitlines()]


def cut(log: Log, copy: str) -> None:
    shutil.copy(log.path, log.folder / copy)
    os.truncate(log.path, 0)


def test_going_back_over_a_file_that_was_copied_and_cut_off(log: Log) -> None:
    """Reading again between two positions always gives the same lines: from the copy, if there is
    one, and never other lines that are now at the same place."""
    log.write("a1", "b1")
    log.read()
    first = log.follower.position()
    log.write("c1")
    cut(log, "app.log.2")
    log.write("d1")
    assert log.read() == ["c1", "d1"]
    second = log.follower.position()
    assert again(log, first, second) == ["c1", "d1"]
    log.write("e1", "f1")
    log.read()
    third = log.follower.position()
    cut(log, "app.log.1")
    log.write("g1", "h1", "i1", "j1")
    assert log.read() == ["g1", "h1", "i1", "j1"]
    assert again(log, second, third) == ["e1", "f1"]
    assert again(log, third, log.follower.position()) == ["g1", "h1", "i1", "j1"]
    (log.folder / "app.log.1").unlink()
    log.read(LINGER + 1)
    with pytest.raises(FileNotFoundError, match="gone, or was truncated"):
        again(log, second, third)
