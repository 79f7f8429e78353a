"""Appending: whole or not at all, once, whatever crashes, refuses or comes again."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from log_files import Clock, last_segment, lines_of, put, set_end

from millstream.errors import LogError, LogLocked
from millstream.log.blocks import Tag
from millstream.log.reader import LogReader
from millstream.log.retention import DAY
from millstream.log.segments import list_segments
from millstream.log.tags import Tags
from millstream.log.writer import Appended, Entry, LogWriter, Retention, TagMismatch

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log will be: some folders above it are missing too."""
    return tmp_path / "store" / "logs" / "clicks"


def test_an_append_is_numbered_and_stays(path: Path) -> None:
    """Entries get the numbers of their records in order, and are there after a restart."""
    writer = LogWriter(path)
    assert writer.end == [0, 0]
    assert writer.append([Entry([b"a", b"b"]), Entry([b"c"])]) == [
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
    """However many entries: a group commit."""
    writer = LogWriter(path)
    synced: list[int] = []
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (synced.append(file), sync(file)))
    writer.append([Entry([b"%d" % number], f"t{number}") for number in range(100)])
    assert len(synced) == 1
    reader = LogReader(path)
    assert [block.count for block in reader.blocks(0, reader.end[0])] == [100]


@pytest.mark.parametrize("tail", [b"", b"\0", b"garbage"])
def test_a_torn_append_is_cut_off_at_any_byte(path: Path, tail: bytes) -> None:
    """Cut anywhere in the last block, exactly the appends before it remain, and it is said."""
    writer = LogWriter(path)
    put(writer, b'{"n":1}', b'{"n":2}', tag="one")
    put(writer, b'{"n":3}')
    before = writer.end
    put(writer, b'{"n":4}', b'{"n":5}', tag="two")
    writer.close()
    segment = last_segment(path)
    whole = segment.read_bytes()
    for cut in range(before[0], len(whole)):
        segment.write_bytes(whole[:cut] + tail)
        set_end(path, before)
        assert lines_of(path) == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
        writer = LogWriter(path)
        assert writer.end == before
        assert writer.torn == cut - before[0] + len(tail)
        assert ("were never acknowledged are cut off" in writer.torn_said) == bool(writer.torn)
        assert writer.last_tag == "one"
        assert segment.read_bytes() == whole[: before[0]]
        assert put(writer, b'{"n":6}', tag="two") == Appended(3, 1, False)
        assert lines_of(path)[2:] == [b'{"n":3}', b'{"n":6}']
        writer.close()


def test_a_whole_append_that_was_not_made_known_is_kept(path: Path) -> None:
    """Killed after the write and before `end`: the block counts, its tag too, and is read."""
    writer = LogWriter(path)
    put(writer, b"1")
    before = writer.end
    put(writer, b"2", tag="t", digest=7)
    after = writer.end
    writer.close()
    set_end(path, before)
    writer = LogWriter(path)
    assert (writer.end, writer.torn) == (after, 0)
    assert lines_of(path) == [b"1", b"2"]
    assert put(writer, b"2", tag="t", digest=7) == Appended(1, 1, True)


@pytest.mark.parametrize("content", [None, b"", b"short", b"x" * 20, b"x" * 40])
def test_a_lost_end_is_written_anew(path: Path, content: bytes | None) -> None:
    """A power cut may leave `end` old or torn: the writer looks at the segments."""
    writer = LogWriter(path)
    put(writer, b"1")
    end = writer.end
    writer.close()
    (path / "end").unlink()
    if content is not None:
        (path / "end").write_bytes(content)
    LogWriter(path).close()
    assert LogReader(path).end == end
    assert (path / "end").stat().st_size == 20


def test_acknowledged_records_that_are_gone_are_damage(path: Path) -> None:
    """Cut below what `end` says is no torn append: refused, untouched; without `end` it goes on."""
    writer = LogWriter(path)
    put(writer, b"1")
    first = writer.end[0]
    put(writer, b"2")
    writer.close()
    segment = last_segment(path)
    whole = segment.read_bytes()
    for cut in range(len(whole)):
        segment.write_bytes(whole[:cut])
        with pytest.raises(LogError, match=r"2 records .* were on disk.* delete the file `end`"):
            LogWriter(path)
        assert segment.read_bytes() == whole[:cut]
    (path / "end").unlink()
    writer = LogWriter(path)
    assert writer.end == [first, 1]
    assert writer.torn == len(whole) - 1 - first


