"""Files that are on disk when the call returns."""

import os
from collections.abc import Callable
from errno import EIO
from pathlib import Path

import pytest
from file_limit import no_file_larger_than

from millstream.durable import (
    AppendFile,
    read_record,
    with_checksum,
    without_checksum,
    write_record,
    write_unsynced,
    write_whole,
)
from millstream.errors import StoreError


@pytest.mark.parametrize("synced", [True, False])
def test_a_record_is_read_as_it_was_written(tmp_path: Path, synced: bool) -> None:
    """The last one written is read; before the first there is none; nothing else is left."""
    path = tmp_path / "epoch"
    assert read_record(path) is None
    for data in (b"1", b"22", b""):
        write_record(path, data, synced=synced)
        assert read_record(path) == data
    assert [file.name for file in tmp_path.iterdir()] == ["epoch"]


@pytest.mark.parametrize("content", [b"", b"1", b"00000000 1\n", b"83dcefb7 2\n", b"83dcefb7 1 \n"])
def test_a_damaged_record_is_refused(tmp_path: Path, content: bytes) -> None:
    """Any change of the file is an error that names it, and never gives a wrong value."""
    path = tmp_path / "epoch"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"epoch: its checksum says .*: the file is damaged"):
        read_record(path)


@pytest.mark.parametrize("write", [write_whole, write_unsynced])
def test_a_file_that_cannot_be_written(
    tmp_path: Path, write: Callable[[Path, bytes], None]
) -> None:
    """The error names the file and says what to do."""
    with pytest.raises(StoreError, match="none/x: cannot be written: No such file or directory"):
        write(tmp_path / "none" / "x", b"")


def test_a_line_and_its_checksum() -> None:
    """A line holds its data and what proves it."""
    line = with_checksum(b"1")
    assert line == b"83dcefb7 1\n"
    assert without_checksum(line.rstrip()) == b"1"
    with pytest.raises(ValueError, match="its checksum says 83dcefb7, its content 1ad5be0d"):
        without_checksum(b"83dcefb7 2")


LINES = [b"%d %s\n" % (number, b"x" * number) for number in range(5)]


def test_appends_after_a_torn_one(tmp_path: Path) -> None:
    """Wherever a crash ended the last append, its part is removed and the file continues without a
    trace of it. A later opening finds the same contents."""
    path, whole = tmp_path / "lines", b"".join(LINES)
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        file = AppendFile.open(path)
        assert file.end == cut
        known = whole[:cut].rfind(b"\n") + 1
        file.truncate(known)
        file.append(b"end\n")
        file.close()
        assert path.read_bytes() == whole[:known] + b"end\n"
        again = AppendFile.open(path)
        assert again.end == known + 4
        again.close()


@pytest.mark.parametrize("synced", [True, False])
def test_an_append_without_room_is_taken_back(tmp_path: Path, synced: bool) -> None:
    """However much of it had room, nothing stays; and with room it is added."""
    path = tmp_path / "lines"
    file = AppendFile.open(path)
    file.append(LINES[0], synced=synced)
    for room in range(len(LINES[4])):
        with (
            no_file_larger_than(len(LINES[0]) + room),
            pytest.raises(OSError, match="File too large"),
        ):
            file.append(LINES[4], synced=synced)
        assert (path.read_bytes(), file.end, file.torn) == (LINES[0], len(LINES[0]), "")
    file.append(LINES[4], synced=synced)
    assert path.read_bytes() == LINES[0] + LINES[4]
    file.close()


@pytest.mark.parametrize("name", ["ftruncate", "fsync"])
def test_what_cannot_be_taken_back_is_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A disk that fails twice leaves a part, and says so; the next append removes it first, and
    a shorter line than the part leaves nothing of it."""

    def fails(*given: object) -> None:
        raise OSError(EIO, "Input/output error")

    path = tmp_path / "lines"
    file = AppendFile.open(path)
    file.append(LINES[0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fails)
        patch.setattr(os, name, fails)
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output error"):
                file.append(LINES[4])
            assert file.torn.startswith("a failed append could not be taken back: Input/output")
    file.append(LINES[1])
    assert path.read_bytes() == LINES[0] + LINES[1]
    assert file.torn == ""
    file.close()


def test_an_interrupted_append_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C nobody knows how much was written: the next append removes it first."""

    def interrupt(file: int) -> None:
        raise KeyboardInterrupt

    file = AppendFile.open(tmp_path / "lines")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            file.append(LINES[4])
    file.append(LINES[1])
    assert (tmp_path / "lines").read_bytes() == LINES[1]
    file.close()


def test_another_writer_is_noticed(tmp_path: Path) -> None:
    """The file is ours as long as its length is what we appended."""
    file, other = (AppendFile.open(tmp_path / "lines") for _ in range(2))
    file.append(LINES[0])
    assert (file.is_ours, other.is_ours) == (True, False)
    for opened in (file, other):
        opened.close()
