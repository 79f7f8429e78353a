"""The log that batches are poured into: each is there whole, once, wherever it was cut off."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from file_limit import no_file_larger_than

from millstream.driver.pour import poured_log
from millstream.driver.pour.place_pour_storage import PlacePourStorage
from millstream.driver.pour.pour_storage import SUFFIX, FileLines, FolderPourStorage, PourStorage
from millstream.driver.pour.poured_log import Piece, PouredLog
from millstream.errors import LogLocked, StoreError
from millstream.log.entries import Entry
from millstream.log.mirror import LogMirror
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.places.directory_place import DirectoryPlace

KEEP = Retention()
Storage = Callable[..., PourStorage]


class Cut(Exception):
    """The process ends here."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of more than a hundred bytes is a large one."""
    monkeypatch.setattr(poured_log, "BLOCK_BYTES", 100)


def test_lines_of_a_task_without_room(tmp_path: Path) -> None:
    """Lines in a file: a write without room fails and leaves no part; a stale file is replaced."""
    (tmp_path / f"task{SUFFIX}").write_bytes(b"of an earlier attempt")
    with closing(FileLines(str(tmp_path / "task"))) as files:
        assert files.finished() == []
        files.write([b"1\n", b"2\n"])
        with no_file_larger_than(6), pytest.raises(OSError, match="File too large"):
            files.write([b"333\n"])
        files.write([b"4\n"])
        assert files.finished() == [(str(tmp_path / f"task{SUFFIX}"), 6)]
    assert (tmp_path / f"task{SUFFIX}").read_bytes() == b"1\n2\n4\n"


def in_folder(folder: Path, keep: Retention = KEEP) -> PourStorage:
    return FolderPourStorage(folder / "store", "clicks", folder / "log", keep)


def in_place(folder: Path, keep: Retention = KEEP) -> PourStorage:
    return PlacePourStorage(DirectoryPlace(folder / "place"), "clicks", keep, patience=0.0)


@pytest.fixture(params=[in_folder, in_place])
def storage(request: pytest.FixtureRequest) -> Storage:
    """A function that opens the storage, in a folder and in a place."""
    opens: Storage = request.param
    return opens


def opened(storage: Storage, folder: Path, keep: Retention = KEEP) -> PouredLog:
    return PouredLog(storage(folder, keep), "clicks")


def lines_in(folder: Path) -> list[bytes]:
    path = folder / "log"
    if not path.exists():
        path = folder / "mirror"
        with closing(LogMirror(DirectoryPlace(folder / "place"), "clicks", path)):
            pass
    with closing(LogReader(path)) as reader:
        blocks = reader.blocks(reader.start[0], reader.end[0])
        return [line for block in blocks for line in block.lines]


def files_of(folder: Path) -> list[Path]:
    return [*folder.rglob("*.lines")]


def numbered(start: int, stop: int) -> list[bytes]:
    return [b'{"number": %d}' % number for number in range(start, stop)]


def piece(lines: list[bytes]) -> Piece:
    return Piece(b"".join(line + b"\n" for line in lines))


def in_file(log: PouredLog, name: str, lines: list[bytes]) -> Piece:
    data = piece(lines).lines
    return Piece(b"", log.storage.keep(name, data), len(data))


def large(log: PouredLog) -> list[Piece]:
    """A batch of 40 records, in two files and at hand."""
    return [
        in_file(log, "a.lines", numbered(0, 17)),
        piece(numbered(17, 25)),
        in_file(log, "b.lines", numbered(25, 40)),
    ]


def cut(log: PouredLog, monkeypatch: pytest.MonkeyPatch, where: str, calls: int = 0) -> None:
    """Ends the process instead of calling a method, after a number of calls."""
    real = getattr(log, where)
    left = iter(range(calls))

    def call(*given: Any) -> Any:
        if next(left, None) is None:
            raise Cut
        return real(*given)

    monkeypatch.setattr(log, where, call)


def test_a_batch_is_known_by_its_query_and_its_number(storage: Storage, tmp_path: Path) -> None:
    """A poured batch is known, also after reopening. A later batch and a batch of another query are
    not."""
    with closing(opened(storage, tmp_path)) as log:
        assert not log.has("q", 0)
        log.pour("q", 3, [piece(numbered(0, 2)), piece(numbered(2, 3))])
        assert log.has("q", 3)
    with closing(opened(storage, tmp_path)) as log:
        assert (log.has("q", 2), log.has("q", 3), log.has("q", 4)) == (True, True, False)
        assert not log.has("r", 0)
        log.pour("r:with:colons", 0, [piece(numbered(3, 4))])
        assert log.end[1] == 4
    assert lines_in(tmp_path) == numbered(0, 4)


def test_a_batch_without_rows_leaves_nothing(storage: Storage, tmp_path: Path) -> None:
    """An empty batch makes no block."""
    with closing(opened(storage, tmp_path)) as log:
        log.pour("q", 0, [])
        assert log.end == [0, 0]


def test_a_line_may_hold_a_carriage_return(storage: Storage, tmp_path: Path) -> None:
    """Only a newline ends a line."""
    with closing(opened(storage, tmp_path)) as log:
        log.pour("q", 0, [Piece(b'{"a":\r1}\n{"b":\x0b2}\n')])
    assert lines_in(tmp_path) == [b'{"a":\r1}', b'{"b":\x0b2}']


