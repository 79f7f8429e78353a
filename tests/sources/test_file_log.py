"""The log of discovered files: durable numbers, positions, admission and splits."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_limit import no_file_larger_than
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.errors import InputError, StoreError
from millstream.sources.files import FileLog
from millstream.sources.formats import InputSplit
from millstream.sources.named_format import format_named

JSON = format_named("json")


def put(directory: Path, name: str, content: str, mtime: int = 1) -> None:
    """A file moved in whole."""
    directory.mkdir(exist_ok=True)
    (directory / f".{name}").write_text(content)
    os.utime(directory / f".{name}", (mtime, mtime))
    os.rename(directory / f".{name}", directory / name)


def opened(tmp_path: Path) -> FileLog:
    return FileLog(str(tmp_path / "log"), JSON, write=True)


@settings(max_examples=examples(100), deadline=None)
@given(
    files=st.lists(st.lists(st.integers(0, 10**6), min_size=1, max_size=12), max_size=6),
    budgets=st.lists(st.integers(0, 60), min_size=1, max_size=5),
    target=st.integers(1, 80),
)
def test_taking_partitions_all_bytes(
    files: list[list[int]], budgets: list[int], target: int
) -> None:
    """Batches of any size and splits of any target give every record once, in order, and end."""
    with tempfile.TemporaryDirectory() as root:
        data, expected = Path(root, "data"), []
        data.mkdir()
        for number, values in enumerate(files):
            put(data, f"{number}", "".join(f"{value}\n" for value in values), mtime=number)
            expected += values
        log = FileLog(f"{root}/log", JSON, write=True)
        assert log.refresh(str(data)).new == len(files)
        position, got, total, turn = [0, 0], [], 0, 0
        while position != log.end:
            budget = budgets[turn % len(budgets)]
            end = log.take(position, budget)
            assert end > position
            taken = log.bytes_between(position, end)
            assert taken <= max(1, budget)
            splits = log.splits(position, end, target)
            assert sum((s.stop or 0) - s.start for s in splits) == taken
            got += [r for s in splits for chunk in JSON.read(s) for r in chunk.records]
            total, turn, position = total + taken, turn + 1, json.loads(json.dumps(end))
        assert got == expected
        assert total == log.bytes_between([0, 0], log.end)
        assert log.take(position, 100) == position
        assert log.take([0, 0]) == log.end
        log.close()


def test_parquet_is_taken_by_row_groups(tmp_path: Path) -> None:
    """A batch may end within a Parquet file, at a row group, and at least one is taken."""
    (tmp_path / "data").mkdir()
    for name in "ab":
        table = pa.table({"n": list(range(50))})
        pq.write_table(table, tmp_path / "data" / name, row_group_size=10)
    parquet = format_named("parquet")
    log = FileLog(str(tmp_path / "log"), parquet, write=True)
    log.refresh(str(tmp_path / "data"))
    size = os.path.getsize(tmp_path / "data" / "a")
    assert log.take([0, 0], size // 2) == [0, 2]
    assert log.take([0, 2], 0) == [0, 3]
    assert log.take([0, 3], size) == [1, 3]
    assert log.take([1, 4], 0) == [2, 0]
    position, rows = [0, 0], []
    while position != log.end:
        end = log.take(position, size // 3)
        for split in log.splits(position, end, size // 5):
            rows += [row["n"] for chunk in parquet.read(split) for row in chunk.records]
        position = end
    assert rows == [*range(50), *range(50)]


def test_numbers_survive_a_restart_and_later_files_come_after(tmp_path: Path) -> None:
    """A file keeps its number for ever, even when an older one arrives or it is deleted."""
    data = tmp_path / "data"
    put(data, "b", "1\n", mtime=5)
    log = opened(tmp_path)
    assert log.refresh(str(data)).new == 1
    put(data, "a", "22\n", mtime=1)
    os.unlink(data / "b")
    log.close()
    log = opened(tmp_path)
    assert log.end == [1, 0]
    assert log.refresh(str(data)).new == 1
    assert log.refresh(str(data)).new == 0
    assert log.splits([0, 0], log.end, 100) == [
        InputSplit(str(data / "b"), 0, 2),
        InputSplit(str(data / "a"), 0, 3),
    ]


def test_a_torn_tail_is_cut_off_at_the_last_whole_record(tmp_path: Path) -> None:
    """Cut at any byte, the log opens with whole appends only, and goes on from there."""
    data = tmp_path / "data"
    log = opened(tmp_path)
    path = tmp_path / "log"
    lengths = [path.stat().st_size]
    for name in "abc":
        put(data, name, "1\n")
        log.refresh(str(data))
        lengths.append(path.stat().st_size)
    log.close()
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        for tail in (b"", b"\n"):
            content = whole[:cut] + (tail if cut < len(whole) else b"")
            path.write_bytes(content)
            reader = FileLog(str(path), JSON)
            log = FileLog(str(path), JSON, write=True)
            known = sum(content.startswith(whole[:length]) for length in lengths[1:])
            assert log.end == [known, 0]
            assert log.refresh(str(data)).new == 3 - known
            reader.reload()
            assert reader.end == [3, 0]
            log.close()
            reader.close()


def test_a_torn_tail_leaves_no_trace(tmp_path: Path) -> None:
    """A torn append that was longer than the next one does not show behind it."""
    opened(tmp_path).close()
    with (tmp_path / "log").open("ab") as file:
        file.write(bytes(10_000))
    put(tmp_path / "data", "a", "1\n")
    log = opened(tmp_path)
    log.refresh(str(tmp_path / "data"))
    log.close()
    assert b"\0" not in (tmp_path / "log").read_bytes()
    assert opened(tmp_path).end == [1, 0]


def test_a_damaged_record_is_an_error(tmp_path: Path) -> None:
    """A wrong byte before the last record is damage, not a torn tail: positions would shift."""
    log = opened(tmp_path)
    for name in "ab":
        put(tmp_path / "data", name, "1\n")
        log.refresh(str(tmp_path / "data"))
    log.close()
    path = tmp_path / "log"
    path.write_bytes(path.read_bytes().replace(b"/a", b"/x"))
    for write in (True, False):
        with pytest.raises(StoreError, match="line 2 is damaged"):
            FileLog(str(path), JSON, write=write)


def test_a_reader_sees_what_the_writer_appended(tmp_path: Path) -> None:
    """A reader may come before the log exists, and reloads to see more."""
    reader = FileLog(str(tmp_path / "log"), JSON)
    assert reader.end == [0, 0]
    log = opened(tmp_path)
    for number, name in enumerate("abc"):
        put(tmp_path / "data", name, "1\n")
        log.refresh(str(tmp_path / "data"))
        assert reader.end == [number, 0]
        assert reader.reload() == 1
        assert reader.end == log.end
    assert reader.reload() == 0


def test_a_file_that_changes_after_it_was_taken_warns_once(tmp_path: Path) -> None:
    """The warning says which part is not read and how to add data. The recorded part stays the
    same."""
    put(tmp_path / "data", "a", "1\n")
    log = opened(tmp_path)
    assert log.refresh(str(tmp_path / "data")).warnings == []
    with (tmp_path / "data" / "a").open("a") as file:
        file.write("2\n")
    (warning,) = log.refresh(str(tmp_path / "data")).warnings
    assert "had 2 bytes" in warning
    assert "write files elsewhere, then rename" in warning
    assert log.refresh(str(tmp_path / "data")).warnings == []
    (split,) = log.splits([0, 0], log.end, 100)
    assert [r for chunk in JSON.read(split) for r in chunk.records] == [1]


def test_a_full_disk_takes_nothing(tmp_path: Path) -> None:
    """When the log cannot be written, no file is taken; with room again, all are."""
    put(tmp_path / "data", "a", "1\n")
    log = opened(tmp_path)
    with (
        no_file_larger_than((tmp_path / "log").stat().st_size + 10),
        pytest.raises(StoreError, match="cannot append to it: File too large"),
    ):
        log.refresh(str(tmp_path / "data"))
    assert log.end == [0, 0]
    assert log.refresh(str(tmp_path / "data")).new == 1
    log.close()
    assert opened(tmp_path).end == [1, 0]


def test_there_is_one_writer(tmp_path: Path) -> None:
    """A writer that another one has overtaken does not overwrite the other's records."""
    first, second = opened(tmp_path), opened(tmp_path)
    put(tmp_path / "data", "a", "1\n")
    second.refresh(str(tmp_path / "data"))
    with pytest.raises(StoreError, match="another process has appended"):
        first.refresh(str(tmp_path / "data"))
    assert opened(tmp_path).end == [1, 0]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    """No directory, another format, and a position that the log does not have: clear errors."""
    log = opened(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        log.refresh(str(tmp_path / "none"))
    with pytest.raises(StoreError, match="has read json files until now"):
        FileLog(str(tmp_path / "log"), format_named("csv"))
    with pytest.raises(StoreError, match="must be within its 0 files"):
        log.splits([0, 0], [3, 0], 100)
