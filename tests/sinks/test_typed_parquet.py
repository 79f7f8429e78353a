"""Parquet columns from a type: of events whose value is declared, and of slates' changes."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sinks.test_file_sink import QUERY, Killed, event, killed_at

from millstream.column_types import ColumnReader, ColumnType, column_type, record_type
from millstream.sinks.columns import CHANGE_COLUMNS, EVENT_COLUMNS
from millstream.sinks.files import FileSink
from millstream.sinks.parquet_columns import arrow_type
from millstream.sinks.slate_files import write_slates


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: float | None = None


@dataclass
class Score:
    user: str
    points: int = 0
    share: float = 0.0
    good: bool = False
    seen: datetime | None = None
    tags: list[str] = field(default_factory=list)
    by_day: dict[str, int] = field(default_factory=dict)
    at: Point | None = None
    other: Any = None


SCORE = record_type(Score)
assert SCORE is not None


def found(folder: Path) -> pa.Table:
    files = sorted(folder.glob("part-*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files], promote_options="default")


def test_events_have_a_column_for_each_field(tmp_path: Path) -> None:
    """A declared type gives typed columns, lists, maps and records within included."""
    seen = datetime(2026, 1, 5, 9, tzinfo=UTC)
    score = Score("ann", 3, 0.5, True, seen, ["a", "b"], {"mon": 1}, Point(1), {"z": [1]})
    value = msgspec.json.decode(msgspec.json.encode(score))
    FileSink(str(tmp_path), "parquet", QUERY, EVENT_COLUMNS, record=SCORE).publish(
        0, [event(5, value), event(6, {"user": "bob", "more": 1})]
    )
    table = found(tmp_path)
    assert table.schema.names == [
        *("ts", "key", "user", "points", "share", "good", "seen", "tags", "by_day", "at", "other"),
        "unfit",
    ]
    assert table.schema.field("points").type == pa.int64()
    assert table.schema.field("seen").type == pa.timestamp("us", "UTC")
    assert table.schema.field("at").type == pa.struct([("x", pa.int64()), ("y", pa.float64())])
    ann, bob = table.to_pylist()
    assert ann | {"ts": 0} == {
        **{"ts": 0, "key": "k", "user": "ann", "points": 3, "share": 0.5, "good": True},
        **{"seen": seen, "tags": ["a", "b"], "by_day": [("mon", 1)], "at": {"x": 1, "y": None}},
        **{"other": '{"z":[1]}', "unfit": None},
    }
    assert (bob["user"], bob["points"], bob["unfit"]) == ("bob", None, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ([1], "[1]"),
        ({"user": 1}, '{"user":1}'),
        ({"points": 1 << 70}, '{"points":1180591620717411303424}'),
        (b"raw", '{"bytes":"cmF3"}'),
    ],
)
def test_what_does_not_fit_is_kept_as_text(tmp_path: Path, value: Any, text: str) -> None:
    """A value that is not of the declared type stops nothing and is not lost."""
    sink = FileSink(str(tmp_path), "parquet", QUERY, EVENT_COLUMNS, record=SCORE)
    sink.publish(0, [event(5, value), event(6, {"user": "ann"})])
    table = found(tmp_path)
    assert table["unfit"].to_pylist() == [text, None]
    assert table["user"].to_pylist() == [None, "ann"]


def test_a_slate_that_is_gone_is_marked(tmp_path: Path) -> None:
    """Changes of slates of a dataclass have its fields, and say which slates are gone."""
    rows = [
        {"key": "a", "slate": msgspec.Raw(b'{"x":1,"y":2}'), "ts": 5, "batch": 0},
        {"key": "b", "slate": None, "ts": 6, "batch": 0},
    ]
    record = record_type(Point)
    FileSink(str(tmp_path), "parquet", QUERY, CHANGE_COLUMNS, record=record).publish(0, rows)
    names = ("key", "x", "y", "unfit", "deleted", "batch")
    assert [tuple(row[name] for name in names) for row in found(tmp_path).to_pylist()] == [
        ("a", 1, 2.0, None, False, 0),
        ("b", None, None, None, True, 0),
    ]


A = ColumnType("record", ("n",), (ColumnType("integer"),))
B = ColumnType("record", ("n", "m"), (ColumnType("text"), ColumnType("integer")))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.lists(st.tuples(st.integers(1, 14), st.sampled_from([None, A, B])), max_size=3),
            st.sampled_from([None, A, B]),
        ),
        max_size=6,
    )
)
def test_any_crash_while_the_type_changes_leaves_each_batch_once(
    batches: list[tuple[int, list[tuple[int, ColumnType | None]], ColumnType | None]],
) -> None:
    """Killed at any steps and published again with another type, each batch is there once."""

    def times(root: str) -> list[int]:
        files = sorted(Path(root).glob("part-*.parquet"))
        tables = [pq.read_table(pa.py_buffer(file.read_bytes())) for file in files]
        return [ts for table in tables for ts in table["ts"].cast(pa.int64()).to_pylist()]

    def sink(root: str, record: ColumnType | None) -> FileSink:
        return FileSink(root, "parquet", QUERY, EVENT_COLUMNS, file_bytes=3_000, record=record)

    with tempfile.TemporaryDirectory() as root:
        before: list[int] = []
        for batch, (count, crashes, record) in enumerate(batches):
            rows = [event(batch * 10 + i, {"n": i}) for i in range(count)]
            after = before + [row["ts"] for row in rows]
            for step, another in crashes:
                try:
                    with killed_at(step):
                        sink(root, another).publish(batch, rows)
                except Killed:
                    pass
                assert times(root) in (before, after)
            sink(root, record).publish(batch, rows)
            assert times(root) == after
            before = after


@dataclass
class Everything:
    a: int
    b: date
    c: time
    d: timedelta
    e: Decimal
    f: UUID
    g: Literal["x", "y"]
    h: Colour
    i: bytes
    j: tuple[int, ...]
    k: frozenset[str]
    l: int | str  # noqa: E741
    m: Literal["x", 1]
    n: dict[int, str]
    o: tuple[int, str]
    kids: list[Everything] = field(default_factory=list)


def test_the_type_of_each_column() -> None:
    """Each type that JSON can carry has a column's type, and a value of it fits."""
    record = column_type(Everything)
    value = Everything(
        *(1, date(2026, 1, 5), time(9), timedelta(seconds=3), Decimal("1.5"), UUID(int=1)),
        *("x", Colour.RED, b"raw", (1, 2), frozenset("s"), "t", 1, {1: "one"}, (1, "o")),
    )
    cells = ColumnReader(record).decoded(msgspec.json.encode(value))
    assert cells is not None
    arrays = [
        pa.array([cell], arrow_type(part)) for cell, part in zip(cells, record.parts, strict=True)
    ]
    assert [array[0].as_py() for array in arrays] == [
        *(1, date(2026, 1, 5), time(9), "PT3S", "1.5", str(UUID(int=1)), "x", "red", b"raw"),
        *([1, 2], ["s"], '"t"', "1", '{"1":"one"}', '[1,"o"]', []),
    ]
    assert column_type(Point | None) == record_type(Point)
    assert record_type(dict) is None


def test_a_dump_has_the_slates_fields(tmp_path: Path) -> None:
    """A dump of a dataclass's slates has typed columns; what does not fit is text."""
    file = tmp_path / "points.parquet"
    rows = [("a", {"x": 1}, 5), ("b", {"x": "one"}, 6)]
    assert write_slates("parquet", file, rows, record_type(Point)) == 2
    table = pq.read_table(file)
    assert table.schema.names == ["key", "x", "y", "unfit", "ts"]
    assert table["x"].to_pylist() == [1, None]
    assert table["unfit"].to_pylist() == [None, '{"x":"one"}']
