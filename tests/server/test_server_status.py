"""GET /status, GET /history and GET /graph: how the application is doing."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from checkins import checkins_store
from progress_counts import functions, set_fields
from served import MadeStore, asked, until

from millstream.description import (
    Description,
    FunctionDescription,
    SourceDescription,
    read_description,
    write_description,
)
from millstream.log.reader import LogReader
from millstream.log.writer import Entry, LogWriter
from millstream.messages.status import ServerStatus
from millstream.server.status.samples import SECOND, Samples
from millstream.server.status.status_routes import bare_description, status_of
from millstream.server.streams.numbered_records import Backlog
from millstream.stores.function_counts import Unranked
from millstream.stores.home import Facts, held
from millstream.stores.progress import Latency, Progress, SourceProgress

NOW = 1_700_000_000 * SECOND
SERVER = ServerStatus(NOW, 3, 2, 1, {"2xx": 3}, "http://here", "0.1", "store")


def function(name: str, kind: str = "update") -> FunctionDescription:
    return FunctionDescription(name, kind, ["in"], [], "dict", None, "app.py:1")


def description(*functions: FunctionDescription) -> Description:
    sources = [
        SourceDescription("in", "k", None, None, True, "log:/store/logs/in"),
        SourceDescription("files", None, None, None, True, "json:/files"),
    ]
    streams = ["in", "files", "known", "hot"]
    return Description("retail", "arrival", sources, list(functions), streams, ["hot"], {})


def progress(batch: int, at: float, **counts) -> Progress:
    return set_fields(Progress(batch=batch, written=NOW + round(at * SECOND)), **counts)


def status(
    of: Description, *records: Progress, now: float = 0.0, running: bool = True, backlogs=None
) -> dict:
    """The status after these records, so many seconds from the start."""
    samples = Samples()
    for record in records:
        samples.add(record, record.written)
    last = records[-1] if records else Progress()
    at = NOW + round(now * SECOND)
    found = status_of(of, last, samples, backlogs or {}, at, running=running, server=SERVER)
    return msgspec.to_builtins(found)


def test_an_application_that_never_ran_has_a_status() -> None:
    """Every source, stream and function is there, with nothing to say of it."""
    found = status(description(function("count"), function("tidy", "map")))
    assert json.loads(json.dumps(found)) == found
    assert found["app"] == "retail"
    assert found["batch"] == -1
    assert found["age"] is found["written"] is found["horizon"] is found["batch_seconds"] is None
    unknown = {"last": None, "p50": None, "p99": None}
    assert found["latency"] == {**unknown, "waited": unknown}
    assert [source["name"] for source in found["sources"]] == ["in", "files"]
    assert {source["lag_events"] for source in found["sources"]} == {None}
    assert [stream["name"] for stream in found["streams"]] == ["in", "files", "known", "hot"]
    assert [(one["slates"], one["microseconds"]) for one in found["functions"]] == [
        (0, None),
        (None, None),
    ]
    assert found["queues"] == found["slowest"] == []
    assert found["server"] == msgspec.to_builtins(SERVER)


def test_counts_and_rates_are_those_of_the_progress() -> None:
    """Ten seconds of a batch a second: 100 records, of which 40 go on and 10 fail, each second."""
    records = [
        progress(
            second,
            second,
            clock=NOW,
            horizon=NOW - 5,
            events=100 * second,
            late=second,
            dead_letters=10 * second,
            functions=functions(waiting={"count": 7}),
            waiting=7,
            feedback=2,
            seconds=float(second),
            last_seconds=1.0,
            measured=Latency(second, 1000 * (second + 1), 100 * second),
            sources={
                "in": SourceProgress(NOW, NOW, [1, 2], 100 * second),
                "files": SourceProgress(refused=3),
            },
            emitted={"in": 100 * second, "known": 40 * second},
            processed={"count": 40 * second, "tidy": 100 * second},
            spent={"count": 4000 * second, "tidy": 200_000 * second},
            failed={"count": 10 * second},
            slates={"count": 55},
            evicted={"count": second},
            unranked={"count": Unranked(second, "k", "KeyError: 'n'", second)},
        )
        for second in range(31)
    ]
    found = status(description(function("count"), function("tidy", "map")), *records, now=30)
    assert found["batch"] == 30
    assert found["age"] == 0
    assert (found["events"], found["late"], found["dead_letters"]) == (3000, 30, 300)
    assert (found["waiting"], found["feedback"], found["horizon"]) == (7, 2, NOW - 5)
    assert found["rate"] == pytest.approx(100)
    assert found["batch_seconds"] == 1.0
    waited = {"last": 0.003, "p50": 0.0015, "p99": 0.003}
    assert found["latency"] == {"last": 0.031, "p50": 0.016, "p99": 0.031, "waited": waited}
    taken, files = found["sources"]
    assert (taken["events"], taken["rate"], taken["highest"]) == (3000, pytest.approx(100), NOW)
    assert (files["events"], files["rate"], files["dead_letters"]) == (0, 0, 3)
    rates = {stream["name"]: stream["rate"] for stream in found["streams"]}
    assert rates == pytest.approx({"in": 100, "files": 0, "known": 40, "hot": 0})
    count, tidy = found["functions"]
    assert (count["processed"], count["rate"]) == (1200, pytest.approx(40))
    assert (count["microseconds"], count["busy"]) == pytest.approx((100, 0.004))
    assert (count["dead_letters"], count["waiting"], count["slates"]) == (300, 7, 55)
    assert (count["evicted"], count["unranked"]) == (30, 30)
    assert tidy["evicted"] is tidy["unranked"] is None
    assert (tidy["microseconds"], tidy["busy"], tidy["slates"]) == (2000, pytest.approx(0.2), None)
    assert found["slowest"] == ["tidy", "count"]
    assert found["queues"] == [{"function": "count", "waiting": 7}]


def test_nothing_has_a_rate_when_the_application_does_not_run() -> None:
    """Rates end with the run, and counts stay."""
    records = [
        progress(
            second,
            second,
            events=100 * second,
            seconds=float(second),
            processed={"count": second},
            spent={"count": 500 * second},
            emitted={"in": second},
        )
        for second in range(5)
    ]
    found = status(description(function("count")), *records, now=4, running=False)
    assert not found["running"]
    assert found["rate"] == 0
    assert {one["rate"] for part in ("sources", "streams") for one in found[part]} == {0}
    assert found["functions"][0]["rate"] == found["functions"][0]["busy"] == 0
    assert found["functions"][0]["microseconds"] == 500
    assert found["slowest"] == []
    assert found["events"] == 400


def test_a_mean_is_of_the_last_minute_or_of_all() -> None:
    """A function that got faster shows it; one that did nothing lately shows its mean of all."""
    app = description(function("count"))
    old = progress(0, 0, processed={"count": 10}, spent={"count": 1000})
    new = progress(1, 2, processed={"count": 110}, spent={"count": 2000}, seconds=0.1)
    assert status(app, old, now=1)["functions"][0]["microseconds"] == 100
    assert status(app, old, new, now=2)["functions"][0]["microseconds"] == 10
    later = status(app, old, new, now=90)["functions"][0]["microseconds"]
    assert later == pytest.approx(2000 / 110, abs=0.001)


def test_the_lag_is_that_of_the_log() -> None:
    """A source with a log has a lag, none being zero; a source of files has none to tell."""
    behind = {"in": Backlog(5000, 12, NOW - 1_500_000)}
    taken, files = status(description(), progress(0, 0), backlogs=behind)["sources"]
    assert (taken["lag_bytes"], taken["lag_events"], taken["lag_seconds"]) == (5000, 12, 1.5)
    assert files["lag_bytes"] is files["lag_events"] is files["lag_seconds"] is None
    level = {"in": Backlog(0, 0, None)}
    taken, _ = status(description(), progress(0, 0), backlogs=level)["sources"]
    assert (taken["lag_bytes"], taken["lag_events"], taken["lag_seconds"]) == (0, 0, 0)


def test_queues_and_slowest_are_the_largest_first_and_few() -> None:
    """At most ten queues, none empty, and five functions."""
    names = [f"f{number:02}" for number in range(20)]
    app = description(*(function(name) for name in names))
    before = progress(0, 0)
    after = progress(
        1,
        10,
        seconds=10.0,
        waiting={name: 3 * number % 16 for number, name in enumerate(names[:15])},
        spent={name: number * 1000 for number, name in enumerate(names)},
    )
    found = status(app, before, after, now=10)
    sizes = [queue["waiting"] for queue in found["queues"]]
    assert len(sizes) == 10
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == max(counts.waiting for counts in after.functions.values())
    assert found["slowest"] == ["f19", "f18", "f17", "f16", "f15"]
    few = status(app, progress(0, 0, waiting={"f01": 0, "f02": 1}))
    assert few["queues"] == [{"function": "f02", "waiting": 1}]


def test_a_store_without_a_description_still_has_a_status() -> None:
    """The updates, streams and sources are taken from the files of the earlier version's run."""
    facts = Facts("retail", 4, {"count": "dict"}, streams=["in", "known"])
    left = progress(3, 0, sources={"in": SourceProgress(events=5)}, processed={"tidy": 5})
    found = status(bare_description(facts, left), left)
    assert found["app"] == "retail"
    assert [source["events"] for source in found["sources"]] == [5]
    assert [stream["name"] for stream in found["streams"]] == ["in", "known"]
    assert {(one["name"], one["kind"]) for one in found["functions"]} == {
        ("tidy", "map"),
        ("count", "update"),
    }


