"""Compressed rotations: what was not read of them is read, and nothing is read twice."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from agent_runs import placed, write
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from local_agent import run
from test_following import Log

from millstream.agent.log.log_files import Mark
from millstream.agent.log.log_follower import LINGER

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def pack(path: Path, to: str | None = None, kind: str = "gz", *, keeps_time: bool = True) -> Path:
    """Compress a file as gzip does: its time stays, and the file goes."""
    stat, packed = os.stat(path), path.with_name(f"{to or path.name}.{kind}")
    packed.write_bytes(PACK[kind](path.read_bytes()))
    if keeps_time:
        os.utime(packed, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    path.unlink()
    return packed


def rotate(folder: Path) -> None:
    """app.log becomes app.log.1, and app.log.1 becomes app.log.2.gz, and so on."""
    for number in range(9, 1, -1):
        old = folder / f"app.log.{number}.gz"
        if old.exists():
            old.rename(folder / f"app.log.{number + 1}.gz")
    if (folder / "app.log.1").exists():
        pack(folder / "app.log.1", "app.log.2")
    if (folder / "app.log").exists():
        (folder / "app.log").rename(folder / "app.log.1")


def later(path: Path, seconds: float) -> None:
    """A file was written so much after the others, though the test is quick."""
    stat = os.stat(path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + int(seconds * 1e9)))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path, first_time=first_time)


def first_time(line: bytes) -> int | None:
    """The number that a line begins with, as its time."""
    word = line.split()[0]
    return int(word) if word.isdigit() else None


@pytest.mark.parametrize("kind", PACK)
def test_a_first_start_reads_all(tmp_path: Path, kind: str) -> None:
    """Compressed rotations are read like others, the oldest first."""
    log = Log(tmp_path, first_time=first_time)
    log.write("5 e", "6 f")
    log.write("3 c", "4 d", to="app.log.1")
    log.write("1 a", "2 b", to="app.log.2")
    pack(tmp_path / "app.log.2", kind=kind)
    log.start()
    assert log.read() == ["1 a", "2 b", "3 c", "4 d", "5 e", "6 f"]
    assert log.gaps == []
    log.again()
    assert log.read() == []


def test_a_rotation_that_was_read_is_not_read_again(log: Log) -> None:
    """While the agent runs, and after it was started again, however often."""
    read: list[str] = []
    for number in range(1, 8):
        log.write(f"{number} line", f"{number} more")
        read += log.read()
        rotate(log.folder)
        read += log.read()
        if number % 2:
            log.again()
    read += log.read(100)
    log.again()
    read += log.read()
    assert read == [f"{number} {word}" for number in range(1, 8) for word in ("line", "more")]
    assert log.gaps == []


def test_what_was_not_read_when_it_was_compressed(log: Log) -> None:
    """The rest of a file that was rotated and compressed while no agent ran is read from where it
    was; and a file that was written and compressed in that time is read whole."""
    log.write("1 a", "2 b")
    assert log.read() == ["1 a", "2 b"]
    position = log.follower.position()
    log.follower.close()
    log.write("3 c")
    later(log.path, 1)
    rotate(log.folder)
    log.write("4 d", "5 e")
    later(log.path, 2)
    rotate(log.folder)
    log.write("6 f")
    later(log.path, 3)
    rotate(log.folder)
    log.write("7 g")
    log.start(position)
    assert log.read() == ["3 c", "4 d", "5 e", "6 f", "7 g"]
    assert log.gaps == []
    log.again()
    assert log.read() == []


def test_a_torn_file_waits_until_it_is_whole(log: Log) -> None:
    """A file that is still being written is not read. Later all of it is read, once."""
    log.write("5 e")
    log.write(*(f"1 {number}" for number in range(2_000)), to="app.log.1")
    whole = pack(log.folder / "app.log.1").read_bytes()
    path = log.folder / "app.log.1.gz"
    for size in (0, 1, 5, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        log.start() if size == 0 else None
        assert log.read(5) == (["5 e"] if size == 0 else [])
    path.write_bytes(whole)
    assert len(log.read(5)) == 2_000
    assert log.read() == []
    assert log.gaps == []


def test_a_file_that_stays_torn_is_named(log: Log) -> None:
    """Its lines are missing as long as nobody mends it, so a person has to know."""
    log.write("1 a", to="app.log.1")
    log.write("2 b")
    whole = pack(log.folder / "app.log.1").read_bytes()
    path = log.folder / "app.log.1.gz"
    path.write_bytes(whole[:-1])
    log.start()
    assert log.read() == ["2 b"]
    assert log.follower.torn == set()
    log.read(61)
    assert log.follower.torn == {str(path)}
    path.write_bytes(whole)
    later(path, 1)
    assert log.read() == ["1 a"]
    assert log.follower.torn == set()


def test_a_torn_file_and_the_file_that_it_is_made_of(log: Log) -> None:
    """While gzip runs both are there: the lines are read once."""
    log.write("1 a", to="app.log.1")
    log.write("2 b")
    packed = gzip.compress((log.folder / "app.log.1").read_bytes())
    (log.folder / "app.log.1.gz").write_bytes(packed[:-5])
    log.start()
    assert log.read() == ["1 a", "2 b"]
    (log.folder / "app.log.1.gz").write_bytes(packed)
    assert log.read(5) == []
    (log.folder / "app.log.1").unlink()
    assert log.read() == log.read(100) == []
    log.again()
    assert log.read() == []
    assert log.gaps == []


def test_one_that_only_begins_alike(log: Log) -> None:
    """Two files that begin with the same lines are two files, though nothing of one was read."""
    log.write("1 a")
    log.write("1 a", "2 b", to="app.log.1")
    pack(log.folder / "app.log.1")
    log.start()
    assert sorted(log.read()) == ["1 a", "1 a", "2 b"]
    log.again()
    assert log.read() == []


def test_torn_for_good(tmp_path: Path) -> None:
    """With `once` nothing is awaited: that lines are missing is told."""
    log = Log(tmp_path, once=True)
    log.write("a")
    (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(b"b\n" * 1_000)[:-9])
    log.start()
    assert log.read() == ["a"]
    assert len(log.gaps) == 1
    assert "not whole" in str(log.gaps[0])


def test_in_doubt_a_gap_is_told(log: Log) -> None:
    """A file that is new by its time, but begins before the lines that were read, may have been
    read already. It is not read, and a gap is reported once."""
    log.write("5 e")
    assert log.read() == ["5 e"]
    log.write("1 a", to="app.log.1")
    path = pack(log.folder / "app.log.1")
    later(path, 100)
    log.again()
    assert log.read() == []
    assert ["cannot be told" in str(gap) for gap in log.gaps] == [True]
    log.again()
    assert log.read() == []
    assert len(log.gaps) == 1


def test_an_archive_of_before_is_left_alone(log: Log) -> None:
    """A file that was written before the agent's last look is none that it has missed."""
    log.write("5 e")
    assert log.read() == ["5 e"]
    log.write("1 a", to="app.log.1")
    path = pack(log.folder / "app.log.1")
    later(path, -100)
    log.again()
    assert log.read() == []
    assert log.gaps == []


