"""The sink that is a table of SQLite: the latest value of each key, each batch whole and once."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.codec import encode_value
from millstream.errors import DefinitionError, SinkError, StoreError
from millstream.sinks.sqlite_table import SQLITE_RECORD, sqlite_sink
from millstream.sinks.tables import TableSink

Row = dict[str, Any]
Table = dict[str, tuple[int, Any]]


def row(key: str, ts: int, value: Any) -> Row:
    return {"ts": ts, "key": key, "value": value}


def table(path: Path | str, stream: str = "counts") -> Table:
    """Reads the table as another program, through a connection of its own."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(f'SELECT key, ts, value FROM "{stream}"').fetchall()
    return {
        key: (ts, value if isinstance(value, bytes) else json.loads(value))
        for key, ts, value in found
    }


def meant(rows: list[Row]) -> Table:
    """The plain definition: the last of each key in content order, unless it is null."""
    order = sorted(rows, key=lambda one: (one["ts"], encode_value(one["value"])))
    last = {one["key"]: (one["ts"], one["value"]) for one in order}
    return {key: (ts, value) for key, (ts, value) in last.items() if value is not None}


def publish(path: Path | str, batch: int, *rows: Row, query: str = "q") -> None:
    """As a driver that starts, publishes a batch and ends."""
    sink = sqlite_sink(str(path), query, "counts")
    sink.publish(batch, list(rows))
    sink.close()


def test_the_latest_value_of_each_key(tmp_path: Path) -> None:
    """Values of any kind that an event may have; by time, then by content, in or across batches."""
    path = tmp_path / "new" / "counts.db"
    publish(path, 0, row("a", 1, {"n": 1}), row("b", 1, [1, "é", None]), row("a", 2, {"n": 10**30}))
    publish(path, 1, row("b", 0, "older"), row("c", -5, b"\x00\xff"), row("d", 5, "x\0y"))
    assert table(path) == {
        "a": (2, {"n": 10**30}),
        "b": (1, [1, "é", None]),
        "c": (-5, b"\x00\xff"),
        "d": (5, "x\0y"),
    }
    publish(path, 2, row("a", 2, {"n": 0}), row("c", -5, 1), row("b", 1, b"bytes come first"))
    assert table(path)["a"] == (2, {"n": 10**30})
    assert table(path)["b"] == (1, [1, "é", None])
    assert table(path)["c"] == (-5, 1)


def test_values_are_canonical_json(tmp_path: Path) -> None:
    """Another system reads text with sorted keys."""
    publish(tmp_path / "t.db", 0, row("a", 1, {"b": 1, "a": [True, "é"]}))
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        found = connection.execute("SELECT ts, value, typeof(value) FROM counts").fetchall()
    assert found == [(1, '{"a":[true,"é"],"b":1}', "text")]


def test_null_deletes(tmp_path: Path) -> None:
    """A null value deletes older rows, and leaves newer ones."""
    path = tmp_path / "t.db"
    publish(path, 0, row("a", 1, 1), row("b", 9, 1), row("c", 1, 1), row("c", 2, None))
    assert table(path) == {"a": (1, 1), "b": (9, 1)}
    publish(path, 1, row("a", 2, None), row("b", 2, None), row("never", 2, None))
    assert table(path) == {"b": (9, 1)}


def test_the_table_is_there_before_the_first_event(tmp_path: Path) -> None:
    """Readers need not wait for it. An empty batch changes nothing."""
    sink = sqlite_sink(str(tmp_path / "t.db"), "q", "counts")
    assert table(tmp_path / "t.db") == {}
    sink.publish(0, [])
    sink.close()
    assert noted(tmp_path / "t.db") == {"counts": ("q", -1)}


def noted(path: Path) -> dict[str, tuple[str, int]]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(f'SELECT stream, query, batch FROM "{SQLITE_RECORD}"').fetchall()
    return {stream: (query, batch) for stream, query, batch in found}