@pytest.fixture
def made(tmp_path: Path) -> MadeStore:
    """The store of an application with a log, whose batches the tests commit."""
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    log = SourceDescription("in", "k", None, None, True, f"log:{made.home.log_of('in')}")
    streams = ["in", "known"]
    write_description(
        made.path, Description("retail", "arrival", [log], [function("count")], streams, [], {})
    )
    return made


def append(made: MadeStore, count: int) -> list[int]:
    """Append records to the source's log; the position after them."""
    writer = LogWriter(made.home.log_of("in"))
    writer.append([Entry.of([b'{"k": "x"}'] * count)])
    writer.close()
    return LogReader(made.home.log_of("in")).end


def test_the_server_tells_rates_from_the_commits_it_sees(made: MadeStore) -> None:
    """Batches that are committed while it runs have a rate, until the application stops."""
    made.commit(events=1000, seconds=1.0)
    with asked(made.path) as client:
        with held(made.path):
            assert client.get("/status").json()["running"]
            made.commit(
                events=1500,
                seconds=1.1,
                latency=20_000,
                emitted={"known": 70},
                processed={"count": 70},
                spent={"count": 7000},
            )
            found = until(lambda: (now := client.get("/status").json())["rate"] and now)
            assert 0 < found["rate"] <= 500
            assert found["events"] == 1500
            assert found["latency"] == {
                **{"last": 0.02, "p50": 0.02, "p99": 0.02},
                "waited": {"last": 0.0, "p50": 0.0, "p99": 0.0},
            }
            assert found["functions"][0]["rate"] > 0
            assert found["functions"][0]["microseconds"] == 100
            assert found["streams"][1]["rate"] > 0
        found = client.get("/status").json()
        assert not found["running"]
        assert found["rate"] == found["functions"][0]["rate"] == 0
        assert found["events"] == 1500
        assert found["server"]["requests"] >= 3
        assert found["server"]["url"] == str(client.base_url).rstrip("/")


