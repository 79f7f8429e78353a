"""The benchmarks over HTTP: their load, their arithmetic, and small runs of them; no timings."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import dump, live, live_rows, reading, sending
from bench.apart import RunFailedError, begun
from bench.bench import Bench
from bench.calibration import calibrate
from bench.lean import Answer, Load, get_json, get_request, now, whole
from bench.prefill import fill_store
from bench.processes import Process
from bench.served import Served, served
from bench.spent import Spent, by_part, shares, waits

KEYS = 50
TINY = live.Plan(
    rounds=1,
    warm_up=0.5,
    feed_only=0.5,
    reads=0.5,
    samples=10,
    follow=1.0,
    posts=0.5,
    keys=500,
    event_time=False,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The live application, served and not run, with slates that were put there."""
    folder = tmp_path_factory.mktemp("live")
    fill_store(folder / "store", KEYS, "live", lambda number: f"k{number}")
    app = "bench/live_app.py:arrival"
    with served("serve", app, store=folder / "store", log=folder / "log") as found:
        yield found


def test_an_answer_is_taken_when_it_is_whole() -> None:
    """However an answer is cut into pieces, its status and body are found at its end."""
    answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\nx: y\r\n\r\nabc"
    assert [whole(answer[:n]) for n in range(len(answer))] == [None] * len(answer)
    assert whole(answer) == (404, b"abc")


def test_latency_counts_from_when_a_request_was_due(server: Served) -> None:
    """A request that had to wait for a connection was late, though its answer came at once."""
    answers: list[Answer] = []
    with Load(server.url, 1) as load:
        due = now() - 5.0
        for path in ("/healthz", "/slates/count/none"):
            request = get_request(server.url, path)
            load.at(due, lambda request=request: request, answers.append)
        load.run()
    assert [answer.status for answer in answers] == [200, 404]
    assert all(answer.due == due for answer in answers)
    assert all(answer.came - answer.due > 5 > answer.came - answer.sent for answer in answers)


@pytest.mark.parametrize(
    ("function", "more"),
    [(reading.read_closed, {}), (reading.read_open, {"rate": 400})],
    ids=["closed", "open"],
)
def test_reads_are_counted_and_timed(server: Served, function, more) -> None:
    """Both ways to read get slates, and tell what the server and the machine did meanwhile."""
    given = {"url": server.url, "parts": server.parts, "connections": 2, "keys": KEYS}
    with begun(function, **given, seconds=0.3, **more) as apart:
        found = apart.wait()
    assert "not_200" not in found
    assert found["reads"] > 10
    assert 0 < found["p50_ms"] <= found["p99_ms"] <= found["max_ms"]
    assert {"server", "load", "others"} <= set(found["cores"])
    assert found["lag_events"] == 0


def test_a_feeder_keeps_its_beat_and_stops(server: Served, tmp_path: Path) -> None:
    """Each beat is a request of as many events as the rate asks for; a file stops it."""
    given = {"url": server.url, "rate": 1_000, "every": 0.02, "keys": KEYS}
    before = get_json(server.url, "/streams/events/records?from=end")["end"]
    with begun(sending.feed, **given, seconds=0.2, stop=str(tmp_path / "stop")) as apart:
        found = apart.wait()
    page = get_json(server.url, f"/streams/events/records?from={before}&limit=1000")
    values = [record["value"] for record in page["records"]]
    assert len(values) == 200
    assert {value["key"] for value in values} <= {f"k{n}" for n in range(KEYS)}
    assert [value["ts"] for value in values] == sorted(value["ts"] for value in values)
    assert "not_200" not in found
    (tmp_path / "stop").touch()
    with begun(sending.feed, **given, seconds=60.0, stop=str(tmp_path / "stop")) as apart:
        assert apart.wait()["seconds"] < 30


def test_a_server_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    """The error has what the command said."""
    with (
        pytest.raises(RunFailedError, match="did not come up:\nerror: no store"),
        served("serve", store=tmp_path / "none", log=tmp_path / "log"),
    ):
        pass


