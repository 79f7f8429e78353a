"""The files of a log: every line is read once, whatever is done to the files."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from millstream.agent.log.log_files import LONGEST, Mark
from millstream.agent.log.log_follower import HOLD, LINGER, LogFollower, LogGap


class Log:
    """A log in a folder, and an agent's eyes on it."""

    def __init__(self, folder: Path, pattern: str = "app.log*", **options: Any) -> None:
        self.folder = folder
        self.path = folder / "app.log"
        self.now = 0.0
        self.gaps: list[LogGap] = []
        self.lines: list[str] = []
        self.too_long: list[int] = []
        self._pattern, self._options = str(folder / pattern), options
        self.start()

    def start(self, position: Sequence[Mark] = ()) -> None:
        """Look at the log for the first time, or again from a position."""
        self.follower = LogFollower(
            [self._pattern],
            clock=lambda: self.now,
            gap=self.gaps.append,
            position=position,
            **self._options,
        )

    def again(self) -> None:
        """End, and start where it was."""
        position = self.follower.position()
        self.follower.close()
        self.start(position)

    def write(self, *lines: str, to: str = "app.log") -> None:
        with (self.folder / to).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def read(self, seconds: float = 1.0) -> list[str]:
        """Look, and read all there is; the new lines."""
        before = len(self.lines)
        self.now += seconds
        self.follower.look()
        while chunk := self.follower.read():
            if chunk.too_long:
                self.too_long.append(chunk.size)
            else:
                self.lines += chunk.data.decode().splitlines()
        return self.lines[before:]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_a_file_is_read_as_it_grows(log: Log) -> None:
    """Lines come as they are written, files that appear later too, and none twice."""
    assert log.read() == []
    assert log.follower.empty
    log.write("a", "b")
    assert log.read() == ["a", "b"]
    assert log.read() == []
    log.write("c")
    assert log.read() == ["c"]


def test_a_last_line_waits_for_its_end(log: Log) -> None:
    """A line without a line end is not read yet. Later it is read whole."""
    log.path.write_text("a\nhal")
    assert log.read() == ["a"]
    with log.path.open("a") as file:
        file.write("f\n")
    assert log.read() == ["half"]


def test_with_once_the_last_line_needs_no_end(tmp_path: Path) -> None:
    """A log that is finished is read to its last byte."""
    (tmp_path / "app.log").write_text("a\nhalf")
    log = Log(tmp_path, once=True)
    assert log.read() == ["a", "half"]


def test_rotation_by_name(log: Log) -> None:
    """A file that is renamed is read to its end before the new one, which has its own beginning."""
    log.write("a")
    assert log.read() == ["a"]
    log.write("b")
    log.path.rename(log.folder / "app.log.1")
    log.write("c")
    log.write("b2", to="app.log.1")  # its writer had not noticed
    assert log.read() == ["b", "b2", "c"]
    (log.folder / "app.log.1").rename(log.folder / "app.log.2")
    log.path.rename(log.folder / "app.log.1")
    log.write("d")
    assert log.read() == ["d"]
    assert log.gaps == []


def test_rotation_out_of_sight(tmp_path: Path) -> None:
    """A file whose new name does not match is read to its end all the same, also after a start."""
    log = Log(tmp_path, pattern="app.log")
    log.write("a")
    assert log.read() == ["a"]
    log.write("b")
    log.path.rename(tmp_path / "app.log.1")
    log.write("c")
    assert log.read() == ["b", "c"]
    log.write("d")
    log.path.rename(tmp_path / "old.log")
    log.again()
    log.write("e")
    assert log.read() == ["d", "e"]
    assert log.gaps == []


def test_copied_and_cut_off(log: Log) -> None:
    """The rest of a log that was copied and cut off is read from the copy, before the new lines."""
    log.write("a", "b")
    assert log.read() == ["a", "b"]
    log.write("c")
    shutil.copy(log.path, log.folder / "app.log.1")
    assert log.read() == ["c"]  # not yet cut off: the copy waits
    os.truncate(log.path, 0)
    log.write("d")
    assert log.read() == ["d"]
    shutil.copy(log.path, log.folder / "app.log.2")
    log.write("lost to the copy, as it happens with this way of rotating")
    shutil.copy(log.path, log.folder / "app.log.2")
    os.truncate(log.path, 0)
    log.write("e")
    assert log.read() == ["lost to the copy, as it happens with this way of rotating", "e"]
    assert log.gaps == []