def test_the_lag_is_what_the_log_has_and_the_progress_has_not(made: MadeStore) -> None:
    """The lag is shown before the first batch, and is gone when everything was processed."""
    with asked(made.path) as client:

        def lag() -> tuple[int, int, float]:
            (source,) = client.get("/status").json()["sources"]
            return source["lag_events"], source["lag_bytes"], source["lag_seconds"]

        assert lag() == (0, 0, 0), "a log that is not there yet has nothing"
        first = append(made, 3)
        events, size, seconds = lag()
        assert (events, size) == (3, first[0])
        assert seconds > 0
        second = append(made, 2)
        made.commit(sources={"in": SourceProgress(position=first, events=3)})
        events, size, seconds = lag()
        assert (events, size) == (2, second[0] - first[0])
        assert seconds > 0
        made.commit(sources={"in": SourceProgress(position=second, events=5)})
        assert lag() == (0, 0, 0)


def test_a_log_that_cannot_be_read_has_no_lag(made: MadeStore) -> None:
    """The status is there all the same, and the lag again once the log can be read."""
    log = made.home.log_of("in")
    append(made, 2)
    (segment,) = log.glob("*.log")
    segment.write_bytes(b"?" * segment.stat().st_size)
    with asked(made.path) as client:
        (source,) = client.get("/status").json()["sources"]
        assert source["lag_events"] is source["lag_bytes"] is source["lag_seconds"] is None
        shutil.rmtree(log)
        append(made, 3)
        (source,) = client.get("/status").json()["sources"]
        assert source["lag_events"] == 3


