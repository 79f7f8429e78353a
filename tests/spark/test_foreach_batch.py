"""Streaming DataFrames poured into an application: exactly once, as the reference has it."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driver_runs.harness import kept_rows
from heard_clicks import clicks, slates
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import DefinitionError, RunError
from millstream.places.directory_place import DirectoryPlace
from millstream.server.lock import served_by
from millstream.spark import foreach_batch
from millstream.stores.home import held
from millstream.stores.shared.store_mirror import StoreMirror

pytestmark = pytest.mark.spark
SCHEMA = "user string, at timestamp, page string, spent double"


@pytest.fixture(scope="module")
def session(spark: Any) -> SparkSession:
    made = SparkSession(spark).newSession()
    made.conf.set("spark.sql.session.timeZone", "America/New_York")
    return made


@pytest.fixture(autouse=True)
def none_left_open() -> Iterator[None]:
    """Every run ends with its queries, or with close()."""
    yield
    deadline = threading.Event()
    for _ in range(200):
        if not foreach_batch._shared_runs._runs:
            return
        deadline.wait(0.05)
    pytest.fail(f"still open: {foreach_batch._shared_runs._runs}")


def rows(start: int, stop: int) -> list[dict[str, Any]]:
    """JSON rows for SCHEMA, a minute and a microsecond apart."""
    begin = dt.datetime(2024, 3, 10, 6, 0, 0, 1, dt.UTC)  # over New York's change of the clock
    return [
        {
            "user": f"user{number % 5}",
            "at": (begin + dt.timedelta(minutes=number, microseconds=number)).isoformat(),
            "page": f"/{number % 3}",
            "spent": number / 4,
        }
        for number in range(start, stop)
    ]


def put(folder: Path, name: str, records: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps(record) + "\n" for record in records))
    hidden.rename(folder / name)


def poured(session: SparkSession, folder: Path, pour: Any, checkpoint: str = "checkpoint") -> Any:
    """A query over the files in `folder`/in, until all of them are poured."""
    frame = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    writer = frame.json(str(folder / "in")).writeStream.foreachBatch(pour)
    writer = writer.option("checkpointLocation", str(folder / checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def reference(app: ms.App, records: list[dict[str, Any]], update: str = "hear") -> dict[str, Any]:
    """Returns the application's result for the rows as records, with times in UTC, with Z."""
    normal = [
        {**record, "at": dt.datetime.fromisoformat(record["at"]).isoformat()[:26] + "Z"}
        for record in records
    ]
    return ms.testing.run(app, {"clicks": normal}).slates(update)


def test_files_poured_are_as_the_reference_has_them(session: SparkSession, tmp_path: Path) -> None:
    """Every row is an event once, at its microsecond, in any time zone of the session. A new object
    restarts the query from its checkpoint. Without its checkpoint it is a new query."""
    app, store = clicks(), tmp_path / "store"
    put(tmp_path / "in", "1.json", rows(0, 20))
    put(tmp_path / "in", "2.json", rows(20, 30))
    with ms.spark.into(app, "clicks", store=store, shards=2) as pour:
        poured(session, tmp_path, pour)
        assert slates(store) == reference(app, rows(0, 30))
        poured(session, tmp_path, pour)  # there is nothing new
    put(tmp_path / "in", "3.json", rows(30, 40))
    poured(session, tmp_path, ms.spark.into(app, "clicks", store=store))
    assert slates(store) == reference(app, rows(0, 40))
    poured(session, tmp_path, ms.spark.into(app, "clicks", store=store), "another")
    assert slates(store) == reference(app, rows(0, 40) * 2)
    assert kept_rows(store, "deadletters") == []


def test_a_repeated_batch_adds_nothing(session: SparkSession, tmp_path: Path) -> None:
    """The same batch of the same query is taken once, in the same object or in a new one."""
    app, store = clicks(), tmp_path / "store"
    frame = session.createDataFrame([("ann", dt.datetime(2024, 1, 1))], "user string, at timestamp")
    for _ in range(2):
        with ms.spark.into(app, "clicks", store=store, shards=2) as pour:
            pour(frame, 0, query="history")
            pour(frame, 0, query="history")
        assert len(slates(store)["ann"]["heard"]) == 1
    with ms.spark.into(app, "clicks", store=store) as pour:
        pour(frame, 1, query="history")
        pour(frame, 0, query="another")
    assert len(slates(store)["ann"]["heard"]) == 3


def test_a_batch_that_spark_did_not_commit_is_repeated(
    session: SparkSession, tmp_path: Path
) -> None:
    """If a query ends between our commit and Spark's, its restart repeats the batch, which adds
    nothing."""
    app, store = clicks(), tmp_path / "store"
    put(tmp_path / "in", "1.json", rows(0, 10))
    pour = ms.spark.into(app, "clicks", store=store, shards=2)
    calls: list[int] = []

    def cut_off(frame: Any, batch: int) -> None:
        pour(frame, batch)
        calls.append(batch)
        if len(calls) == 1:
            raise RuntimeError("cut off")

    with pytest.raises(Exception, match="cut off"):
        poured(session, tmp_path, cut_off)
    poured(session, tmp_path, cut_off)
    assert calls == [0, 0]
    assert slates(store) == reference(app, rows(0, 10))