def test_copied_and_cut_off_out_of_sight(tmp_path: Path) -> None:
    """The copy is found beside the file, whether the pattern has it or not."""
    log = Log(tmp_path, pattern="app.log")
    log.write("a")
    log.read()
    log.write("b")
    shutil.copy(log.path, tmp_path / "yesterday")
    os.truncate(log.path, 0)
    log.write("c")
    assert log.read() == ["b", "c"]
    assert log.gaps == []


def test_cut_off_and_written_over_between_two_looks(log: Log) -> None:
    """A file that is longer than before, and yet another one, is read from its beginning."""
    log.write("a", "b")
    assert log.read() == ["a", "b"]
    log.path.write_text("quite other lines\nthan those before\n")
    assert log.read() == ["quite other lines", "than those before"]
    assert [gap.why for gap in log.gaps] == ["it was truncated"]


def test_cut_off_without_a_copy_is_a_gap(log: Log) -> None:
    """Bytes that were seen but not read before a truncation are reported, with their number."""
    log.write("a")
    log.read()
    log.write("bbb", "ccc")
    log.now += 1
    log.follower.look()
    os.truncate(log.path, 0)
    assert log.read() == []
    assert [(gap.offset, gap.known_bytes) for gap in log.gaps] == [(2, 8)]
    log.write("d")
    assert log.read() == ["d"]


def test_deleted_while_it_is_open(log: Log) -> None:
    """A file that was deleted is read to its end, and its last line needs no end then."""
    log.write("a")
    log.read()
    with log.path.open("a") as file:
        file.write("b\nc")
        file.flush()
        log.path.unlink()
        log.write("d")
        assert log.read() == ["b", "d"]
        file.write("c\n")
        file.flush()
        assert log.read() == ["cc"]
        file.write("last")
    assert log.read() == []
    assert log.read(LINGER + 1) == ["last"]
    assert log.gaps == []


def test_gone_before_a_start_is_a_gap(log: Log) -> None:
    """A file that was not read to its end and is gone when the agent starts is told."""
    log.write("a", "b")
    log.read()
    position = log.follower.position()
    log.path.unlink()
    log.start(position)
    assert [(gap.offset, gap.known_bytes) for gap in log.gaps] == [(4, 0)]
    log.write("c")
    assert log.read() == ["c"]


def test_what_was_read_and_rotated_away_is_no_gap(log: Log) -> None:
    """A file that was read to its end, after which the log went on, may go."""
    log.write("a")
    log.path.rename(log.folder / "app.log.1")
    log.write("b")
    log.read()
    (log.folder / "app.log.1").unlink()
    log.again()
    assert log.gaps == []


def test_a_merged_log_beside_it_is_no_copy(log: Log) -> None:
    """A file outside the pattern begins like a deleted file that was read, and also has all later
    lines. Nothing of it is read at the next start."""
    log.write("1", "2")
    log.path.rename(log.folder / "app.log.1")
    log.write("3")
    assert log.read() == ["1", "2", "3"]
    (log.folder / "merged").write_text("1\n2\n3\n")
    (log.folder / "app.log.1").unlink()
    log.again()
    log.write("4")
    assert log.read() == ["4"]
    assert log.gaps == []


def test_the_rest_is_in_a_compressed_file_and_in_a_merged_log(log: Log) -> None:
    """If a file was not read to its end, the rest is read from the file that belongs to the log."""
    log.write("1", "2")
    log.read()
    log.write("3")
    position = log.follower.position()
    log.follower.close()
    (log.folder / "merged").write_text("1\n2\n3\n4\n")
    with gzip.open(log.folder / "app.log.1.gz", "wt") as packed:
        packed.write("1\n2\n3\n")
    log.path.unlink()
    log.write("4")
    log.start(position)
    assert log.read() == ["3", "4"]
    assert log.gaps == []


def test_a_device_that_has_another_number(log: Log) -> None:
    """After a start of the machine disks may be numbered anew: files are known by their content."""
    log.write("a")
    log.path.rename(log.folder / "app.log.1")
    log.write("b")
    log.read()
    position = [replace(mark, id=f"9{mark.id}") for mark in log.follower.position()]
    log.write("c")
    log.start(position)
    assert log.read() == ["c"]
    assert log.gaps == []


