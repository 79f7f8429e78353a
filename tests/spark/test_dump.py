"""A dump through Spark: what a reader would read, of one committed batch, whole or not at all."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from millstream.cli.dump import destination, write, write_parts
from millstream.codec import encode_value, shard_of
from millstream.column_types import ColumnType
from millstream.errors import StaleRead
from millstream.spark.dump import Dumped, dump
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.layout import pack_slate, slates_of, table_of
from millstream.stores.reader import SlateReader

pytestmark = pytest.mark.spark
SHARDS = 5
UPDATES = {"count": "dict", "feed": "table", "none": "dict"}
KEYS = [f"key{number}" for number in range(300)] + ["", "\x00", "naïve ✓", "k" * 600]


def commit(home: Home, batch: int, *, progress: bool = True) -> None:
    """Commit a batch that gives every key's slates its number."""
    store = home.store()
    for number in range(SHARDS):
        rows: dict[str, dict[bytes, bytes | None]] = {"count": {}, "feed": {}}
        for key in KEYS:
            if shard_of("count", key, SHARDS) == number:
                slate = encode_value({"batch": batch, "of": key})
                rows["count"][slates_of("count") + key.encode()] = pack_slate(batch, slate, {})
            if shard_of("feed", key, SHARDS) == number:
                rows["feed"][slates_of("feed") + key.encode()] = pack_slate(batch, b"", {})
                table = table_of("feed", key)
                for entry in range(len(key) % 4):
                    value = encode_value([key, batch])
                    rows["feed"][table + f"entry{entry}".encode()] = value
        store.shard(number).commit(Fence(1, batch, 0), rows)
    store.close()
    if progress:
        home.write_progress({"batch": batch})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.make(tmp_path / "store", "dumped", SHARDS, UPDATES)
    commit(made, 0)
    return made


def rows_of(folder: Path) -> list[list[dict[str, Any]]]:
    """The rows of each part, slates decoded, times as numbers."""
    parts = []
    for file in sorted(folder.iterdir()):
        if file.suffix == ".jsonl":
            parts.append([json.loads(line) for line in file.read_text().splitlines()])
        else:
            table = pq.read_table(file)
            times = table["ts"].cast("int64").to_pylist()
            slates = [json.loads(slate) for slate in table["slate"].to_pylist()]
            parts.append(
                [
                    {"key": key, "slate": slate, "ts": ts}
                    for key, slate, ts in zip(table["key"].to_pylist(), slates, times, strict=True)
                ]
            )
    return parts


def read(home: Home, update: str) -> list[dict[str, Any]]:
    with SlateReader(home.path) as reader:
        return [{"key": s.key, "slate": s.value, "ts": s.ts} for s in reader.scan(update)]


def made(update: str, batch: int) -> list[dict[str, Any]]:
    """The rows that `commit` made, in key order."""
    slates: dict[str, Any] = {
        "count": {key: {"batch": batch, "of": key} for key in KEYS},
        "feed": {key: {f"entry{n}": [key, batch] for n in range(len(key) % 4)} for key in KEYS},
        "none": {},
    }
    rows = [{"key": key, "slate": slate, "ts": batch} for key, slate in slates[update].items()]
    return sorted(rows, key=encoded)


def encoded(row: dict[str, Any]) -> bytes:
    return str(row["key"]).encode()


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("update", UPDATES)
def test_a_dump_is_what_a_reader_reads(
    spark: Any, home: Home, tmp_path: Path, form: str, update: str
) -> None:
    """Every slate once, tables with their entries, each part in key order, in both formats."""
    dumped = dump(home.path, update, form, tmp_path / "out", context=spark)
    parts, expected = rows_of(tmp_path / "out"), made(update, 0)
    assert read(home, update) == expected
    assert sorted((row for part in parts for row in part), key=encoded) == expected
    assert all(part == sorted(part, key=encoded) for part in parts)
    assert dumped == Dumped(0, len(expected), 2)
    names = [f"part-0000{number}.{form}" for number in range(2)]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == names


def test_a_batch_that_is_not_committed_is_not_seen(spark: Any, home: Home, tmp_path: Path) -> None:
    """Shards that are a batch ahead are read as of the committed one."""
    commit(home, 1, progress=False)
    dumped = dump(home.path, "count", "jsonl", tmp_path / "out", context=spark)
    rows = [row for part in rows_of(tmp_path / "out") for row in part]
    assert dumped.batch == 0
    assert {row["slate"]["batch"] for row in rows} == {0}
    assert len(rows) == len(KEYS)


def test_a_dump_while_the_application_runs(spark: Any, home: Home, tmp_path: Path) -> None:
    """A dump is of one batch, in all shards, whatever is committed meanwhile."""
    stop = threading.Event()

    def work() -> None:
        batch = 0
        while not stop.wait(0.1):
            batch += 1
            commit(home, batch)

    application = threading.Thread(target=work)
    application.start()
    try:
        deadline = time.monotonic() + 60
        while home.committed() < 1 and time.monotonic() < deadline:
            stop.wait(0.02)
        dumped = dump(home.path, "feed", "jsonl", tmp_path / "out", context=spark)
    finally:
        stop.set()
        application.join()
    rows = [row for part in rows_of(tmp_path / "out") for row in part]
    assert dumped.batch >= 1
    assert sorted(rows, key=encoded) == made("feed", dumped.batch)


def test_a_batch_that_is_forgotten_is_refused(spark: Any, home: Home, tmp_path: Path) -> None:
    """Shards that are two batches past the committed one cannot be read as of it: the dump gives
    up, says what to do, and leaves nothing."""
    commit(home, 1, progress=False)
    commit(home, 2, progress=False)
    with pytest.raises(StaleRead, match=r"say --no-spark.*or stop the application"):
        dump(home.path, "count", "jsonl", tmp_path / "out", context=spark)
    assert not (tmp_path / "out").exists()


def test_the_command_replaces_a_dump_whole(
    spark: Any, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`slates dump --overwrite` replaces a dump in one file with the same slates."""
    monkeypatch.setattr("millstream.spark.dump.open_context", lambda *_: spark)
    monkeypatch.setattr("millstream.spark.dump.close_context", lambda _: None)
    with SlateReader(home.path) as reader:
        assert write(reader.scan("feed"), destination(f"parquet:{tmp_path}", "feed", False)) == len(
            KEYS
        )
    plain = pq.read_table(tmp_path / "feed.parquet").to_pylist()
    write_parts(home.path, "feed", destination(f"parquet:{tmp_path}", "feed", True))
    parts = pq.read_table(tmp_path / "feed").to_pylist()
    assert sorted(parts, key=encoded) == plain
    assert not (tmp_path / "feed.parquet").exists()
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_the_parts_have_a_column_for_each_field(spark: Any, home: Home, tmp_path: Path) -> None:
    """Tasks write slates as columns of the type that the store knows."""
    record = ColumnType("record", ("batch", "of"), (ColumnType("integer"), ColumnType("text")))
    dump(home.path, "count", "parquet", tmp_path / "out", record=record, context=spark)
    found = pq.read_table(tmp_path / "out", columns=["key", "batch", "of", "unfit"]).to_pylist()
    expected = [{"key": key, "batch": 0, "of": key, "unfit": None} for key in KEYS]
    assert sorted(found, key=encoded) == sorted(expected, key=encoded)
