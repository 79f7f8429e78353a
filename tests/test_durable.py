"""Files that are on disk when the call returns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.durable import (
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
