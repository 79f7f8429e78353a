"""The log that batches are poured into: each is there whole, once, wherever it was cut off."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from millstream.driver import poured_log
from millstream.driver.poured_log import Piece, PouredLog
from millstream.errors import LogLocked, StoreError
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.log.writer import Entry, LogWriter

KEEP = Retention()


class Cut(Exception):
    """The process ends here."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of more than a hundred bytes is a large one."""
    monkeypatch.setattr(poured_log, "BLOCK_BYTES", 100)


def opened(folder: Path, keep: Retention = KEEP) -> PouredLog:
    return PouredLog(folder / "store", "clicks", folder / "log", keep)


def lines_in(folder: Path) -> list[bytes]:
    with closing(LogReader(folder / "log")) as reader:
        blocks = reader.blocks(reader.start[0], reader.end[0])
        return [line for block in blocks for line in block.lines]


def numbered(start: int, stop: int) -> list[bytes]:
    return [b'{"number": %d}' % number for number in range(start, stop)]


def piece(lines: list[bytes]) -> Piece:
    return Piece(b"".join(line + b"\n" for line in lines))


def in_file(log: PouredLog, name: str, lines: list[bytes]) -> Piece:
    data = piece(lines).lines
    (log.folder / name).write_bytes(data)
    return Piece(b"", name, len(data))


def large(log: PouredLog) -> list[Piece]:
    """A batch of 40 records, in two files and at hand."""
    return [
        in_file(log, "a.lines", numbered(0, 17)),
        piece(numbered(17, 25)),
        in_file(log, "b.lines", numbered(25, 40)),
    ]


def cut(log: PouredLog, monkeypatch: pytest.MonkeyPatch, where: str, calls: int = 0) -> None:
    """End the process in place of the call of a method, after so many calls of it."""
    real = getattr(log, where)
    left = iter(range(calls))

    def call(*given: Any) -> Any:
        if next(left, None) is None:
            raise Cut
        return real(*given)

    monkeypatch.setattr(log, where, call)


def test_a_batch_is_known_by_its_query_and_its_number(tmp_path: Path) -> None:
    """What was poured is known, also after reopening; a later batch, and another query, are not."""
    with closing(opened(tmp_path)) as log:
        assert not log.has("q", 0)
        log.pour("q", 3, [piece(numbered(0, 2)), piece(numbered(2, 3))])
        assert log.has("q", 3)
    with closing(opened(tmp_path)) as log:
        assert (log.has("q", 2), log.has("q", 3), log.has("q", 4)) == (True, True, False)
        assert not log.has("r", 0)
        log.pour("r:with:colons", 0, [piece(numbered(3, 4))])
        assert log.end[1] == 4
    assert lines_in(tmp_path) == numbered(0, 4)


def test_a_batch_without_rows_leaves_nothing(tmp_path: Path) -> None:
    """An empty batch makes no block."""
    with closing(opened(tmp_path)) as log:
        log.pour("q", 0, [])
        assert log.end == [0, 0]


def test_a_line_may_hold_a_carriage_return(tmp_path: Path) -> None:
    """Only a newline ends a line."""
    with closing(opened(tmp_path)) as log:
        log.pour("q", 0, [Piece(b'{"a":\r1}\n{"b":\x0b2}\n')])
    assert lines_in(tmp_path) == [b'{"a":\r1}', b'{"b":\x0b2}']


def test_cut_off_between_the_append_and_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag in the log tells that the batch is there, whoever else has written since."""
    log = opened(tmp_path)
    log.pour("q", 0, [piece(numbered(0, 1))])
    cut(log, monkeypatch, "_finish")
    with pytest.raises(Cut):
        log.pour("q", 1, [piece(numbered(1, 3))])
    log.close()
    with closing(LogWriter(tmp_path / "log")) as other:
        other.append([Entry(numbered(3, 4), "of-a-client")])
    with closing(opened(tmp_path)) as log:
        assert log.has("q", 1)
        assert not log.has("q", 2)
    assert lines_in(tmp_path) == numbered(0, 4)


@pytest.mark.parametrize(
    ("where", "calls"), [*(("_append", calls) for calls in range(6)), ("_finish", 0)]
)
def test_a_large_batch_is_whole_wherever_it_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, calls: int
) -> None:
    """Once its lines are on disk, the next opening appends the parts that are missing."""
    log = opened(tmp_path)
    pieces = large(log)
    cut(log, monkeypatch, where, calls)
    with pytest.raises(Cut):
        log.pour("q", 0, pieces)
    log.close()
    for _ in range(2):
        with closing(opened(tmp_path)) as log:
            assert log.has("q", 0)
            assert list(log.folder.glob("*.lines")) == []
    assert sorted(lines_in(tmp_path)) == sorted(numbered(0, 40))


def test_a_large_batch_that_was_not_begun_never_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off before the record of the files, nothing of the batch is left, and it can be poured
    again."""
    log = opened(tmp_path)
    pieces = large(log)
    cut(log, monkeypatch, "_remember")
    with pytest.raises(Cut):
        log.pour("q", 0, pieces)
    log.close()
    with closing(opened(tmp_path)) as log:
        assert not log.has("q", 0)
        assert list(log.folder.glob("*.lines")) == []
        log.pour("q", 0, large(log))
    assert sorted(lines_in(tmp_path)) == sorted(numbered(0, 40))


def test_a_lost_file_of_a_large_batch_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a batch is not left in the log without a word."""
    log = opened(tmp_path)
    pieces = large(log)
    cut(log, monkeypatch, "_append", 1)
    with pytest.raises(Cut):
        log.pour("q", 0, pieces)
    log.close()
    (log.folder / "b.lines").unlink()
    with pytest.raises(StoreError, match=r"b\.lines: is missing.*restore"):
        opened(tmp_path)


def test_what_retention_has_removed_is_still_known(tmp_path: Path) -> None:
    """The record outlives the tags."""
    keep = Retention(None, 1)
    with closing(opened(tmp_path, keep)) as log:
        for batch in range(40):
            log.pour("q", batch, [piece([b'"%s"' % (b"x" * 5_000)])])
    with closing(LogReader(tmp_path / "log")) as reader:
        assert reader.start[1] > 0
    with closing(opened(tmp_path, keep)) as log:
        assert log.has("q", 0)
        assert log.has("q", 39)
        assert not log.has("q", 40)


def test_only_the_last_queries_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new checkpoint is a new query, so the record must not grow for ever."""
    monkeypatch.setattr(poured_log, "QUERIES", 2)
    with closing(opened(tmp_path)) as log:
        for number, query in enumerate(("a", "b", "a", "c")):
            log.pour(query, number, [piece(numbered(0, 1))])
        assert [log.has(query, 0) for query in "abc"] == [True, False, True]


def test_a_log_has_one_writer(tmp_path: Path) -> None:
    """A server that takes events for the source, or another pour, is told of."""
    with closing(opened(tmp_path)), pytest.raises(LogLocked, match="another process writes to it"):
        opened(tmp_path)


def test_a_log_that_was_replaced_is_refused(tmp_path: Path) -> None:
    """A record of more than the log has means that one of them is not what it was."""
    with closing(opened(tmp_path)) as log:
        log.pour("q", 0, [piece(numbered(0, 1))])
    (tmp_path / "log").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"last\.json: source 'clicks'.*was the log replaced"):
        opened(tmp_path)