def test_damage_in_the_middle_is_not_a_torn_append(path: Path) -> None:
    """Whole blocks behind a bad one, though `end` is lost: refused, named, and untouched."""
    writer = LogWriter(path)
    for number in range(3):
        put(writer, b"%d" % number)
    one = writer.end[0] // 3
    writer.close()
    segment = last_segment(path)
    whole = segment.read_bytes()
    (path / "end").unlink()
    for at in range(one, 2 * one):
        changed = bytearray(whole)
        changed[at] ^= 4
        segment.write_bytes(changed)
        with pytest.raises(LogError, match=rf"{segment.name}: damaged at byte {one} .*restore"):
            LogWriter(path)
        assert segment.read_bytes() == changed


def test_an_earlier_segment_must_be_whole(path: Path) -> None:
    """It was on disk before the next was made: shorter, longer or gone is damage."""
    writer = LogWriter(path, segment_bytes=100)
    for number in range(6):
        put(writer, b"%d" % number)
    writer.close()
    second = Path(list_segments(path)[1].path)
    whole = second.read_bytes()
    for content in (whole[:-1], whole + b"x", b"", None):
        if content is None:
            second.unlink()
        else:
            second.write_bytes(content)
        with pytest.raises(LogError, match="as the next segment's name says"):
            LogWriter(path, segment_bytes=100)
    second.write_bytes(b"x" * len(whole))
    with pytest.raises(LogError, match=f"{second.name}: damaged at byte 0"):
        LogWriter(path, segment_bytes=100)
    second.write_bytes(whole)
    assert LogWriter(path).end[1] == 6


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


@pytest.mark.parametrize("tail", [b"", b"MSB\xff and a part of a header"])
def test_a_crash_while_rolling_is_survived(path: Path, tail: bytes) -> None:
    """A new segment with nothing whole in it is the last one, and is gone on with."""
    clock = Clock()
    writer = LogWriter(path, segment_bytes=1, clock=clock)
    for number in range(3):
        put(writer, b"%d" % number, tag=f"t{number}")
    end = writer.end
    writer.close()
    (path / f"{end[0]:020d}-{end[1]:020d}.log").write_bytes(tail)
    assert lines_of(path) == [b"0", b"1", b"2"]
    clock.now -= 500
    writer = LogWriter(path, segment_bytes=1, clock=clock)
    assert (writer.end, writer.torn, writer.last_tag) == (end, len(tail), "t2")
    assert put(writer, b"2", tag="t2").repeated
    put(writer, b"3")
    assert lines_of(path) == [b"0", b"1", b"2", b"3"]
    reader = LogReader(path)
    assert [block.stamp for block in reader.blocks(0, reader.end[0])] == [1_000_000] * 4


def test_a_record_with_a_newline_is_refused(path: Path) -> None:
    """A mistake of the program: nothing is appended, and the writer goes on."""
    writer = LogWriter(path)
    with pytest.raises(ValueError, match="no newline inside"):
        writer.append([Entry([b"good"], "t"), Entry([b"ba\nd"])])
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


def test_a_tag_is_appended_once(path: Path) -> None:
    """A repeat gives what the first gave: in one call, in a later one, and after a restart."""
    writer = LogWriter(path)
    entry = Entry([b"a", b"b"], "t", 5)
    assert writer.append([Entry([b"x"]), entry, entry, Entry([b"y"])]) == [
        Appended(0, 1, False),
        Appended(1, 2, False),
        Appended(1, 2, True),
        Appended(3, 1, False),
    ]
    for _ in range(2):
        size = writer.end
        assert writer.append([entry]) == [Appended(1, 2, True)]
        assert writer.end == size
        assert writer.append([entry, Entry([b"z"])])[0] == Appended(1, 2, True)
        writer.close()
        writer = LogWriter(path)
    assert lines_of(path) == [b"x", b"a", b"b", b"y", b"z", b"z"]


