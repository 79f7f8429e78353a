"""Disks that refuse: an append is there or it is not, and the writer says which."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from file_limit import no_file_larger_than
from log_files import last_segment, lines_of, put

from millstream.errors import LogError
from millstream.log.reader import LogReader
from millstream.log.segments import list_segments
from millstream.log.writer import Appended, LogWriter, Retention

pytestmark = pytest.mark.timeout(60)


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
    """An append that readers cannot see is not acknowledged."""
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
    with no_file_larger_than(end[0] + 10):
        for _ in range(3):
            with pytest.raises(LogError, match="File too large"):
                put(writer, b"2" * 1000)
            assert last_segment(path).stat().st_size == end[0]
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
