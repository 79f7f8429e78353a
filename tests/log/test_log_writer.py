"""Appending: whole, numbered, once, by one writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from log_files import Clock, last_segment, lines_of, put

from millstream.errors import LogLocked
from millstream.log.reader import LogReader
from millstream.log.segments import list_segments
from millstream.log.writer import Appended, Entry, LogWriter

pytestmark = pytest.mark.timeout(60)


def test_an_append_is_numbered_and_stays(path: Path) -> None:
    """Entries get the numbers of their records in order, and are there after a restart."""
    writer = LogWriter(path)
    assert writer.end == [0, 0]
    assert writer.append([Entry.of([b"a", b"b"]), Entry.of([b"c"])]) == [
        Appended(0, 2, False),
        Appended(2, 1, False),
    ]
    assert put(writer, b"d") == Appended(3, 1, False)
    end = writer.end
    writer.close()
    writer = LogWriter(path)
    assert (writer.end, writer.torn, writer.torn_said) == (end, 0, "")
    assert put(writer, b"") == Appended(4, 1, False)
    assert lines_of(path) == [b"a", b"b", b"c", b"d", b""]


def test_nothing_new_is_not_written(path: Path) -> None:
    """No entries, or entries without records and tags, leave the log as it is."""
    writer = LogWriter(path)
    assert writer.append([]) == []
    assert put(writer) == Appended(0, 0, False)
    assert last_segment(path).stat().st_size == 0


def test_one_append_is_one_write_and_one_sync(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many entries there are: a group commit."""
    writer = LogWriter(path)
    synced: list[int] = []
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (synced.append(file), sync(file)))
    writer.append([Entry.of([b"%d" % number], f"t{number}") for number in range(100)])
    assert len(synced) == 1
    reader = LogReader(path)
    assert [block.count for block in reader.blocks(0, reader.end[0])] == [100]


def test_segments_are_rolled(path: Path) -> None:
    """No segment is larger than it may be, but for a block that alone is; positions go on."""
    writer = LogWriter(path, segment_bytes=200)
    ends = [[0, 0]]
    for number in range(20):
        put(writer, b"%d" % number * (300 if number == 7 else 10), b"x")
        ends.append(writer.end)
    segments = list_segments(path)
    assert len(segments) > 8
    assert all([segment.offset, segment.first] in ends for segment in segments)
    sizes = [os.path.getsize(segment.path) for segment in segments]
    assert sum(size > 200 for size in sizes) == 1
    writer.close()
    writer = LogWriter(path, segment_bytes=200)
    assert writer.end == ends[-1]
    put(writer, b"20")
    assert len(lines_of(path)) == 41


def test_a_record_with_a_newline_is_refused(path: Path) -> None:
    """A mistake of the program: nothing is appended, and the writer goes on."""
    writer = LogWriter(path)
    with pytest.raises(ValueError, match="no newline inside"):
        writer.append([Entry.of([b"good"], "t"), Entry.of([b"ba\nd"])])
    assert put(writer, b"good", tag="t") == Appended(0, 1, False)


def test_time_never_goes_back(path: Path) -> None:
    """A stamp is never lower than the one before it, after a restart neither."""
    clock = Clock(100)
    writer = LogWriter(path, clock=clock)
    for now in (100, 90, 120, 80):
        clock.now = now
        put(writer, b"x")
    writer.close()
    writer = LogWriter(path, clock=clock)
    put(writer, b"x")
    reader = LogReader(path)
    assert [block.stamp for block in reader.blocks(0, reader.end[0])] == [100, 100, 120, 120, 120]


# Tags


# Other processes

CHILD = """
import sys
from millstream.log.writer import Entry, LogWriter
writer = LogWriter(sys.argv[1], segment_bytes=20_000)
print(writer.end[1], writer.torn, flush=True)
number = int(sys.argv[2])
sent = 0
while sent < int(sys.argv[3]):
    count = 1 + number % 37
    lines = [b'{"n":%d}' % n for n in range(number, number + count)]
    (result,) = writer.append([Entry.of(lines, str(number))])
    number += count
    sent += count
    print(number, flush=True)
print("done", flush=True)
sys.stdin.readline()
"""


def start(path: Path, number: int, count: int) -> subprocess.Popen[str]:
    """A process that appends numbers one after another, each acknowledged on its output."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(number), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_there_is_one_writer(path: Path) -> None:
    """A second one, in this process or another, is refused and told who has the log."""
    child = start(path, 0, 0)
    assert child.stdout is not None
    assert child.stdout.readline() == "0 0\n"
    with pytest.raises(LogLocked, match=f"another process writes to it .process {child.pid}."):
        LogWriter(path)
    child.communicate("\n")
    writer = LogWriter(path)
    with pytest.raises(LogLocked, match=f"process {os.getpid()}"):
        LogWriter(path)
    put(writer, b"1")
    writer.close()
    assert LogWriter(path).end[1] == 1


def test_what_was_acknowledged_survives_kills(path: Path) -> None:
    """Killed ten times while appending: every acknowledged record is there, once, in order."""
    number = 0
    for turn in range(10):
        child = start(path, number, 1 << 40)
        assert child.stdout is not None
        child.stdout.readline()
        for _ in range(7 + 23 * turn):
            number = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split("\n")
        number = int(rest[-2]) if len(rest) > 1 else number
        child.wait()
        assert child.stdin is not None
        child.stdin.close()
        child.stdout.close()
        writer = LogWriter(path, segment_bytes=20_000)
        there = writer.end[1]
        writer.close()
        assert there >= number
        assert lines_of(path) == [b'{"n":%d}' % n for n in range(there)]
        number = there
    assert number > 1000
    assert len(list_segments(path)) > 3
