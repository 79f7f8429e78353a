"""How the rows of a DataFrame become records, events and dead letters."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from driver_runs.harness import kept_rows
from heard_clicks import clicks, slates
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import MillstreamError
from millstream.sources.formats import InputSplit
from millstream.sources.parquet_files import ParquetFiles
from millstream.spark import poured_rows

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark: Any) -> SparkSession:
    made = SparkSession(spark).newSession()
    made.conf.set("spark.sql.session.timeZone", "America/New_York")
    made.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return made


TYPES = """select 'ann' as user, timestamp'2024-01-02 03:04:05.678901Z' as at,
    timestamp_ntz'2024-01-02 03:04:05.000001' as ntz, date'2024-02-29' as day, true as yes,
    cast(1 as tinyint) as tiny, 9007199254740993L as long, cast(0.5 as float) as half, 2.25d as dbl,
    cast('nan' as double) as nan, 12.50bd as dec, X'00ff' as bin, cast(null as string) as nothing,
    interval 1 minute as pause, array(1, null, 3) as list, array() as none,
    map('a', 1, 'b', null) as map, map(1, 'x') as numbered,
    named_struct('deep', array(named_struct('at', timestamp'1969-12-31 23:59:59.999999Z'))) as nest,
    'line\\nbreak "quoted" \\u00e9\\ud83d\\ude00' as text"""


def test_every_type_is_as_in_a_parquet_file(session: SparkSession, tmp_path: Path) -> None:
    """A row poured is the record that the Parquet source makes of the same row in a file."""
    app, store = clicks(), tmp_path / "store"
    frame = session.sql(TYPES)
    with ms.spark.into(app, "clicks", store=store, shards=1) as pour:
        pour(frame, 0, query="history")
    ((ts, record),) = slates(store)["ann"]["heard"]
    assert ts == 1_704_164_645_678_901
    frame.write.parquet(str(tmp_path / "parquet"))
    (file,) = (tmp_path / "parquet").glob("*.parquet")
    (chunk,) = ParquetFiles().read(InputSplit(str(file), 0, None))
    assert chunk.records == [record]
    assert record["at"] == "2024-01-02T03:04:05.678901Z"
    assert record["nest"] == {"deep": [{"at": "1969-12-31T23:59:59.999999Z"}]}
    assert record["text"] == 'line\nbreak "quoted" é😀'
    assert (record["map"], record["numbered"]) == ({"a": 1, "b": None}, [[1, "x"]])
    assert (record["long"], record["nan"], record["list"]) == (
        9_007_199_254_740_993,
        None,
        [1, None, 3],
    )
    assert record["nothing"] is None


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("'text'", "text"),
        ("7", 7),
        ("2.5d", 2.5),
        ("array(1, 2)", [1, 2]),
        ("map('a', 1)", {"a": 1}),
        ("named_struct('a', 1)", {"a": 1}),
        ("cast(null as string)", None),
    ],
)
def test_a_value_of_any_type(
    session: SparkSession, tmp_path: Path, column: str, value: object
) -> None:
    """value= alone is the event's value; with key= and ts=, these are fields of it too."""
    store = tmp_path / "store"
    frame = session.sql(f"select 5L as id, 1700000000.25d as seconds, {column} as payload")
    plain = clicks(key=None)
    with ms.spark.into(plain, "clicks", store=store, shards=1, value="payload") as pour:
        pour(frame, 0, query="history")
    assert [heard for _, heard in slates(store)[""]["heard"]] == [value]

    keyed, other = clicks(key="user", ts="when.at", unit="s"), tmp_path / "keyed"
    columns = {"key": "id", "ts": "seconds", "value": "payload"}
    with ms.spark.into(keyed, "clicks", store=other, shards=1, **columns) as pour:
        pour(frame, 0, query="history")
    inner = value if isinstance(value, dict) else {"payload": value}
    record = {**inner, "user": 5, "when": {"at": 1_700_000_000.25}}
    assert slates(other) == {"5": {"heard": [[1_700_000_000_250_000, record]]}}