def test_a_store_made_again_starts_over(made: MadeStore) -> None:
    """The counts are those of the new store, and nothing is rated by those of the old."""
    made.commit(events=5000, seconds=10.0)
    with asked(made.path) as client, held(made.path):
        assert client.get("/status").json()["events"] == 5000
        shutil.rmtree(made.path / "shards")
        for file in ("progress", "store.json", "epoch"):
            (made.path / file).unlink()
        again = MadeStore(made.path, {"count": "dict"})
        again.commit(events=10, seconds=0.1)
        found = until(lambda: (now := client.get("/status").json())["events"] == 10 and now)
        assert 0 <= found["rate"] <= 10, "it may have been seen before its first batch"
        again.commit(events=30, seconds=0.2)
        found = until(lambda: (now := client.get("/status").json())["events"] == 30 and now)
        assert 0 < found["rate"] <= 30


def test_history_over_http(made: MadeStore) -> None:
    """A list for each figure, as long as was asked for; a wrong length is refused with a reason."""
    made.commit(events=1000, seconds=1.0)
    with asked(made.path) as client:
        history = client.get("/history", params={"seconds": 5}).json()
        names = ["times", "events", "latency", "p50", "p99", "waited", "batches", "busy"]
        assert list(history) == names
        assert {len(values) for values in history.values()} == {5}
        assert len(client.get("/history").json()["times"]) == 300
        for wrong in ("0", "3601", "-5", "x", "1.5", ""):
            answer = client.get("/history", params={"seconds": wrong})
            assert answer.status_code == 400
            assert "from 1 to 3600" in answer.json()["error"]
        assert client.get("/history", params={"second": 5}).status_code == 400
        hour = client.get("/history", params={"seconds": 3600, "step": 15}).json()
        assert {len(values) for values in hour.values()} == {240}


def test_the_graph_is_the_description(made: MadeStore, tmp_path: Path) -> None:
    """As the run left it; where it left none, the answer says what to do."""
    with asked(made.path) as client:
        found = client.get("/graph").json()
        assert found == msgspec.to_builtins(read_description(made.path))
        assert found["functions"][0]["name"] == "count"
        assert client.post("/graph").status_code == 405
    bare = MadeStore(tmp_path / "bare", {"count": "dict"})
    with asked(bare.path) as client:
        answer = client.get("/graph")
        assert answer.status_code == 404
        assert "run the application once" in answer.json()["error"]
        assert client.get("/status").json()["functions"][0]["name"] == "count"


@pytest.mark.parametrize("content", [b"", b'0985e990 {"app":3}\n', None])
def test_a_description_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    """If it is damaged, of another version, or not readable, the server says so, and still serves
    slates."""
    made = checkins_store(tmp_path / "store")
    file = made.path / "app.json"
    file.unlink()
    file.mkdir() if content is None else file.write_bytes(content)
    with asked(made.path) as client:
        for path in ("/status", "/graph", "/streams"):
            answer = client.get(path)
            assert answer.status_code == 503, answer.text
            assert "app.json" in answer.json()["error"]
        assert client.get("/slates").status_code == 200