def test_a_tag_for_something_else_is_refused(path: Path) -> None:
    """Another digest: that entry is not appended, and the others are."""
    writer = LogWriter(path)
    put(writer, b"a", tag="t", digest=1)
    one, two, three = writer.append([Entry([b"b"], "t", 2), Entry([b"c"]), Entry([b"d"], "u", -1)])
    assert isinstance(one, TagMismatch)
    assert "tag 't' was used for 1 other" in str(one)
    assert (two, three) == (Appended(1, 1, False), Appended(2, 1, False))
    assert lines_of(path) == [b"a", b"c", b"d"]


def test_a_tag_without_records_is_remembered(path: Path) -> None:
    """A batch that brought nothing can say so once; the block has no record."""
    writer = LogWriter(path)
    put(writer, b"1", tag="batch 1")
    assert put(writer, tag="batch 2") == Appended(1, 0, False)
    writer.close()
    writer = LogWriter(path)
    assert writer.last_tag == "batch 2"
    assert put(writer, tag="batch 2") == Appended(1, 0, True)
    assert put(writer, b"2") == Appended(1, 1, False)
    assert lines_of(path) == [b"1", b"2"]


@pytest.mark.parametrize("restart", [False, True])
def test_tags_are_remembered_for_a_day(path: Path, restart: bool) -> None:
    """By segments: those whose last block is older than 24 hours are forgotten, live or not."""
    clock = Clock()
    keep = Retention(max_age=None, max_bytes=None)

    def opened() -> LogWriter:
        return LogWriter(path, segment_bytes=1, retention=keep, clock=clock)

    writer = opened()
    put(writer, b"1", tag="a")
    clock.now += DAY // 2
    put(writer, b"2", tag="b")
    assert put(writer, b"1", tag="a").repeated
    clock.now += DAY // 2 + 1
    put(writer, b"3", tag="c")
    for first in (False, True):
        if restart:
            writer.close()
            writer = opened()
        assert put(writer, b"2", tag="b") == Appended(1, 1, True)
        assert put(writer, b"1", tag="a") == Appended(3, 1, first)


def test_the_newest_tags_are_kept() -> None:
    """Past the limit the oldest are forgotten; one that came anew counts as new."""
    tags = Tags(limit=3)
    tags.add(Tag(name, number, 1, 0) for number, name in enumerate("abcad"))
    assert [name for name in "abcd" if tags.get(name)] == ["a", "c", "d"]
    tags.forget_before(3)
    assert [name for name in "abcd" if tags.get(name)] == ["a", "d"]
    assert len(tags) == 2


def test_a_log_may_do_without_tags(path: Path) -> None:
    """With tags=False a tag is written and not looked up, and a restart knows the last one."""
    clock = Clock()
    writer = LogWriter(path, tags=False, segment_bytes=1, clock=clock)
    assert writer.last_tag == ""
    for _ in range(2):
        assert not put(writer, b"1", tag="t").repeated
    writer.close()
    clock.now += 3 * DAY
    assert LogWriter(path, tags=False, clock=clock).last_tag == "t"


# The disk refuses


def refusing(
    monkeypatch: pytest.MonkeyPatch, name: str, *codes: int, write: int = 0
) -> Callable[[], int]:
    """Make the next calls of a function of `os` fail, one for each code; 0 lets one through."""
    real, left = getattr(os, name), list(codes)

    def call(*arguments: object) -> object:
        code = left.pop(0) if left else 0
        if code:
            if write:
                file, data, at = arguments
                os.pwritev(file, [bytes(data)[:write]], at)  # type: ignore[call-overload]
            raise OSError(code, os.strerror(code))
        return real(*arguments)

    monkeypatch.setattr(os, name, call)
    return lambda: len(left)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("name", ["pwrite", "fdatasync"])
def test_a_refused_append_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    """The error says why; no byte, record or tag of it stays; then it can be tried again."""
    writer = LogWriter(path)
    put(writer, b"1")
    end, whole = writer.end, last_segment(path).read_bytes()
    left = refusing(monkeypatch, name, code, write=20 if name == "pwrite" else 0)
    with pytest.raises(LogError, match=f"cannot append to it: {os.strerror(code)}; make room"):
        put(writer, b"2", tag="t")
    assert left() == 0
    assert (writer.end, writer.last_tag) == (end, "")
    assert last_segment(path).read_bytes() == whole
    assert LogReader(path).end == end
    assert put(writer, b"2", tag="t") == Appended(1, 1, False)
    writer.close()
    writer = LogWriter(path)
    assert writer.torn == 0
    assert lines_of(path) == [b"1", b"2"]