def test_a_position_of_before(log: Log) -> None:
    """Marks of an agent that left compressed files alone: it goes on leaving them alone."""
    log.write("5 e")
    log.read()
    marks = msgspec.to_builtins(log.follower.position())
    stored = [{key: mark[key] for key in mark if key not in ("written", "first")} for mark in marks]
    position = msgspec.convert(stored, list[Mark])
    log.write("1 a", to="app.log.1")
    later(pack(log.folder / "app.log.1"), 100)
    log.start(position)
    assert log.read() == []
    assert log.gaps == []


@settings(max_examples=examples(40), deadline=None)
@given(
    steps=st.lists(st.sampled_from(["write", "rotate", "read", "kill", "down"]), max_size=25),
    puts=st.lists(st.integers(0, 3), min_size=1, max_size=3),
)
def test_any_rotation(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], puts: list[int]
) -> None:
    """Lines are written, files rotated and compressed, agents run and are killed, in any order: all
    lines are in their panes, once."""
    folder, job, at = tmp_path_factory.mktemp("packed"), placed(range="1s"), 100
    (folder / "app.log").touch()
    for number, step in enumerate([*steps, "write", "read"]):
        if step == "write":
            write(folder / "app.log", (at, "a"), (at + 1, "b"))
            at += 2
            later(folder / "app.log", number)
        elif step == "rotate":
            rotate(folder)
        elif step == "kill":
            run(folder, job, puts=puts[number % len(puts)])
        elif step == "read":
            messages, status = run(folder, job)
    values = [(one["pane"], word) for one in messages for word in one["partials"]]
    assert sorted(values) == [(100 + pane, "ab"[pane % 2]) for pane in range(at - 100)]
    assert (status["read"], status["gaps"], status["residual"]) == (at - 100, 0, 0)
    assert json.dumps(status["late"]) == "0"


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_compressed_file_by_another_name_has_no_lines(
    log: Log, kind: str, restarted: bool
) -> None:
    """A file that is being compressed under a temporary name that matches the pattern is not read
    as lines. After its rename it is recognised."""
    log.write("1 a", "2 b", to="app.log.1")
    log.write("3 c")
    assert log.read() == ["1 a", "2 b", "3 c"]
    packed = pack(log.folder / "app.log.1", kind=kind, keeps_time=False)
    other = packed.rename(log.folder / "app.log.1.tmp")
    if restarted:
        log.again()
    assert log.read() == []
    assert log.follower.left_alone == {str(other)}
    other.rename(packed)
    log.write("4 d")
    assert log.read() == ["4 d"]
    assert log.gaps == []


