"""The evaluation of the rows of Feeding Frenzy's benchmark: figures, bars, tables, pictures."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from feeds_rows import COSTS, record, rows

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.feeds import cases, costs, flash, judging, plots, reads, tables
from bench.feeds.plan import QUICK, Live, Plan
from bench.results import write as write_results

ROOT = Path(__file__).resolve().parent.parent.parent


def judged_record() -> dict[str, Any]:
    found = judging.JUDGING.figures(rows())
    bars = [{**asdict(bar), "held": bar.held} for bar in judging.JUDGING.bars(found)]
    return record(rows(), found, bars)


def test_the_gain_is_over_the_better_of_the_others() -> None:
    """At each point hybrid is compared with the cheaper one; a point without it has no gain."""
    fig4 = [row for row in rows() if row["experiment"] == "fig4"]
    assert judging.gains(fig4, "ratio", "cpu_us") == pytest.approx({4: 0.1, 16: 0.2})
    assert judging.gains(fig4[:2], "ratio", "cpu_us") == {}


def test_figures_and_bars_of_feeds() -> None:
    """Each bar's figure comes from the rows that it is about, the worst of them where there are
    several."""
    found = judging.JUDGING.figures(rows())
    assert found["fig4_least_gain"] == pytest.approx(0.1)
    assert found["deciding_pairs_gain"] == pytest.approx(0.2)
    assert found["deciding_consumers_gain"] == pytest.approx(0.1)
    assert found["fig4_gain_16"] == pytest.approx(0.2)
    assert found["fig4_policy_gain_16"] == pytest.approx(1 - 1_100 / 1_500)
    assert found["fig5_more_gain"] == pytest.approx(0.1)
    assert found["fig6_latency_of_least"] == pytest.approx(0.11 / 0.5)
    assert found["fig8_cost"] == 0.95
    assert found["fig10_peak"] == 4.0
    assert (found["correct_reads"], found["correct_violations"]) == (100_000, 0)
    assert set(judging.BARS) <= set(found)
    assert {bar.figure for bar in judging.JUDGING.bars(found) if not bar.held} == {"reads_p99_ms"}


def test_what_was_not_run_of_feeds_has_no_bar() -> None:
    """Bars are only of experiments that have rows; one that failed is counted."""
    some = [row for row in rows() if row["experiment"] == "reads-correct"]
    failed = {"experiment": "failed", "what": "fig8", "error": "no"}
    found = judging.JUDGING.figures([*some, failed])
    names = {bar.figure for bar in judging.JUDGING.bars(found)}
    assert names == {"failed", "correct_reads", "correct_violations"}
    assert found["failed"] == 1


def test_what_of_a_cost_is_the_policys() -> None:
    """Taken off is a post that is pushed to nobody and reads that pull nothing."""

    def row(policy: str, maintenance: float, query: float) -> dict[str, Any]:
        cpu = maintenance + 4 * query
        told = {"maintenance_us": maintenance, "query_us": query, "cpu_us": cpu}
        return {"policy": policy, **told}

    found = costs.above(
        [row(costs.PUSH, 500, 100), row(costs.PULL, 80, 180), row(costs.HYBRID, 200, 110)]
    )
    assert [one["policy_us"] for one in found] == [420, 320, 160]


def test_a_flash_is_over_when_costs_stay_low() -> None:
    """Back is the first point that is within 10% of the baseline, with most of those after it: one
    disturbed point among them counts for nothing."""
    costs_of = [10.0] * 4 + [30.0] * 5 + [10.0, 30.0] + [10.0] * 9
    points = [
        {"at": 5.0 * (n - 4), "phase": "before" if n < 4 else "after", "cpu_ms": cost}
        for n, cost in enumerate(costs_of)
    ]
    found = flash.summary(points, 5.0, {("c", "p"): 1, ("d", "p"): 2})
    assert (found["before_ms"], found["peak_ms"], found["settled"]) == (10.0, 30.0, 1.0)
    assert (found["flips"], found["flipped"]) == (2, 2)
    assert found["back_s"] == 25.0
    never = [{**point, "cpu_ms": 10.0 if point["at"] < 0 else 30.0} for point in points]
    assert flash.summary(never, 5.0, {})["back_s"] == 80.0
    calm = [{**point, "cpu_ms": 10.5} for point in points]
    assert flash.summary(calm, 5.0, {})["back_s"] == 0.0


def test_a_flip_is_another_side_than_before() -> None:
    """The first decision on a new follow is none, and being told the same again is none."""
    sides = flash.Sides({("c", "p"): "push"})
    for consumer, side in (("c", "push"), ("c", "pull"), ("new", "push"), ("c", "pull")):
        sides.told(consumer, {"producer": "p", "side": side})
    assert sides.flips == {("c", "p"): 1}


def test_every_part_of_the_page_of_feeds_is_made() -> None:
    """Each marked place of the page is a part of the tables, each part is in the page, and each
    picture that a part shows is drawn."""
    page = (ROOT / "docs" / "papers" / "feeding-frenzy-evaluation.md").read_text()
    assert set(re.findall(r"<!-- figures:feeds\.(\w+) -->", page)) == set(tables.PARTS)
    found = judged_record()
    drawn = plots.pictures(found)
    shown = set()
    for name in tables.PARTS:
        text = tables.part(found, name)
        assert text.endswith("\n")
        shown |= set(re.findall(r"pictures/([\w-]+\.svg)", text))
    assert shown == set(drawn)
    assert all(picture.startswith("<svg") for picture in drawn.values())


def test_parts_without_rows_say_so() -> None:
    """Parts that were not measured are named, with the command that measures them."""
    found = {**judged_record(), "rows": []}
    for name, experiment in tables.EXPERIMENTS.items():
        told = tables.part(found, name)
        assert told == f"Not measured yet: `make bench-feeds ONLY={experiment}`.\n"
    assert plots.pictures(found) == {}


def test_tables_of_feeds_say_what_was_measured() -> None:
    """Figures stand where they belong."""
    found = judged_record()
    assert "| 1,600 | 45 | 15.0 | 3.00 | 20.0% | 26.7% |" in tables.part(found, "ratios")
    assert "H = 45.0 µs" in tables.part(found, "ratios")
    assert "35 s" in tables.part(found, "flash")
    assert "none more than 1 time." in tables.part(found, "flash")
    assert "reads_p99_ms 60 (bar 50, missed)" in tables.part(found, "where")
    assert "| 6,000 | 2.0 | 8.0 | 60.0 | 999 | 0.50 | 18.0 | 0 |" in tables.part(found, "live")


def test_reads_are_told_in_a_row() -> None:
    """The results of reader and sender make one row. Answers of both other than 200 are counted."""
    found = {
        **{"reads": 9, "p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0, "max_ms": 4.0, "items": 5.0},
        **{"server_p95_ms": 2.0, "server_p99_ms": 3.0, "incomplete": 0, "lag_events": 7},
        **{"cores": {"server": 0.4}, "not_200": {"503": 2}},
    }
    sent = {"per_s": 998.0, "p99_ms": 8.0, "not_200": {"507": 1}}
    row = reads.row_of(Live(), found, sent, {"cpu_others": 0.02})
    assert row["what"] == "1,000 posts/s, 100 reads/s"
    assert (row["not_200"], row["posts_per_s"], row["cores_server"]) == (3, 998.0, 0.4)


def test_some_experiments_of_feeds_again_keep_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--only` the rows of the others stay as they were, with the commit that they are of."""
    before = {**judged_record(), "quick": True}
    before["rows"].append({"experiment": "failed", "what": "reads-correct", "error": "no"})
    write_results(tmp_path, before)
    correct = {"what": "x", "reads": 7, "violations": 1}
    monkeypatch.setattr(cases.correct, "run", lambda bench, plan: [correct])
    bench = Bench(tmp_path, quick=True, only=("reads-correct",), results=tmp_path)
    found = cases.run(bench)
    again = [row for row in found.rows if row["experiment"] == "reads-correct"]
    assert again == [{"experiment": "reads-correct", **correct}]
    assert [r for r in found.rows if r["experiment"] == "fig4"] == [
        r for r in before["rows"] if r["experiment"] == "fig4"
    ]
    assert found.figures["failed"] == 0
    assert found.settings["measured"]["fig4"]["commit"] == "0123456789abcdef"
    assert found.settings["measured"]["fig4"]["costs"] == COSTS
    assert json.dumps([found.rows, found.settings])


def test_an_experiment_of_feeds_that_fails_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other experiments continue, and the failure is counted. An unknown experiment is refused
    by name."""

    def fail(bench: Bench, plan: object) -> list[Any]:
        raise RunFailedError("the server did not come up")

    monkeypatch.setattr(cases.reads, "run", fail)
    found = cases.run(Bench(tmp_path, quick=True, only=("reads",), results=tmp_path))
    assert found.figures["failed"] == 1
    assert found.rows[0]["error"] == "the server did not come up"
    with pytest.raises(RunFailedError, match=r"fig4.*reads-correct.*got 'fig99'"):
        cases.run(Bench(tmp_path, quick=True, only=("fig99",), results=tmp_path))


def test_the_quick_plan_of_feeds_is_a_smaller_one() -> None:
    """Every part of the quick plan differs from the whole one, every experiment has its part, and
    both can be written as JSON."""
    names = {part.name for part in fields(Plan)}
    assert set(cases.PARTS.values()) == names
    assert set(cases.PARTS) == set(judging.OF)
    for name in names:
        assert getattr(QUICK, name) != getattr(Plan(), name)
    assert json.dumps([asdict(QUICK), asdict(Plan())])