def test_cut_off_between_the_append_and_the_record(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag in the log tells that the batch is there, whoever else has written since."""
    log = opened(storage, tmp_path)
    log.pour("q", 0, [piece(numbered(0, 1))])
    cut(log, monkeypatch, "_finish")
    with pytest.raises(Cut):
        log.pour("q", 1, [piece(numbered(1, 3))])
    log.close()
    with closing(storage(tmp_path)) as other:
        other.writer.append([Entry.of(numbered(3, 4), "of-a-client")])
    with closing(opened(storage, tmp_path)) as log:
        assert log.has("q", 1)
        assert not log.has("q", 2)
    assert lines_in(tmp_path) == numbered(0, 4)


@pytest.mark.parametrize(
    ("where", "calls"), [*(("_append", calls) for calls in range(6)), ("_finish", 0)]
)
def test_a_large_batch_is_whole_wherever_it_is_cut_off(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, calls: int
) -> None:
    """Once its lines are on disk, the next opening appends the parts that are missing."""
    log = opened(storage, tmp_path)
    pieces = large(log)
    cut(log, monkeypatch, where, calls)
    with pytest.raises(Cut):
        log.pour("q", 0, pieces)
    log.close()
    for _ in range(2):
        with closing(opened(storage, tmp_path)) as log:
            assert log.has("q", 0)
            assert files_of(tmp_path) == []
    assert sorted(lines_in(tmp_path)) == sorted(numbered(0, 40))


def test_a_large_batch_that_was_not_begun_never_was(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off before the record of the files, nothing of the batch is left, and it can be poured
    again."""
    log = opened(storage, tmp_path)
    pieces = large(log)
    cut(log, monkeypatch, "_remember")
    with pytest.raises(Cut):
        log.pour("q", 0, pieces)
    log.close()
    with closing(opened(storage, tmp_path)) as log:
        assert not log.has("q", 0)
        assert files_of(tmp_path) == []
        log.pour("q", 0, large(log))
    assert sorted(lines_in(tmp_path)) == sorted(numbered(0, 40))


def test_a_lost_file_of_a_large_batch_is_said(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a batch is not left in the log without a word."""
    log = opened(storage, tmp_path)
    pieces = large(log)
    cut(log, monkeypatch, "_append", 1)
    with pytest.raises(Cut):
        log.pour("q", 0, pieces)
    log.close()
    [lost] = [path for path in files_of(tmp_path) if path.name.endswith("b.lines")]
    lost.unlink()
    with pytest.raises(StoreError, match=r"b\.lines: is missing.*restore"):
        opened(storage, tmp_path)


def test_what_retention_has_removed_is_still_known(storage: Storage, tmp_path: Path) -> None:
    """The record outlives the tags."""
    keep = Retention(None, 1)
    with closing(opened(storage, tmp_path, keep)) as log:
        for batch in range(40):
            log.pour("q", batch, [piece([b'"%s"' % (b"x" * 5_000)])])
        log.storage.writer.retain()
    assert len(lines_in(tmp_path)) < 40
    with closing(opened(storage, tmp_path, keep)) as log:
        assert log.has("q", 0)
        assert log.has("q", 39)
        assert not log.has("q", 40)


def test_only_the_last_queries_are_remembered(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new checkpoint is a new query, so the record must not grow for ever."""
    monkeypatch.setattr(poured_log, "QUERIES", 2)
    with closing(opened(storage, tmp_path)) as log:
        for number, query in enumerate(("a", "b", "a", "c")):
            log.pour(query, number, [piece(numbered(0, 1))])
        assert [log.has(query, 0) for query in "abc"] == [True, False, True]


def test_a_log_in_a_folder_has_one_writer(tmp_path: Path) -> None:
    """If a server accepts events for the source, or another pour runs, the error names it."""
    with (
        closing(opened(in_folder, tmp_path)),
        pytest.raises(LogLocked, match="another process writes to it"),
    ):
        opened(in_folder, tmp_path)


def test_a_log_in_a_folder_that_was_replaced_is_refused(tmp_path: Path) -> None:
    """If the record has more than the log, one of them was replaced."""
    with closing(opened(in_folder, tmp_path)) as log:
        log.pour("q", 0, [piece(numbered(0, 1))])
    (tmp_path / "log").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"last\.json: source 'clicks'.*was the log replaced"):
        opened(in_folder, tmp_path)


@pytest.mark.parametrize("pieces", [lambda _: [piece(numbered(0, 3))], large])
def test_two_processes_that_pour_the_same_batch_into_a_place(
    tmp_path: Path, pieces: Callable[[PouredLog], list[Piece]]
) -> None:
    """One process was paused, and another took over. The batch is there once. The first process
    gets an error, and removes nothing of the other's."""
    with closing(opened(in_place, tmp_path)) as paused, closing(opened(in_place, tmp_path)) as log:
        given, of_paused = pieces(log), pieces(paused)
        with pytest.raises(LogLocked, match="another process now pours into source 'clicks'"):
            paused.pour("q", 0, of_paused)
        log.pour("q", 0, given)
        log.pour("q", 1, [piece(numbered(40, 41))])
    with closing(opened(in_place, tmp_path)) as log:
        assert log.has("q", 1)
    assert len(lines_in(tmp_path)) == len(set(lines_in(tmp_path))) == (41 if pieces is large else 4)


def test_a_large_batch_of_a_paused_process_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts that the paused process appends when it resumes are there already."""
    with closing(opened(in_place, tmp_path)) as paused:
        append, others = paused._append, list[PouredLog]()

        def call(query: str, batch: int, part: int, lines: list[bytes]) -> None:
            if part == 2:
                others.append(opened(in_place, tmp_path))
            append(query, batch, part, lines)

        monkeypatch.setattr(paused, "_append", call)
        with pytest.raises(StoreError, match=r"is missing.* if no other process pours"):
            paused.pour("q", 0, large(paused))
    [other] = others
    with closing(other):
        assert other.has("q", 0)
        other.pour("q", 1, [piece(numbered(40, 41))])
    assert sorted(lines_in(tmp_path)) == sorted(numbered(0, 41))