def test_oldest_first(tmp_path: Path) -> None:
    """Files that are there at the start are read by the time of their first line, or by their own
    time, and of two that were written at once the one with the higher number first."""
    for name, line in (("app.log", "3"), ("app.log.1", "2"), ("app.log.2", "1")):
        (tmp_path / name).write_text(f"{line}\n")
        os.utime(tmp_path / name, (5, 5))
    assert Log(tmp_path).read() == ["1", "2", "3"]
    os.utime(tmp_path / "app.log.1", (4, 4))
    assert Log(tmp_path).read() == ["2", "1", "3"]
    assert Log(tmp_path, first_time=int).read() == ["1", "2", "3"]


def test_two_logs_are_read_pane_by_pane(tmp_path: Path) -> None:
    """Of several files with lines to read, none gets ahead of the others by more than a pane. A
    line without a pane delays no file."""
    (tmp_path / "app.log.a").write_text("".join(f"{number}\n" for number in range(0, 100)))
    (tmp_path / "app.log.b").write_text("".join(f"{number}\n" for number in range(5, 105)))

    def pane_of(line: bytes) -> int | None:
        return int(line) // 10 if line.isdigit() else None

    log = Log(tmp_path, first_time=int, pane_of=pane_of)
    panes = [int(line) // 10 for line in log.read()]
    assert panes == sorted(panes)
    assert len(panes) == 200
    log.write("what", "110", "120", to="app.log.a")
    log.write("111", "what", "111", to="app.log.b")
    assert log.read() == ["what", "110", "111", "what", "111", "120"]
    log.again()
    assert log.read() == []


def test_lines_that_are_too_long(log: Log) -> None:
    """A line of over 1 MiB is left out, once it has its end, and its neighbours are read."""
    log.write("a", "x" * LONGEST, "y" * (LONGEST + 1))
    with log.path.open("a") as file:
        file.write("z" * (2 * LONGEST))
    assert log.read() == ["a", "x" * LONGEST]
    assert log.too_long == [LONGEST + 2]
    log.write("end of it", "b")
    assert log.read() == ["b"]
    assert log.too_long == [LONGEST + 2, 2 * LONGEST + 10]


def test_one_file_by_two_names(log: Log) -> None:
    """A link to a file is not another file."""
    log.write("a")
    (log.folder / "app.log.current").symlink_to(log.path)
    os.link(log.path, log.folder / "app.log.hard")
    assert log.read() == ["a"]


def test_a_file_that_begins_like_another(log: Log) -> None:
    """A banner that all files have does not make one a copy of the other; two that are equal as
    far as they go are both read, after a while."""
    log.write("# banner", "a")
    assert log.read() == ["# banner", "a"]
    log.write("# banner", "b", to="app.log.other")
    assert log.read() == ["# banner", "b"]
    log.write("# banner", "a", to="app.log.same")
    assert log.read() == []
    assert log.read(HOLD + 1) == ["# banner", "a"]


STEPS = ("write", "half", "read", "rename", "copy", "delete-oldest", "again")


@settings(max_examples=examples(150), deadline=None)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=25))
def test_every_line_once(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    """For any sequence of writes, rotations of either kind, reads and restarts, each line is read
    exactly once, in the order of writing."""
    log = Log(tmp_path_factory.mktemp("log"))
    written: list[str] = []
    names = 0

    def write(end: str = "\n") -> None:
        with log.path.open("a") as file:
            file.write(f"line {len(written)}{end}")
        written.append(f"line {len(written)}")

    def shift(move: Callable[[Path, Path], Any]) -> None:
        nonlocal names
        names += 1
        if log.path.exists():
            move(log.path, log.folder / f"app.log.{1_000 - names}")

    def copy(a: Path, b: Path) -> None:
        shutil.copy(a, b)
        os.truncate(a, 0)

    for step in steps:
        if step == "write":
            write()
        elif step == "half" and log.path.exists():
            write("")
            log.read()
            with log.path.open("a") as file:
                file.write("\n")
        elif step == "half":
            write()
        elif step == "read":
            log.read()
        elif step == "rename":
            shift(lambda a, b: a.rename(b))
        elif step == "copy":
            shift(copy)
        elif step == "delete-oldest":
            log.read()
            rotated = sorted(log.folder.glob("app.log.*"))
            if rotated and log.path.exists():
                rotated[-1].unlink()
        else:
            log.again()
    log.read()
    assert log.lines == written
    assert [gap for gap in log.gaps if gap.known_bytes] == []
