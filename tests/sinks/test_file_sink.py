"""The file sink: a batch reaches the directory whole and once, whatever crashes in between."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_limit import no_file_larger_than
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from fault_runs.published_rows import read_rows
from millstream.errors import (
    CodecError,
    DefinitionError,
    RunError,
    SinkError,
    StoreError,
)
from millstream.model.rules import DeadLetter
from millstream.sinks.columns import DEADLETTER_COLUMNS, EVENT_COLUMNS, LATE_COLUMNS
from millstream.sinks.files import FileSink

QUERY = "1a2b3c4d-0000-4000-8000-000000000000"
Row = dict[str, Any]
both = pytest.mark.parametrize("format", ["json", "parquet"])


def event(ts: int, value: Any = None, key: str = "k") -> Row:
    return {"ts": ts, "key": key, "value": value}


def visible(directory: Path | str) -> list[str]:
    return sorted(name for name in os.listdir(directory) if not name.startswith("."))


class Killed(BaseException):
    """The process dies here: nothing that follows is run, clean-up neither."""


STEPS = ("open", "write", "fsync", "replace", "unlink")


@contextmanager
def killed_at(step: int, trace: list[str] | None = None) -> Iterator[None]:
    """Die in place of the step-th change to the disk; a write is done by half."""
    count = 0

    def dying(name: str) -> Any:
        real = getattr(os, name)

        def act(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            if trace is not None:
                trace.append(name)
            count += 1
            if count == step:
                if name == "write":
                    real(args[0], args[1][: len(args[1]) // 2])
                raise Killed
            return real(*args, **kwargs)

        return act

    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, dying(name))
        yield


@both
def test_rows_come_back_as_they_were_published(tmp_path: Path, format: str) -> None:
    """Any value of JSON and bytes, in the order of batches; big integers and times included."""
    rows = [
        event(-1, None),
        event(2**60, {"a": [1, 2.5, "é", None, True], "n": 10**30}),
        event(3, b"\x00\xff"),
        event(4, "text"),
        event(5, b""),
    ]
    sink = FileSink(str(tmp_path / "new" / "out"), format, QUERY, EVENT_COLUMNS)
    sink.publish(0, rows[:2])
    sink.publish(7, rows[2:])
    assert list(read_rows(str(tmp_path / "new" / "out"))) == rows


def test_what_a_reader_of_json_lines_finds(tmp_path: Path) -> None:
    """ts is a number, a value is itself, bytes are base64 in a field of their own."""
    FileSink(str(tmp_path), "json", QUERY, LATE_COLUMNS).publish(
        12, [{"stream": "s", **event(5, {"b": 1})}, {"stream": "s", **event(6, b"raw")}]
    )
    lines = (tmp_path / "part-1a2b3c4d-00000012.jsonl").read_text().splitlines()
    assert lines[0] == '{"stream":"s","ts":5,"key":"k","value":{"b":1}}'
    assert json.loads(lines[1]) == {
        "stream": "s",
        "ts": 6,
        "key": "k",
        "bytes": base64.b64encode(b"raw").decode(),
    }


def test_what_a_reader_of_parquet_finds(tmp_path: Path) -> None:
    """ts is a timestamp in UTC, a value is JSON text, bytes are a binary column."""
    FileSink(str(tmp_path), "parquet", QUERY, EVENT_COLUMNS).publish(
        12, [event(5, {"b": 1}), event(6, b"raw")]
    )
    table = pq.read_table(tmp_path / "part-1a2b3c4d-00000012.parquet")
    assert table.schema.field("ts").type == pa.timestamp("us", "UTC")
    assert table["value"].to_pylist() == ['{"b":1}', None]
    assert table["bytes"].to_pylist() == [None, b"raw"]


@both
def test_dead_letters_have_their_columns(tmp_path: Path, format: str) -> None:
    """Every field of a dead letter is a column, nulls included."""
    letters = [
        asdict(DeadLetter("count", "s", 1, "k", {"a": 1}, "ValueError: x", batch=3, timer="t")),
        asdict(DeadLetter(None, "s", 2, "", "torn {", "a line must ...", file="f", line=9)),
    ]
    FileSink(str(tmp_path), format, QUERY, DEADLETTER_COLUMNS).publish(3, letters)
    assert list(read_rows(str(tmp_path))) == letters


@both
def test_small_batches_share_a_file_and_large_ones_begin_another(
    tmp_path: Path, format: str
) -> None:
    """A file is extended until it is large enough; its name is that of its first batch."""
    sink = FileSink(str(tmp_path), format, QUERY, EVENT_COLUMNS, file_bytes=20_000)
    batches = [[event(b * 100 + i, os.urandom(50).hex()) for i in range(20)] for b in range(30)]
    for batch, rows in enumerate(batches):
        sink.publish(batch, rows)
    names = visible(tmp_path)
    assert 2 <= len(names) <= 6
    assert names[0].startswith("part-1a2b3c4d-00000000.")
    assert list(read_rows(str(tmp_path))) == [row for rows in batches for row in rows]


def test_an_empty_batch_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither a file nor a record; and a repeat that turns out empty takes its rows back."""
    sink = FileSink(str(tmp_path), "json", QUERY, EVENT_COLUMNS)
    sink.publish(0, [])
    assert os.listdir(tmp_path) == []
    sink.publish(1, [event(1)])
    sink.publish(1, [])
    assert visible(tmp_path) == []
    sink.publish(2, [event(2)])
    assert list(read_rows(str(tmp_path))) == [event(2)]