def test_a_rate_source_is_poured(session: SparkSession, tmp_path: Path) -> None:
    """A continuous query pours batch after batch. Its counts are the committed ones."""
    app, store = ms.App("ticks"), tmp_path / "store"
    app.source("ticks", ts="timestamp")
    app.aggregate("ticks", algebra=ms.algebra.count(), name="ticks_seen")
    pour = ms.spark.into(app, "ticks", store=store, shards=1)
    enough, seen = threading.Event(), [0]

    def counted(frame: Any, batch: int) -> None:
        seen[0] += frame.count()
        pour(frame, batch)
        if seen[0] >= 100:
            enough.set()

    frame = session.readStream.format("rate").option("rowsPerSecond", 200).load()
    writer = frame.writeStream.foreachBatch(counted)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert enough.wait(60)
    query.stop()
    assert slates(store, "ticks_seen")[""]["count"] >= 100
    assert kept_rows(store, "deadletters") == []


def test_a_large_batch_goes_through_files(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks with many rows write them into the store, the log gets them in several blocks, and
    nothing is left lying about."""
    monkeypatch.setattr("millstream.driver.pour.poured_log.BLOCK_BYTES", 200_000)
    app, store = ms.App("numbers"), tmp_path / "store"
    app.source("numbers", key="key", ts="number", unit="us")
    app.aggregate("numbers", algebra=ms.algebra.sum("number"), name="total")
    frame = session.range(0, 60_000, 1, 3).selectExpr("id as number", "'all' as key")
    with ms.spark.into(app, "numbers", store=store, shards=1) as pour:
        pour(frame, 0, query="history")
        pour(frame.filter("number < 10"), 1, query="history")
    assert slates(store, "total") == {"all": {"sum": sum(range(60_000)) + 45}}
    assert [path.name for path in (store / "poured" / "numbers").iterdir()] == ["last.json"]


def test_a_shared_store_is_poured_into_from_any_host(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place records the poured batches, large ones too. Another host that has only the query's
    checkpoint repeats no batch and continues."""
    monkeypatch.setattr("millstream.driver.pour.poured_log.BLOCK_BYTES", 200_000)
    app, place = ms.App("numbers"), tmp_path / "place"
    app.source("numbers", key="key", ts="number", unit="us")
    app.aggregate("numbers", algebra=ms.algebra.sum("number"), name="total")
    frame = session.range(0, 60_000, 1, 3).selectExpr("id as number", "'all' as key")
    small = frame.filter("number < 10")
    for host in ("one", "two"):
        given = {"store": f"shared:{place}", "cache": str(tmp_path / host), "shards": 2}
        with ms.spark.into(app, "numbers", **given) as pour:
            pour(frame, 0, query="history")
            pour(small, 1, query="history")
    with ms.spark.into(app, "numbers", **given) as pour:
        pour(small, 2, query="history")
    StoreMirror(DirectoryPlace(place), tmp_path / "mirror", patience=0.0).close()
    assert slates(tmp_path / "mirror", "total") == {"all": {"sum": sum(range(60_000)) + 2 * 45}}
    assert [*place.rglob("*.lines")] == []


def test_two_queries_pour_into_one_application(session: SparkSession, tmp_path: Path) -> None:
    """Two sources of an application, each from a DataFrame of its own, and a third one from files:
    one run takes them all."""
    app, store = ms.App("many"), tmp_path / "store"
    for name in ("one", "two", "three"):
        app.source(name, key="user")

    @app.update("one", "two", "three")
    def streams(event: Any, slate: Any) -> None:
        slate[event.stream] = slate.get(event.stream, 0) + 1

    put(tmp_path / "in", "1.json", rows(0, 5))
    put(tmp_path / "files", "1.json", [{"user": "user0"}] * 3)
    given = {"store": store, "shards": 1, "sources": {"three": f"json:{tmp_path / 'files'}"}}
    with (
        ms.spark.into(app, "one", **given) as one,
        ms.spark.into(app, "two", **given) as two,
    ):
        poured(session, tmp_path, one, "checkpoint-1")
        poured(session, tmp_path, two, "checkpoint-2")
        frame = session.sql("select 'user0' as user")
        for batch in range(100):
            two(frame, batch, query="by hand")
            if "three" in slates(store, "streams")["user0"]:
                break
        with pytest.raises(RunError, match="for another App or with other settings"):
            ms.spark.into(clicks(), "clicks", store=store)(frame, 0, query="by hand")
    slate = slates(store, "streams")["user0"]
    assert (slate["one"], slate["two"], slate["three"]) == (1, batch + 2, 3)


def test_an_application_that_fails_ends_the_query(session: SparkSession, tmp_path: Path) -> None:
    """The query's error names the function and the key. After the repair a restart loses and
    doubles nothing."""
    store = tmp_path / "store"
    put(tmp_path / "in", "1.json", rows(0, 3))
    put(tmp_path / "in", "2.json", [{**rows(3, 4)[0], "page": "/poison"}])

    def failing(mended: bool) -> ms.App:
        app = ms.App("failing", on_error="fail")
        app.source("clicks", key="user", ts="at")

        @app.update("clicks")
        def hear(event: Any, slate: Any) -> None:
            if event.value["page"] == "/poison" and not mended:
                raise ValueError("poison")
            slate["count"] = slate.get("count", 0) + 1

        return app

    pour = ms.spark.into(failing(mended=False), "clicks", store=store, shards=2)
    for _ in range(2):
        with pytest.raises(Exception, match=r"update 'hear'.*key 'user3'.*ValueError: poison"):
            poured(session, tmp_path, pour)
        assert set(slates(store)) == {"user0", "user1", "user2"}
    poured(session, tmp_path, ms.spark.into(failing(mended=True), "clicks", store=store))
    assert slates(store) == {f"user{number}": {"count": 1} for number in range(4)}


def test_a_query_that_is_stopped_in_a_batch_ends_without_an_error(
    session: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The batch never was, and the next start pours it."""
    app, store = clicks(), tmp_path / "store"
    put(tmp_path / "in", "1.json", rows(0, 3))
    pour = ms.spark.into(app, "clicks", store=store, shards=1)
    slow = session.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    slow = slow.filter("java_method('java.lang.Thread', 'sleep', 5000L) is null")
    writer = slow.writeStream.foreachBatch(pour)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    tracker = session.sparkContext.statusTracker()
    while not tracker.getActiveStageIds():
        assert query.isActive
    query.stop()
    assert query.exception() is None
    assert capfd.readouterr().err == ""
    poured(session, tmp_path, pour)
    assert slates(store) == reference(app, rows(0, 3))


def test_a_server_beside_it(session: SparkSession, tmp_path: Path) -> None:
    """With serve=True slates are read over HTTP while the query pours."""
    store = tmp_path / "store"
    put(tmp_path / "in", "1.json", rows(0, 3))
    with ms.spark.into(clicks(), "clicks", store=store, shards=1, serve=True, port=0) as pour:
        pour(session.read.schema(SCHEMA).json(str(tmp_path / "in")), 0, query="history")
        server = served_by(store)
        assert server is not None
        with urllib.request.urlopen(f"{server.url}/slates/hear/user1") as answer:
            assert json.load(answer)["slate"]["heard"][0][1]["user"] == "user1"
    assert served_by(store) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": "click"}, r"into\('click'\): it is not a source of app 'clicks'; did you mean"),
        ({"sources": {"clicks": "json:in"}}, r"settings say that it reads json:in.*event log"),
        ({"available_now": True}, r"into\(available_now=\).*trigger"),
        ({"shard": 2}, "unknown setting 'shard'; did you mean 'shards'"),
        ({"shards": 0}, r"into\(shards=\)"),
        ({"value": "a", "json": "b"}, "either the value of a column.*or the JSON text"),
        ({"key": 5}, r"into\(key=\): must be the name of a column; got 5"),
    ],
)
def test_what_is_wrong_with_the_arguments_is_said_at_once(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    """Nothing is run for it, and nothing is made."""
    source = given.pop("source", "clicks")
    with pytest.raises(DefinitionError, match=message):
        ms.spark.into(clicks(), source, store=tmp_path / "store", **given)
    assert not (tmp_path / "store").exists()


def test_a_column_needs_a_field_to_go_to(tmp_path: Path) -> None:
    """key= and ts= fill the fields that the source looks at."""
    with pytest.raises(DefinitionError, match="the ts of source 'clicks' has none"):
        ms.spark.into(clicks(key="user"), "clicks", store=tmp_path, ts="at")
    by_function = clicks(key=lambda record: record["user"])
    with pytest.raises(DefinitionError, match="the key of source 'clicks' is a function"):
        ms.spark.into(by_function, "clicks", store=tmp_path, key="user")


def test_calls_that_cannot_be(session: SparkSession, tmp_path: Path) -> None:
    """Outside of a query, after close(), on a store that is held, over Spark Connect: each is
    refused with what to do."""
    frame = session.sql("select 'ann' as user")
    pour = ms.spark.into(clicks(key="user"), "clicks", store=tmp_path / "store", shards=1)
    with pytest.raises(RunError, match=r"must be called by foreachBatch.*query='history'"):
        pour(frame, 0)
    (tmp_path / "store").mkdir()
    with (
        held(tmp_path / "store"),
        pytest.raises(RunError, match="another driver holds this store"),
    ):
        pour(frame, 0, query="history")
    pour(frame, 0, query="history")
    with pytest.raises(RunError, match="Spark Connect"):
        pickle.dumps(pour)
    with pytest.raises(RunError, match="Spark Connect is not supported"):
        pour(object(), 1, query="history")  # type: ignore[arg-type]
    pour.close()
    with pytest.raises(RunError, match="it was closed"):
        pour(frame, 1, query="history")
    assert list(slates(tmp_path / "store")) == ["ann"]