def test_a_repeat_changes_nothing(tmp_path: Path) -> None:
    """By the same sink, or by one that is opened after a crash; even if the table has changed."""
    path = tmp_path / "t.db"
    sink = sqlite_sink(str(path), "q", "counts")
    sink.publish(3, [row("a", 1, 1)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE counts SET ts = 0, value = 'by hand'")
        connection.commit()
    sink.publish(3, [row("a", 1, 1)])
    sink.publish(2, [row("a", 1, 1)])
    sink.close()
    publish(path, 3, row("a", 1, 1))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT value FROM counts").fetchall() == [("by hand",)]
    publish(path, 4, row("a", 2, 2))
    assert table(path) == {"a": (2, 2)}
    assert noted(path) == {"counts": ("q", 4)}


class Killed(BaseException):
    """The process dies here."""


@contextmanager
def killed_at(sink: TableSink, step: int) -> Any:
    """Die in place of the step-th statement of the next batch; the file is left as it stands."""
    inner, count = sink._table._connection, 0

    class Dying:
        def __getattr__(self, name: str) -> Any:
            real = getattr(inner, name)

            def act(*args: Any) -> Any:
                nonlocal count
                count += 1
                if count >= step:
                    raise Killed
                return real(*args)

            return act

    sink._table._connection = Dying()  # type: ignore
    try:
        yield
    except Killed:
        pass
    finally:
        sink._table._connection = inner


values = st.one_of(st.none(), st.integers(0, 3), st.text("ab", max_size=2), st.just(b"x"))
rows_of_a_batch = st.lists(
    st.builds(row, st.sampled_from("abc"), st.integers(0, 4), values), max_size=6
)


@settings(max_examples=examples(60), deadline=None)
@given(batches=st.lists(st.tuples(rows_of_a_batch, st.integers(1, 9), st.booleans()), max_size=6))
def test_any_crash_leaves_each_batch_whole_and_once(
    batches: list[tuple[list[Row], int, bool]],
) -> None:
    """Killed at any statement and published again, the table is what the definition says; in
    between, the batch is in it whole or not at all."""
    with tempfile.TemporaryDirectory() as root:
        path, before = f"{root}/t.db", dict[str, tuple[int, Any]]()
        for batch, (rows, step, again) in enumerate(batches):
            stored = [row(key, ts, value) for key, (ts, value) in before.items()]
            after = meant([*stored, *rows])
            sink = sqlite_sink(path, "q", "counts")
            with killed_at(sink, step):
                sink.publish(batch, rows)
            assert table(path) in (before, after)
            sink.close()
            for _ in range(1 + again):
                publish(path, batch, *rows)
                assert table(path) == after
            before = after


@given(rows=rows_of_a_batch, cuts=st.lists(st.integers(0, 6), max_size=3))
def test_the_cut_into_batches_does_not_matter(rows: list[Row], cuts: list[int]) -> None:
    """Without deletions the table is that of all events, however they came in batches."""
    rows = [one for one in rows if one["value"] is not None]
    edges = [0, *sorted(cuts), len(rows)]
    with tempfile.TemporaryDirectory() as root:
        sink = sqlite_sink(f"{root}/t.db", "q", "counts")
        for batch in range(len(edges) - 1):
            sink.publish(batch, rows[edges[batch] : edges[batch + 1]])
        assert table(f"{root}/t.db") == meant(rows)
        sink.close()


def test_streams_share_a_file(tmp_path: Path) -> None:
    """Each has a table and batches of its own; names that only capitals tell apart are refused."""
    path = str(tmp_path / "t.db")
    one, two = sqlite_sink(path, "q", "counts"), sqlite_sink(path, "q", "hot-topics.v2")
    one.publish(0, [row("a", 1, 1)])
    two.publish(5, [row("a", 2, 2)])
    one.publish(1, [row("b", 1, 1)])
    assert table(path) == {"a": (1, 1), "b": (1, 1)}
    assert table(path, "hot-topics.v2") == {"a": (2, 2)}
    assert noted(Path(path)) == {"counts": ("q", 1), "hot-topics.v2": ("q", 5)}
    with pytest.raises(StoreError, match="'Counts' cannot have a table beside that of 'counts'"):
        sqlite_sink(path, "q", "Counts")
    with pytest.raises(DefinitionError, match="SQLite keeps names such as 'sqlite_x' for itself"):
        sqlite_sink(path, "q", "sqlite_x")
    for sink in (one, two):
        sink.close()


def test_another_query_or_a_foreign_table_is_refused(tmp_path: Path) -> None:
    """Rows of another writer are neither changed nor mixed with ours."""
    path = tmp_path / "t.db"
    publish(path, 7, row("a", 1, 1))
    with pytest.raises(StoreError, match="store 'other' cannot write where store 'q' does; name"):
        publish(path, 0, row("a", 9, 9), query="other")
    assert table(path) == {"a": (1, 1)}
    with closing(sqlite3.connect(tmp_path / "own.db")) as connection:
        connection.execute("CREATE TABLE counts (word TEXT)")
    with pytest.raises(StoreError, match="a table of that name that Millstream did not create"):
        sqlite_sink(str(tmp_path / "own.db"), "q", "counts")


def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    """The file is left unchanged, and the sink does not retry. A folder in its place may disappear,
    so the sink retries."""
    bad = tmp_path / "bad.db"
    bad.write_text("not a database, and long enough to be looked at\n" * 100)
    with pytest.raises(StoreError, match=r"must be a file of SQLite; got: .*; move it away"):
        sqlite_sink(str(bad), "q", "counts")
    assert bad.read_text().startswith("not a database")
    (tmp_path / "folder.db").mkdir()
    for place in (tmp_path / "folder.db", bad / "below.db", Path("/proc/millstream/t.db")):
        with pytest.raises(
            SinkError, match=r"cannot be written: .*; end the process that holds it"
        ):
            sqlite_sink(str(place), "q", "counts")


def test_a_locked_file_is_tried_again(tmp_path: Path) -> None:
    """While another program writes: SinkError; once it has ended the batch goes in."""
    path = tmp_path / "t.db"
    sink = sqlite_sink(str(path), "q", "counts", wait=0)
    sink.publish(0, [row("a", 1, 1)])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(SinkError, match="batch 1 cannot be written: database is locked"):
                sink.publish(1, [row("a", 2, 2)])
        assert table(path) == {"a": (1, 1)}
        other.execute("ROLLBACK")
        sink.publish(1, [row("a", 2, 2)])
    assert table(path) == {"a": (2, 2)}
    sink.close()


def test_a_reader_sees_a_batch_whole_and_does_not_block(tmp_path: Path) -> None:
    """A reader in the middle of its transaction keeps what it saw, while batches go in."""
    path = tmp_path / "t.db"
    sink = sqlite_sink(str(path), "q", "counts", wait=0)
    sink.publish(0, [row(key, 0, 0) for key in "abc"])
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        seen = reader.execute("SELECT ts FROM counts").fetchall()
        sink.publish(1, [row(key, 1, 1) for key in "abc"])
        assert reader.execute("SELECT ts FROM counts").fetchall() == seen == [(0,)] * 3
        reader.execute("COMMIT")
        assert reader.execute("SELECT ts FROM counts").fetchall() == [(1,)] * 3
    sink.close()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """A batch for which there is no room leaves nothing behind; with room it goes in."""
    path = tmp_path / "t.db"
    sink = sqlite_sink(str(path), "q", "counts")
    sink.publish(0, [row("a", 1, 1)])
    assert sink._table._connection is not None
    pages = sink._table._connection.execute("PRAGMA page_count").fetchone()[0]
    sink._table._connection.execute(f"PRAGMA max_page_count = {pages}")
    big = [row("a", 2, "x" * 100_000)]
    with pytest.raises(SinkError, match="batch 1 cannot be written: database or disk is full"):
        sink.publish(1, big)
    assert table(path) == {"a": (1, 1)}
    sink.publish(1, big)  # a new connection, which has no such limit
    assert table(path) == {"a": (2, "x" * 100_000)}
    sink.close()


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    """Rows are published to the file that has the name, never to one that was renamed."""
    path = tmp_path / "t.db"
    sink = sqlite_sink(str(path), "q", "counts")
    sink.publish(0, [row("a", 1, 1)])
    for left in tmp_path.glob("t.db*"):
        left.unlink()
    sink.publish(1, [row("b", 1, 1)])
    assert table(path) == {"b": (1, 1)}
    sink.close()


def test_it_is_published_from_another_thread(tmp_path: Path) -> None:
    """Spark calls back from a thread of its own."""
    sink = sqlite_sink(str(tmp_path / "t.db"), "q", "counts")
    thread = Thread(target=sink.publish, args=(0, [row("a", 1, 1)]))
    thread.start()
    thread.join()
    sink.close()
    assert table(tmp_path / "t.db") == {"a": (1, 1)}