def test_older_batches_are_published_already(tmp_path: Path) -> None:
    """A batch before the last is ignored."""
    sink = FileSink(str(tmp_path), "json", QUERY, EVENT_COLUMNS)
    sink.publish(4, [event(4)])
    sink.publish(5, [event(5)])
    sink.publish(4, [event(99)])
    assert list(read_rows(str(tmp_path))) == [event(4), event(5)]


@both
@settings(max_examples=examples(60), deadline=None)
@given(
    batches=st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.integers(1, 14), max_size=3), st.booleans()),
        max_size=6,
    )
)
def test_any_crash_leaves_each_batch_whole_and_once(
    format: str, batches: list[tuple[int, list[int], bool]]
) -> None:
    """Killed at any steps and published again by a new process, each batch is there once.

    At every moment in between, the directory holds all batches before, and the current one whole
    or not at all.
    """
    with tempfile.TemporaryDirectory() as root:
        before: list[Row] = []
        for batch, (count, crashes, again) in enumerate(batches):
            rows = [event(batch * 10 + i, {"n": "x" * 40}) for i in range(count)]
            for step in crashes:
                try:
                    with killed_at(step):
                        FileSink(root, format, QUERY, EVENT_COLUMNS, file_bytes=400).publish(
                            batch, rows
                        )
                except Killed:
                    pass
                assert list(read_rows(root)) in (before, before + rows)
            sink = FileSink(root, format, QUERY, EVENT_COLUMNS, file_bytes=400)
            for _ in range(1 + again):
                sink.publish(batch, rows)
                assert list(read_rows(root)) == before + rows
            before += rows
        left = [name for name in os.listdir(root) if name.endswith(".tmp")]
        assert left == []


@both
@pytest.mark.parametrize("room", [True, False])
def test_the_record_may_be_lost_though_the_data_is_not(
    tmp_path: Path, format: str, room: bool
) -> None:
    """After a power cut that kept only the later rename, a repeat still makes no double."""
    size = 1 << 20 if room else 1
    sink = FileSink(str(tmp_path), format, QUERY, EVENT_COLUMNS, file_bytes=size)
    record = tmp_path / ".millstream-1a2b3c4d.json"
    sink.publish(0, [event(0)])
    for batch in (1, 2):
        old = record.read_bytes()
        sink.publish(batch, [event(batch)])
        record.write_bytes(old)
        sink.publish(batch, [event(batch)])
    assert list(read_rows(str(tmp_path))) == [event(0), event(1), event(2)]