def test_a_dump_is_read_whole_and_memory_watched(tmp_path: Path) -> None:
    """A small run of the case has a row for each size and its bar."""
    found = dump.run_sizes(Bench(tmp_path, quick=True), (300, 2_000), rounds=2)
    small, large = found.rows
    assert (small["what"], large["what"]) == ("300 slates", "2,000 slates")
    assert large["slates_per_s"] > 0
    assert large["rss_max_mib"] >= large["anon_max_mib"] >= large["anon_before_mib"] > 1
    assert [bar.figure for bar in found.bars] == ["anon_more_mib"]
    assert json.dumps(found.rows)


def test_memory_is_watched_to_its_peak() -> None:
    """Memory that a process allocates between two samples and keeps for a while is noticed."""
    taken = threading.Event()
    with dump.watched(os.getpid()) as most:
        before = most[0]
        block = b"x" * (64 << 20)
        while most[0].anonymous < before.anonymous + 60:
            taken.wait(0.01)
        del block
    assert most[0].resident > before.resident + 60


def test_time_is_told_apart_by_part() -> None:
    """The server is not of the driver's processes, though it is below it; all else is others'."""
    mine = os.getpid()
    found = [
        Process(1, 0, "python", 0, 0, 10.0),
        Process(2, 1, "python", 0, 0, 1.0),
        Process(3, 1, "java", 0, 0, 4.0),
        Process(4, 3, "python", 0, 0, 2.0),
        Process(5, 4, "python", 0, 0, 0.5),
        Process(6, 0, "python", 0, 0, 99.0),
        Process(mine, 0, "python", 0, 0, 3.0),
    ]
    parts = by_part({"driver": 1, "server": 2}, found)
    assert parts == {"driver": 10.0, "server": 1.0, "jvm": 4.0, "workers": 2.5, "load": 3.0}
    before = Spent(100.0, 50.0, 1.0, {"server": 1.0}, {"server": 7.0})
    after = Spent(110.0, 60.0, 1.5, {"server": 4.0}, {"server": 8.0})
    assert shares(before, after) == {"server": 0.3, "others": 0.7, "stolen": 0.05}
    assert waits(before, after) == {"server": 0.1}


def test_rows_are_medians_of_rounds() -> None:
    """A read's cost is what the server used more than for the feed alone, in the same round."""

    def one(rate: float, server: float) -> dict[str, dict[str, object]]:
        cores = {"server": server, "load": 0.1, "others": 0.2, "stolen": 0.0}
        reads = {"reads": 9, "per_s": rate, "p99_ms": 3.0, "max_ms": rate, "cores": cores}
        waits = {"server": 0.1, "load": 0.2}
        alone = {"cores": {**cores, "server": 0.1}, "waits": waits}
        return {"feed alone": alone, "reads, closed": {**reads, "waits": waits}}

    alone, reads = live_rows.rows([one(5_000, 0.6), one(1_000, 0.2), one(4_000, 0.3)], 4_000)
    assert alone["what"] == "feed alone"
    assert (reads["per_s"], reads["max_ms"], reads["each"]) == (4_000, 5_000, "5000 1000 4000")
    assert round(reads["server_us"]) == 100
    assert round(reads["per_core"]) == 10_000
    assert "not_200" not in reads


def test_calibration_is_a_speed() -> None:
    """Any machine takes some time for it, and no machine a minute."""
    assert calibrate(1) > 1 / 60


@pytest.mark.spark
@pytest.mark.faults
def test_a_tiny_run_of_the_live_case(tmp_path: Path) -> None:
    """With an application that really runs, all rows, figures and bars are there, and every event
    that was followed could be read."""
    found = live.run_plan(Bench(tmp_path, quick=True), TINY)
    rows = {row["what"]: row for row in found.rows}
    assert list(rows) == [
        "feed (4,000 events/s)",
        "feed alone",
        "reads, closed",
        "reads, open",
        "end to end",
        "posts",
    ]
    assert not any("not_200" in row for row in found.rows)
    assert rows["end to end"]["missing"] == 0
    assert rows["reads, open"]["cores_jvm"] > 0
    assert {bar.figure for bar in found.bars} <= set(found.figures)
    assert json.dumps([found.rows, found.settings])
    assert found.last_line.startswith("live: reads_per_s=")