def test_a_compressed_file_has_the_number_of_the_file_that_it_was(log: Log) -> None:
    """Compressing deletes a file that was read and closed, and the system gives its number to the
    next new one: the compressed file is known for what it is, and is not read as lines."""
    log.write("1 a", "2 b", to="app.log.1")
    log.write("3 c")
    assert log.read() == ["1 a", "2 b", "3 c"]
    log.read(LINGER + 1)
    log.read(LINGER + 1)
    old = log.folder / "app.log.1"
    old.write_bytes(gzip.compress(old.read_bytes()))
    old.rename(log.folder / "app.log.2.gz")
    log.write("4 d")
    assert log.read() == ["4 d"]
    assert log.follower.left_alone == set()
    assert log.gaps == []


def test_compressed_files_are_left_alone(tmp_path: Path) -> None:
    """Compressed files are not read, but their names are known for a message."""
    log = Log(tmp_path)
    (log.folder / "app.log.1.zst").write_bytes(b"\x28\xb5\n\n")
    assert log.read() == []
    assert {Path(name).name for name in log.follower.left_alone} == {"app.log.1.zst"}
    assert log.gaps == []


def test_compressed_files_that_cannot_be_read_are_a_gap_at_first(tmp_path: Path) -> None:
    """Nothing was read before the first start, so their lines are missing. Later ones may be
    compressed copies of what was read."""
    (tmp_path / "app.log.1.zst").write_bytes(b"\x28\xb5\n\n")
    (tmp_path / "app.log").write_text("a\n")
    log = Log(tmp_path)
    assert log.read() == ["a"]
    assert [Path(gap.name).name for gap in log.gaps] == ["app.log.1.zst"]
    log.again()
    (tmp_path / "app.log.2.zst").write_bytes(b"\x28\xb5\n\n")
    assert log.read() == []
    assert len(log.gaps) == 1