def test_what_is_renamed_is_on_disk_first(tmp_path: Path) -> None:
    """Both files are synced before the first rename, and the directory after the last."""
    sink = FileSink(str(tmp_path), "json", QUERY, EVENT_COLUMNS)
    trace: list[str] = []
    with killed_at(0, trace):
        sink.publish(0, [event(0)])
    assert trace == [
        *("open", "write", "fsync"),
        *("open", "write", "fsync"),
        *("replace", "replace"),
        *("open", "fsync"),
    ]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """The error says what to do; nothing half-written is left; with room the batch goes in."""
    sink = FileSink(str(tmp_path), "json", QUERY, EVENT_COLUMNS)
    sink.publish(0, [event(0)])
    refused = "batch 1 cannot be written: File too large; make room"
    with no_file_larger_than(1000), pytest.raises(RunError, match=refused):
        sink.publish(1, [event(1, "x" * 2000)])
    assert list(read_rows(str(tmp_path))) == [event(0)]
    assert len(os.listdir(tmp_path)) == 2
    sink.publish(1, [event(1, "y")])
    assert list(read_rows(str(tmp_path))) == [event(0), event(1, "y")]


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    """A file in the way, or a file system that takes none, is an error when the sink is made."""
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/millstream")):
        with pytest.raises(RunError, match=f"sink {place}: must be a directory"):
            FileSink(str(place), "json", QUERY, EVENT_COLUMNS)


@both
def test_a_sink_that_failed_can_be_tried_again(tmp_path: Path, format: str) -> None:
    """A file where the directory must be: SinkError each time; once it is gone the batch goes in,
    into the old directory or a new one."""
    place, aside = tmp_path / "out", tmp_path / "aside"
    sink = FileSink(str(place), format, QUERY, EVENT_COLUMNS)
    sink.publish(0, [event(0)])
    place.rename(aside)
    place.write_text("in the way")
    for _ in range(2):
        with pytest.raises(SinkError, match=f"sink {place}: "):
            sink.publish(1, [event(1)])
    place.unlink()
    aside.rename(place)
    sink.publish(1, [event(1)])
    assert list(read_rows(str(place))) == [event(0), event(1)]
    place.rename(aside)
    with pytest.raises(SinkError, match="batch 2 cannot be written: No such file"):
        sink.publish(2, [event(2)])
    sink.publish(2, [event(2)])
    assert list(read_rows(str(place))) == [event(2)]


@both
def test_a_file_taken_out_of_the_directory_is_not_missed(tmp_path: Path, format: str) -> None:
    """A consumer may move files away. The next batch begins a new one."""
    sink = FileSink(str(tmp_path), format, QUERY, EVENT_COLUMNS)
    sink.publish(0, [event(0)])
    os.unlink(tmp_path / visible(tmp_path)[0])
    sink.publish(1, [event(1)])
    sink.publish(2, [event(2)])
    assert list(read_rows(str(tmp_path))) == [event(1), event(2)]


@both
def test_a_file_that_was_cut_is_refused(tmp_path: Path, format: str) -> None:
    """Published records must still be there: extending a damaged file would hide the loss."""
    sink = FileSink(str(tmp_path), format, QUERY, EVENT_COLUMNS)
    sink.publish(0, [event(0), event(1)])
    path = tmp_path / visible(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(StoreError, match="move it away"):
        sink.publish(1, [event(2)])


def test_queries_share_a_directory_but_sinks_of_one_query_do_not(tmp_path: Path) -> None:
    """Another query has files of its own; a second stream, or format, of the same is refused."""
    a = FileSink(str(tmp_path), "json", QUERY, EVENT_COLUMNS, name="a")
    b = FileSink(str(tmp_path), "json", QUERY, EVENT_COLUMNS, name="b")
    other = FileSink(str(tmp_path), "parquet", "ffff" + QUERY, EVENT_COLUMNS, name="a")
    twin = FileSink(str(tmp_path), "json", QUERY + "1", EVENT_COLUMNS, name="a")
    changed = FileSink(str(tmp_path), "parquet", QUERY, EVENT_COLUMNS, name="a")
    a.publish(0, [event(0)])
    other.publish(0, [event(1)])
    for sink in (b, twin, changed):
        with pytest.raises(StoreError, match="directory"):
            sink.publish(0, [event(9)])
    assert list(read_rows(str(tmp_path))) == [event(0), event(1)]


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """An unknown format, and a value that is not JSON's."""
    with pytest.raises(DefinitionError, match="json or parquet; got 'csv'"):
        FileSink(str(tmp_path), "csv", QUERY, EVENT_COLUMNS)
    for format in ("json", "parquet"):
        with pytest.raises(CodecError):
            FileSink(str(tmp_path), format, QUERY, EVENT_COLUMNS).publish(0, [event(0, object())])
    assert os.listdir(tmp_path) == []
