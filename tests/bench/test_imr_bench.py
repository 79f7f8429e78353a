"""The evaluation of iMR: its logs, and what is made of its rows; no timings."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from evaluation_records import judged as judged_record
from imr_rows import SHARED, rows

from bench.bench import Bench
from bench.imr import cases, crossover, errors, judging, live, texts
from bench.imr.nodes import on_cores, split_cores
from bench.imr.page import PAGE
from bench.imr.plan import QUICK, Timed
from bench.imr.pressed import SLACK, judged
from bench.imr.watching import Watch, Window
from bench.imr.writing import write

ROOT = Path(__file__).resolve().parent.parent.parent


def test_words_are_likelier_at_home() -> None:
    """A word of a node's own is drawn there several times as often as elsewhere, and the same words
    come again for the same seed."""
    counts = [Counter(w for line in texts.words_at(n, 4, 2_000) for w in line) for n in range(4)]
    assert counts[1]["w1"] > 3 * counts[2]["w1"]
    assert list(texts.words_at(1, 4, 5)) == list(texts.words_at(1, 4, 5))


def test_a_written_log_has_as_many_lines_as_asked(tmp_path: Path) -> None:
    """Lines of pools come over and over, longer ones for a while and then shorter ones; a log that
    is there is kept."""
    path = texts.written(tmp_path / "a.log", 0, 2, 22_500)
    lengths = [len(line.split()) for line in path.read_bytes().splitlines()]
    assert len(lengths) == 22_500
    assert {len(set(lengths[n : n + texts.RUN])) for n in range(0, 22_500, texts.RUN)} == {1}
    assert len(set(lengths)) > 1
    assert all(abs(one - texts.WORDS) <= texts.VARIES for one in lengths)
    path.write_bytes(b"kept\n")
    assert texts.written(path, 0, 2, 9).read_bytes() == b"kept\n"


def test_a_growing_log_has_its_times(tmp_path: Path) -> None:
    """Each line begins with its time, in order. An idle node's log is empty, and a node whose clock
    is ahead has later times. The written lines are counted."""
    began = time.time()
    names = ["a", "b", "c"]
    given = {"cores": [], "idle": ["b"], "ahead": {"c": 3_600.0}, "words": 3}
    sent = write(str(tmp_path), names, 1_000, began + 0.3, stop=str(tmp_path / "stop"), **given)
    lines = {node: (tmp_path / f"{node}.log").read_text().splitlines() for node in names}
    assert sent == {node: len(of) for node, of in lines.items()}
    assert sent["b"] == 0 < sent["a"]
    assert {len(line.split()) for line in lines["a"]} == {4}
    times = {node: [int(line.split()[0]) / 1e6 for line in lines[node]] for node in ("a", "c")}
    assert times["a"] == sorted(times["a"])
    assert began - 1 <= times["a"][0] <= times["a"][-1] <= time.time()
    assert times["c"][0] - times["a"][0] == pytest.approx(3_600, abs=0.001)


def test_windows_are_judged_by_their_end() -> None:
    """In time is who was closed within the latency after the window's end; who was not closed has
    nothing and is late."""
    timed = Timed(2.0, 2, 3)
    told = {"why": "failure", "coverage": {"area": 0.5}}
    in_time = Window(10, 20.5, 22.0 + 1.0 + SLACK - 0.01, [told])
    late = Window(11, 22.5, 24.0 + 1.0 + SLACK + 0.01, [told])
    found = judged([in_time, late, Window(12)], timed, 1.0)
    assert found["met"] == pytest.approx(1 / 3)
    assert found["whenever"] == pytest.approx(1 / 3)
    assert found["fidelity"] == pytest.approx(in_time.area / 3)  # a late answer has none
    assert (found["never"], found["why"]) == (1, "failure 2")


def test_a_window_is_closed_when_all_its_reducers_have() -> None:
    """Its opening is the first that was told, its end that of the last reducer."""
    watch = Watch("http://127.0.0.1:1", "job", 2_000, reducers=2)
    for value, at in (({"opened": 3}, 1.0), ({"opened": 3}, 2.0)):
        watch._told(value, at)
    summary = {"from": 6_000, "why": "complete", "coverage": {"area": 1.0}}
    watch._summary(summary, 5.0)
    assert watch.closed() == []
    watch._summary(summary, 6.0)
    watch._summary({**summary, "correction": 1}, 9.0)
    (window,) = watch.closed()
    assert (window.number, window.took, window.area) == (3, 5.0, 1.0)


def test_the_burdened_core_is_apart() -> None:
    """The node's core and the others have nothing in common, and a place is left as it was."""
    before = os.sched_getaffinity(0)
    own, rest = split_cores()
    assert not set(own) & set(rest)
    with on_cores(rest):
        assert not rest or os.sched_getaffinity(0) == set(rest)
    assert os.sched_getaffinity(0) == before