def test_an_end_that_cannot_be_written_takes_the_append_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What readers cannot be told of is not acknowledged."""
    writer = LogWriter(path)
    refusing(monkeypatch, "pwrite", 0, errno.EIO)
    with pytest.raises(LogError, match="Input/output error"):
        put(writer, b"1")
    assert last_segment(path).stat().st_size == 0
    assert put(writer, b"1") == Appended(0, 1, False)


def test_a_real_limit_of_the_system(path: Path) -> None:
    """A file that may not grow: part of the block is written, refused, and taken back."""
    writer = LogWriter(path)
    put(writer, b"1")
    end = writer.end
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (end[0] + 10, limits[1]))
    try:
        for _ in range(3):
            with pytest.raises(LogError, match="File too large"):
                put(writer, b"2" * 1000)
            assert last_segment(path).stat().st_size == end[0]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    put(writer, b"2")
    assert lines_of(path) == [b"1", b"2"]


@pytest.mark.parametrize(("name", "torn"), [("ftruncate", 20), ("fsync", 0)])
def test_an_append_that_cannot_be_taken_back_ends_the_writer(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, torn: int
) -> None:
    """Half a block may be there, or come back after a crash: opening the log again mends it."""
    writer = LogWriter(path)
    put(writer, b"1")
    with monkeypatch.context() as patch:
        refusing(patch, "pwrite", errno.EIO, write=20)
        refusing(patch, name, errno.EIO)
        with pytest.raises(LogError, match="cannot append"):
            put(writer, b"2")
    for act in (lambda: put(writer, b"3"), writer.retain):
        with pytest.raises(LogError, match=r"could not be taken back: .*; open it again to go on"):
            act()
    assert lines_of(path) == [b"1"]
    writer.close()
    writer = LogWriter(path)
    assert writer.torn == torn
    put(writer, b"3")
    assert lines_of(path) == [b"1", b"3"]


def test_an_interrupted_append_ends_the_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle: no one knows how far it came until the log is opened again."""
    writer = LogWriter(path)

    def interrupt(file: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            put(writer, b"1", tag="t")
    with pytest.raises(LogError, match="an append was interrupted; open it again"):
        put(writer, b"1", tag="t")
    writer.close()
    writer = LogWriter(path)
    assert put(writer, b"1", tag="t") == Appended(0, 1, True)


def test_a_roll_that_is_refused_leaves_the_log_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No room for a new segment: LogError; with room again it goes on in one."""
    writer = LogWriter(path, segment_bytes=1)
    put(writer, b"1")
    before = sorted(os.listdir(path))
    with monkeypatch.context() as patch:
        refusing(patch, "open", errno.ENOSPC)
        with pytest.raises(LogError, match="No space left"):
            put(writer, b"2")
    with monkeypatch.context() as patch:
        refusing(patch, "fsync", errno.EIO)
        with pytest.raises(LogError, match="Input/output"):
            put(writer, b"2")
    assert sorted(os.listdir(path)) == before
    put(writer, b"2")
    assert len(list_segments(path)) == 2
    assert lines_of(path) == [b"1", b"2"]


def test_what_cannot_be_removed_does_not_fail_an_append(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention on a roll tries again later; asked for, it says what is wrong."""
    writer = LogWriter(path, segment_bytes=1, retention=Retention(max_bytes=0))
    put(writer, b"1")
    refusing(monkeypatch, "unlink", errno.EACCES, errno.EACCES)
    assert put(writer, b"2") == Appended(1, 1, False)
    with pytest.raises(LogError, match="cannot remove old segments: Permission denied"):
        writer.retain()
    assert writer.retain() == 49
    assert lines_of(path) == [b"2"]


def test_a_log_that_was_deleted_takes_nothing(path: Path) -> None:
    """A writer whose files were removed does not acknowledge what no one could ever read."""
    writer = LogWriter(path)
    put(writer, b"1")
    shutil.rmtree(path)
    with pytest.raises(LogError, match="removed while it was open"):
        put(writer, b"2")
    writer.close()
    with pytest.raises(LogError, match="it is closed"):
        put(writer, b"2")


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """The error names the log and the system's reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match=r"file/log: cannot open it: "):
        LogWriter(tmp_path / "file" / "log")


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
    (result,) = writer.append([Entry(lines, str(number))])
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
