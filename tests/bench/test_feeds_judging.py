"""The evaluation of the rows of Feeding Frenzy's benchmark: figures, bars, tables, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evaluation_records import judged
from feeds_rows import SHARED, rows

from bench.feeds import costs, flash, judging, reads
from bench.feeds.page import PAGE
from bench.feeds.plan import Live

ROOT = Path(__file__).resolve().parent.parent.parent


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


def test_tables_of_feeds_say_what_was_measured() -> None:
    """Figures stand where they belong."""
    found = judged("feeds", rows(), judging.JUDGING, SHARED)
    assert "| 1,600 | 45 | 15.0 | 3.00 | 20.0% | 26.7% |" in PAGE.part(found, "ratios")
    assert "H = 45.0 µs" in PAGE.part(found, "ratios")
    assert "35 s" in PAGE.part(found, "flash")
    assert "none more than 1 time." in PAGE.part(found, "flash")
    assert "reads_p99_ms 60 (bar 50, missed)" in PAGE.part(found, "where")
    assert "| 6,000 | 2.0 | 8.0 | 60.0 | 999 | 0.50 | 18.0 | 0 |" in PAGE.part(found, "live")


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
