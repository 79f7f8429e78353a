"""The evaluation of Feeding Frenzy measures what it says: its network, policies and reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import millstream as ms
from bench.bench import Bench
from bench.feeds import cases, correct, costs, followed, judging, knobs, laid
from bench.feeds.driven import NAME, Driven
from bench.feeds.network import Network, Shape, network, stretch
from bench.feeds.plan import Correct, Followed, Measured
from millstream.feeds.names import parts, prefix
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.policy.rates import class_of
from millstream.feeds.reads.query import FeedQuery

SHAPE = Shape(30, 60, 200).at_ratio(16)


def small() -> Network:
    return network(SHAPE)


def tables_of(driven: Driven, update: str, names: list[str]) -> dict[str, dict[str, Any]]:
    """All entries of some tables."""
    return {
        name: driven.tables(
            lambda tables, name=name: dict(tables.scan(update, name, "", "\U0010ffff"))
        )
        for name in names
    }


@pytest.mark.parametrize("policy", ["hybrid", "push", "pull"])
def test_a_laid_network_is_what_the_engine_comes_to(tmp_path: Path, policy: Any) -> None:
    """The same records, one after the other in memory or in batches on the engine, leave the same
    entries in every table."""
    options = ms.feeds.Feeds(policy=policy, ratio=3.0)
    of, records = small(), []

    class Recording(laid.Laying):
        def take(self, some: Any) -> None:
            listed = list(some)
            records.append(listed)
            super().take(listed)

        def know_rate(self, key: str, rate: object) -> None:
            """The engine has no such short cut: rates come of the posts alone."""

    laying = Recording(PlacedFeeds(options, NAME))
    laid.lay(laying, of)
    producers = [laid.producer(n) for n in range(SHAPE.producers)]
    consumers = [laid.consumer(n) for n in range(SHAPE.consumers)]
    with Driven(tmp_path / "laid", options) as one, Driven(tmp_path / "run", options) as other:
        one.lay(laying)
        for some in records:
            other.run(some)
        for update, names in (("producers", producers), ("consumers", consumers)):
            expected = tables_of(other, f"{NAME}.{update}", names)
            assert tables_of(one, f"{NAME}.{update}", names) == expected
            assert any(expected.values())


def test_laid_rates_are_those_of_the_network() -> None:
    """The rates of producers and consumers are known within two classes. Pairs are on the network's
    side, except for those near the threshold."""
    options = ms.feeds.Feeds(ratio=3.0)
    laying, of = laid.Laying(PlacedFeeds(options, NAME)), small()
    laid.lay(laying, of)
    for number, rate in enumerate(of.query_rates.tolist()):
        meta = laying.tables[f"{NAME}.consumers"][laid.consumer(number)]["meta"]
        assert abs(meta["class"] - class_of(rate / 3_600)) <= 1
    pushed = {
        (name, parts(entry)[1])
        for name, table in laying.tables[f"{NAME}.consumers"].items()
        for entry, value in table.changes().items()
        if entry.startswith(prefix("push")) and value is not None
    }
    for band, inside in ((1.5, True), (1 / 1.5, False)):
        sure = of.pushed(3.0 * band) == inside
        for at in np.flatnonzero(sure).tolist():
            pair = laid.consumer(of.consumer[at]), laid.producer(of.producer[at])
            assert (pair in pushed) == inside


def test_policies_do_what_they_are_called(tmp_path: Path) -> None:
    """Push all pushes each post to all followers and pulls nothing; push none pulls from all and
    pushes nothing; hybrid does some of both; all show the same."""
    of = network(Shape(60, 120, 500).at_ratio(8))
    plan = Measured(0.0, 100, 150, 1, aged=100)
    known = costs.Calibrated(40.0, 15.0, 80.0, 100.0)
    rows = {
        run.policy: costs.costed((run, counted, noise), 8, known)
        for run, counted, noise in costs.measured(Bench(tmp_path), plan, of, costs.runs_of(known))
    }
    part = stretch(of, plan.posts + plan.aged, 1, plan.seed + 10).producer[plan.aged :]
    followers = np.bincount(of.producer)[part].mean()
    push, pull, hybrid = rows[costs.PUSH], rows[costs.PULL], rows[costs.HYBRID]
    assert (push["pushes"], push["pulls"]) == (pytest.approx(followers), 0)
    assert pull["pushes"] == 0 < pull["pulls"]
    assert 0 < hybrid["pushes"] < push["pushes"]
    assert 0 < hybrid["pulls"] < pull["pulls"]
    assert push["items"] == pull["items"] == hybrid["items"] > 1
    assert hybrid["model_us"] < min(push["model_us"], pull["model_us"])
    assert push["maintenance_us"] > pull["maintenance_us"]


def test_what_a_push_costs_is_found_or_not_known() -> None:
    """By how much more taking posts in takes; with fewer pushes than posts it is not known, and it
    is something even if the machine was slow while nothing was pushed."""
    pull = costs.Counted(maintenance_s=1.0, posts=1_000)
    some = costs.Counted(maintenance_s=2.6, posts=2_000, pushes=6_000)
    assert costs.push_cost(pull, some) == pytest.approx(100.0)
    few = costs.Counted(maintenance_s=2.6, posts=2_000, pushes=1_999)
    assert costs.push_cost(pull, few) is None
    quick = costs.Counted(maintenance_s=1.9, posts=2_000, pushes=6_000)
    assert costs.push_cost(pull, quick) == costs.NO_TIME


def test_what_a_pull_costs_is_found_or_not_known() -> None:
    """From reads that tell; from a few that differ by more than pulls do it is not known, and from
    many of them what it is at most."""
    clear = [(pulls, 20, 50e-6 + 10e-6 * pulls) for pulls in (0, 1, 2, 3)]
    assert costs.pull_cost(clear * 20) == pytest.approx(10.0)
    vague = [(0, 20, 90e-6), (1, 20, 60e-6), (1, 20, 85e-6), (0, 20, 55e-6)]
    assert costs.pull_cost(vague * 20) is None
    most = costs.pull_cost(vague * 500)
    assert most is not None
    assert 0.0 < most < 10.0


def test_the_part_that_is_pushed() -> None:
    """It is a fraction of events, not of producers: one producer may be most of a feed."""
    of = Network(
        np.array([0, 1, 1]),
        np.array([0, 0, 1]),
        np.array([9.0, 1.0]),
        np.array([3.0, 50.0]),
    )
    assert knobs.pushed_part(of, np.array([False, True, True])).tolist() == [0.1, 1.0]
    assert of.pushed(3.0).tolist() == [False, True, True]


def test_whole_consumers_are_moved_until_enough_is_saved() -> None:
    """The first ones, no more than it takes; nothing for nothing."""
    moves = [(4, 10.0), (2, 5.0), (7, 1.0)]
    assert knobs.first_moves(moves, 0.0) == frozenset()
    assert knobs.first_moves(moves, 10.0) == {4}
    assert knobs.first_moves(moves, 12.0) == {4, 2}
    assert knobs.first_moves(moves, 99.0) == {4, 2, 7}


def test_a_page_is_what_brute_force_says() -> None:
    """First pages, older and newer ones, and whether there is more."""
    feed = [(ts, "p", f"x{ts}", ts) for ts in range(9, 0, -1)]
    assert correct.expected(feed, None, 3, newer=False) == (feed[:3], True)
    assert correct.expected(feed, (3, "p", "x3"), 5, newer=False) == (feed[-2:], False)
    assert correct.expected(feed, (3, "p", "x3"), 2, newer=True) == (feed[4:6], True)
    assert correct.expected(feed, (8, "p", "x8"), 2, newer=True) == (feed[:1], False)


def test_reads_among_failures_are_counted_and_wrong_ones_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is, no read is wrong among kills and tasks that are tried again; with a reader that
    leaves out one producer, wrong ones are found."""
    plan = Correct(400, 12, 8, 24, 15)
    rows = correct.run(Bench(tmp_path), plan)
    assert sum(row["reads"] for row in rows) == plan.reads
    assert all(row["violations"] == 0 for row in rows)
    assert all(row["kills"] and row["retries"] and row["flips"] for row in rows)
    monkeypatch.setattr(FeedQuery, "_is_followed", lambda self, producer: producer != "p0")
    assert any(row["violations"] for row in correct.run(Bench(tmp_path), plan))


def test_a_post_to_many_reaches_all_who_are_on_push(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In as many batches as it takes, among a restart; with a reader that knows of no pass that is
    under way, feeds are wrong that it has not reached."""
    plan = Followed((200, 600), 100, 40, 30)
    rows = followed.run(Bench(tmp_path), plan)
    assert [row["pushes"] for row in rows] == [100, 300]
    assert all(row["batches"] >= row["pushes"] / 40 for row in rows)
    assert all(row["violations"] == 0 for row in rows)
    monkeypatch.setattr(FeedQuery, "_under_way", lambda self: [])
    assert any(row["violations"] for row in followed.run(Bench(tmp_path), plan))


@pytest.mark.spark
@pytest.mark.faults
def test_a_quick_run_of_the_evaluation_of_feeds(tmp_path: Path) -> None:
    """Every experiment leaves rows, none fails, and no read is wrong."""
    found = cases.run(Bench(tmp_path, quick=True, results=tmp_path))
    assert {row["experiment"] for row in found.rows} == set(judging.OF)
    assert found.figures["failed"] == found.figures["correct_violations"] == 0
    assert found.figures["reads_not_200"] == 0
    assert json.dumps([found.rows, found.settings])