def test_errors_shrink_to_nothing_with_all_the_data(tmp_path: Path) -> None:
    """With every pane no answer is off, whatever was asked; with half of them counts are."""
    bench = Bench(tmp_path, quick=True)
    for run, plan, column in (
        (errors.words, QUICK.words, "count_error"),
        (errors.clicks, QUICK.clicks, "user_error"),
        (errors.hdfs, QUICK.hdfs, "rejects"),
    ):
        found = run(bench, plan)
        assert {row["asked"] for row in found} == set(errors.ASKED)
        assert all(row[column] == 0 and row["panes"] == 1 for row in found if row["part"] == 1)
        if run is errors.words:
            half = [row[column] for row in found if row["part"] == 0.5]
            assert all(0.3 < one < 0.7 for one in half)


def test_both_ways_to_a_window_are_timed(tmp_path: Path) -> None:
    """A row for each slide, with what each way took."""
    found = crossover.run(Bench(tmp_path, quick=True), QUICK.crossover)
    assert [row["slides"] for row in found] == list(QUICK.crossover.slides)
    assert all(row["anew_ms"] > 0 and row["moved_ms"] > 0 for row in found)


def test_figures_and_bars() -> None:
    """Each bar's figure comes from the rows that it is about, the worst of them where there are
    several."""
    found = judging.JUDGING.figures(rows())
    assert found["fig7_two_to_one"] == 2.0
    assert (found["fig7_busy"], found["fig7_efficiency"]) == (0.95, pytest.approx(0.4 / 0.475))
    assert found["agent_mib"] == 42.0
    assert found["fig8_met"] == 1.0
    assert found["fig8_order_to_none"] == found["fig8_drawn_to_none"] == 2.0
    assert found["fig10_gain"] == 0.75
    assert found["fig11_drawn_total_error"] == 0.04
    assert (found["covered_least"], found["covered_most"]) == (0.94, 0.95)
    assert found["waiting_error"] == 0.5
    assert found["crossover_slides"] == 8
    assert set(judging.BARS) <= set(found)
    missed = {bar.figure for bar in judging.JUDGING.bars(found) if not bar.held}
    assert missed == {"ahead_longer_s", "fig7_efficiency"}


def test_tables_say_what_was_measured() -> None:
    """Figures stand where they belong, with what the paper has beside them."""
    found = judged_record("imr", rows(), judging.JUDGING, SHARED)
    assert "| 2 | 2.00 | 8.0 | 3.50 | 8.0 | +75% | 57% to 64% |" in PAGE.part(found, "failures")
    assert "| 2, none | 30% | 40% | 20% |  |  | 10 | failure 10 |" in PAGE.part(found, "shedding")
    assert "ahead_longer_s 0.5 (bar 0.25, missed)" in PAGE.part(found, "where")
    assert "from a slide of 1/8 of the range on" in PAGE.part(found, "crossover")


@pytest.mark.spark
@pytest.mark.faults
def test_a_quick_run_of_the_evaluation_of_imr(tmp_path: Path) -> None:
    """With real agents and a root on Spark every experiment leaves rows, none fails, and no record
    of a log that was read to its end is missing."""
    found = cases.run(Bench(tmp_path, quick=True, results=tmp_path))
    assert {row["experiment"] for row in found.rows} == set(judging.OF)
    assert found.figures["failed"] == found.figures["fig7_missing"] == 0
    assert json.dumps([found.rows, found.settings])


def test_only_the_root_is_bound_to_its_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it starts: whoever starts nodes later has all cores to choose from."""
    before = os.sched_getaffinity(0)
    core = (min(before),)
    started_on: list[set[int]] = []

    @contextmanager
    def served(*command: str, **options: object) -> Iterator[SimpleNamespace]:
        started_on.append(os.sched_getaffinity(0))
        yield SimpleNamespace(url="")

    monkeypatch.setattr(live, "served", served)
    monkeypatch.setattr(live, "_warm", lambda url: None)
    bench = Bench(tmp_path, False, (), tmp_path)
    with live.root(bench, "bound", [], core):
        assert os.sched_getaffinity(0) == before
    assert started_on == [set(core)]