def test_json_text_is_the_record(session: SparkSession, tmp_path: Path) -> None:
    """json= takes text or bytes as a topic of Kafka holds them, with a key and a time beside it or
    in it; what is no JSON is a dead letter, and empty text no record."""
    store = tmp_path / "store"
    texts = ['{"page":\n "/a", "user": "old"}', "[1]", "no json", None, " "]
    frame = session.createDataFrame(
        [(f"k{number}", text) for number, text in enumerate(texts)], "key string, value string"
    ).selectExpr("key", "cast(value as binary) as value", "timestamp'2024-01-01 00:00:00Z' as at")
    columns = {"key": "key", "ts": "at", "json": "value"}
    with ms.spark.into(clicks(), "clicks", store=store, shards=1, **columns) as pour:
        pour(frame, 0, query="history")
    record = {"page": "/a", "user": "k0", "at": "2024-01-01T00:00:00.000000Z"}
    assert slates(store) == {"k0": {"heard": [[1_704_067_200_000_000, record]]}}
    errors = [letter["error"] for letter in kept_rows(store, "deadletters")]
    assert len(errors) == 3
    assert sum("JSON value" in error for error in errors) == 1
    assert sum("no field 'user'" in error for error in errors) == 2

    whole = tmp_path / "whole"
    with ms.spark.into(clicks(key="user"), "clicks", store=whole, shards=1, json="value") as pour:
        pour(frame.filter("key = 'k0'"), 0, query="history")
    assert slates(whole)["old"]["heard"][0][1] == {"page": "/a", "user": "old"}


def test_key_and_ts_of_a_whole_row_are_renamed(session: SparkSession, tmp_path: Path) -> None:
    """The columns go to the fields that the source looks at; the others stay as they are."""
    store = tmp_path / "store"
    frame = session.sql("select 'ann' as who, date'2024-01-01' as day, '/a' as `odd.name`")
    with ms.spark.into(clicks(), "clicks", store=store, shards=1, key="who", ts="day") as pour:
        pour(frame, 0, query="history")
    record = {"user": "ann", "at": "2024-01-01", "odd.name": "/a"}
    assert slates(store) == {"ann": {"heard": [[1_704_067_200_000_000, record]]}}


def test_rows_that_cannot_be_events_are_dead_letters(session: SparkSession, tmp_path: Path) -> None:
    """No key, no time or an infinity: the row is a dead letter, and the others are events."""
    store = tmp_path / "store"
    at = dt.datetime(2024, 1, 1)
    given = [("ann", at, 1.0), (None, at, 2.0), ("bob", None, 3.0), ("eve", at, float("inf"))]
    frame = session.createDataFrame(given, "user string, at timestamp, spent double")
    with ms.spark.into(clicks(), "clicks", store=store, shards=1) as pour:
        pour(frame, 0, query="history")
        pour(frame.select("at"), 1, query="history")
    assert list(slates(store)) == ["ann"]
    errors = sorted(letter["error"] for letter in kept_rows(store, "deadletters"))
    assert len(errors) == 7
    assert sum("key must be text" in error for error in errors) == 1
    assert sum("ts must be" in error for error in errors) == 1
    assert sum("no field 'user'" in error for error in errors) == 4
    (inf,) = (row for row in kept_rows(store, "deadletters") if "inf" in str(row["value"]))
    assert "a row must hold what JSON can carry" in inf["value"]
    assert "user='eve'" in inf["value"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"key": "usr"}, r"into\(key='usr'\): the rows have no such column; did you mean 'user'"),
        ({"value": "spend.deep"}, r"into\(value='spend.deep'\): the rows have no such column"),
        ({"key": "spent"}, r"a key must be text or a whole number; the column is double"),
        ({"ts": "spent"}, r"the column is double, and source 'clicks' does not say its unit"),
        ({"ts": "yes"}, r"a time must be a timestamp.*the column is boolean"),
        ({"json": "spent"}, r"must hold JSON text.*it is double.*value='spent'"),
        ({}, r"a column's name must be unique; got twice: page"),
    ],
)
def test_a_wrong_column_is_said(
    session: SparkSession, tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    """The error of the first micro-batch has the expected and the actual type of the column."""
    text = "select 'ann' as user, 'x' as page, 1.5d as spent, true as yes"
    frame = session.sql(text if given else f"{text}, 'y' as page")
    with (
        ms.spark.into(clicks(), "clicks", store=tmp_path / "store", shards=1, **given) as pour,
        pytest.raises(MillstreamError, match=message),
    ):
        pour(frame, 0, query="history")


def test_the_lines_are_the_records() -> None:
    """The record of a row, without Spark."""
    shape = poured_rows.RecordShape("object", "payload", ("meta", "user"), ("at",))
    row = {poured_rows.KEY: "ann", poured_rows.TIME: 5, poured_rows.VALUE: {"meta": {"a": 1}}}
    expected = {"meta": {"a": 1, "user": "ann"}, "at": 5}
    assert json.loads(shape.line(row)) == expected
