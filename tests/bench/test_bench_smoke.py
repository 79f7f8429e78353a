"""The benchmarks' own arithmetic and output; no timings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import pytest

from bench import data, feed
from bench.__main__ import CASES, main, told
from bench.apart import RunFailedError, run_apart
from bench.bench import row_of
from bench.figures import Bar, Batch, Outcome, percentile, rate_after_first
from bench.machine import commit, machine
from bench.processes import Process, Usage, below, processes
from bench.results import record, write
from bench.table import table

USAGE = {
    "driver": 500.4,
    "driver_jvm": 400.0,
    "workers": 300.0,
    "workers_anonymous": 200.0,
    "cpu_others": 0.123,
}


def outcome(ratio: float = 27.123) -> Outcome:
    rows = [{"what": "ours", "events_per_s": 223_000.4}, {"what": "theirs", "events": 5}]
    figures = {"ratio_tws": ratio, "ratio_sql": 2.4, "events_per_s": 223_000.4}
    return Outcome("keyed_updates", rows, figures, [Bar("ratio_tws", ratio, 15, 25)])


def test_the_rate_leaves_out_the_first_batch() -> None:
    """Neither the events nor the time of the first batch count, and beats without events do."""
    batches = [Batch(0, 5.0), Batch(1_000, 10.0), Batch(200, 11.0), Batch(0, 12.0)]
    assert rate_after_first(batches) == 100.0


@pytest.mark.parametrize("batches", [[], [Batch(5, 1.0)], [Batch(0, 1.0), Batch(5, 2.0)]])
def test_a_rate_needs_two_batches(batches: list[Batch]) -> None:
    """A single batch has no rate, since the first batch is left out."""
    with pytest.raises(ValueError, match="at least two batches"):
        rate_after_first(batches)


def test_percentiles_are_values_that_were_measured() -> None:
    """The percentile is the least value that enough of the others do not exceed."""
    waits = [float(n) for n in range(100, 0, -1)]
    assert [percentile(waits, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    with pytest.raises(ValueError, match="at least one"):
        percentile([], 0.5)


def test_bars_are_reached_or_not_exceeded() -> None:
    """A rate must reach its bar, a latency must stay under it; the bar itself is enough."""
    assert Bar("ratio", 15.0, 15).held
    assert not Bar("ratio", 14.9, 15).held
    assert Bar("p99_s", 2.0, 2, at_least=False).held
    assert not Bar("p99_s", 2.1, 2, at_least=False).held
    assert str(Bar("ratio", 14.94, 15, 25)) == "ratio 14.9 >= 15, aim 25: MISSED"


def test_the_last_line_has_the_figures_in_order() -> None:
    """Scripts read the last line: the case, then `name=value` with no thousands marks."""
    assert outcome().last_line == "keyed_updates: ratio_tws=27.1 ratio_sql=2.4 events_per_s=223000"


def test_the_table_lines_up() -> None:
    """Columns come in the order they were first seen; what a row lacks is a dash."""
    assert table(outcome().rows).splitlines() == [
        "what    events_per_s  events",
        "ours          223000       -",
        "theirs             -       5",
    ]


def test_bars_of_a_quick_run_are_not_judged(tmp_path: Path) -> None:
    """A quick run has a file of its own, says that it was quick, and holds no bar."""
    quick = record(outcome(), {"cores": 2}, {"commit": "abc", "dirty": True}, "2026", quick=True)
    whole = {**quick, "quick": False}
    assert quick["bars"][0]["held"] is None
    assert "MISSED" not in told(outcome(1.0), quick=True)
    assert "MISSED" in told(outcome(1.0), quick=False)
    paths = [write(tmp_path, quick), write(tmp_path, whole)]
    assert [path.name for path in paths] == ["keyed_updates-quick.json", "keyed_updates.json"]
    assert json.loads(paths[0].read_text()) == quick


def test_noise_is_called_noise() -> None:
    """Figures from a machine that others used say so."""
    rows = [{"what": "a", "cpu_others": 0.02}, {"what": "b", "cpu_others": 0.75}]
    assert "up to 75% of the machine" in told(Outcome("x", rows, {}), quick=False)
    assert "NOISE" not in told(Outcome("x", rows[:1], {}), quick=False)


def test_the_record_says_where_it_was_measured() -> None:
    """Machine, versions and commit are there, so that figures can be compared."""
    assert {"cpu", "cores", "memory_gib", "python", "java", "spark", "millstream"} <= set(machine())
    assert set(commit()) == {"commit", "dirty"}


def test_a_row_has_rate_whole_run_and_memory() -> None:
    """Late events and dead letters show only where there are some."""
    row = row_of("x", {"batches": [(10, 1.0), (10, 2.0)], "whole_s": 9.0, "late": 0}, USAGE)
    assert row["events_per_s"] == 10.0
    assert (row["events"], row["batches"], row["whole_s"]) == (20, 2, 9.0)
    assert (row["driver_mib"], row["workers_mib"], row["cpu_others"]) == (500, 300, 0.12)
    assert "late" not in row


def test_memory_is_told_apart_by_process() -> None:
    """The process itself and its JVM are the driver; every other Python below is a worker."""
    found = [
        Process(1, 0, "python", 10, 9, 0),
        Process(2, 1, "java", 100, 90, 0),
        Process(3, 2, "python", 30, 20, 0),
        Process(4, 3, "python", 50, 25, 0),
        Process(5, 2, "stream execution", 100, 90, 0),
        Process(9, 0, "python", 999, 999, 0),
    ]
    usage = Usage()
    usage.add(1, below(1, found))
    usage.add(1, below(1, found[:2]))
    assert (usage.driver_python, usage.driver_jvm, usage.driver) == (10, 100, 110)
    assert (usage.workers, usage.workers_anonymous, usage.worker) == (80, 45, 50)


def test_this_process_is_among_the_processes() -> None:
    """The values from /proc are plausible for a known process: this one."""
    mine = next(p for p in processes() if p.pid == os.getpid())
    assert mine.parent == os.getppid()
    assert mine.resident >= mine.anonymous > 1


def test_input_is_the_same_each_time(tmp_path: Path) -> None:
    """The same arguments make the same files, all events in order of time."""
    made = [data.zipf(tmp_path / name, 1_000, 50, 1.1, 4) for name in ("a", "b")]
    texts = [[path.read_text() for path in sorted(folder.iterdir())] for folder in made]
    assert texts[0] == texts[1]
    events = [json.loads(line) for text in texts[0] for line in text.splitlines()]
    assert len(events) == 1_000
    assert len(texts[0]) == 4
    assert [e["ts"] for e in events] == sorted(e["ts"] for e in events)


def test_scattered_keys_differ() -> None:
    """No two numbers share a key, and neighbours are not neighbours in the store."""
    keys = [data.scattered_key(n) for n in range(10_000)]
    assert len(set(keys)) == len(keys)
    assert keys != sorted(keys)


def test_every_file_of_the_feed_ends_with_its_marker() -> None:
    """A file has as many events as the rate asks for, their times rising, the marker last."""
    lines = feed.file_lines(Random(1), 7, 400, 1_000.0, 0.1)
    events = [json.loads(line) for line in lines]
    assert len(events) == 400
    assert events[-1]["key"] == feed.marker(7)
    times = [event["ts"] for event in events]
    assert times == sorted(set(times))
    assert 1_000_000_000 <= times[0] < times[-1] < 1_000_100_000


def test_a_measured_function_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Its result comes back; if it fails, the error says what it said."""
    arrivals, usage = run_apart(feed.feed, folder=str(tmp_path), every=0.01, phases=[[100, 0.02]])
    assert len(arrivals) == len(list(tmp_path.iterdir())) == 2
    assert usage["workers"] == 0
    with pytest.raises(RunFailedError, match="FileNotFoundError"):
        run_apart(feed.feed, folder=str(tmp_path / "no" / "no"), every=1.0, phases=[[9, 1.0]])


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the cases that there are."""
    with pytest.raises(SystemExit):
        main(["keyed_update"])
    said = capsys.readouterr().err
    assert all(name in said for name in CASES)
