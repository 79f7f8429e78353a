"""Conditions that need attention are derived from a status, the most urgent first."""

from __future__ import annotations

from typing import Any

import pytest
from calm_status import ACTION, CALM, COUNTS, DELIVERIES, JOB, NOW, SOURCE, UPDATE
from msgspec.structs import replace

from millstream.messages.status import ActionRetries, IntakeStatus, LettersLeft, SinkTrouble
from millstream.server.status.attention import attention_of
from millstream.server.status.lag_trend import LagTrend

BEHIND = replace(SOURCE, lag_seconds=45.0, lag_events=1, lag_growth=0.0)


def texts(**changed: Any) -> list[str]:
    return [item.text for item in attention_of(replace(CALM, **changed), NOW)]


def test_nothing_is_said_of_an_application_that_is_well() -> None:
    assert texts() == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (
            {"troubles": [SinkTrouble("sink 'out'", 1, "no room")]},
            "sink 'out' fails, and batches wait for it: no room",
        ),
        (
            {"deliveries": replace(DELIVERIES, residual=-1)},
            "1 delivery not accounted for: please report it",
        ),
        (
            {"actions": [replace(ACTION, waiting=7, retrying=ActionRetries(1, 2, "503"))]},
            "action 'notify' fails, 2 tries so far: 503; 7 events waiting",
        ),
        (
            {"actions": [replace(ACTION, failed=1)]},
            "action 'notify' gave up 1 event; to put them back: millstream actions retry notify",
        ),
        (
            {"actions": [replace(ACTION, waiting=1_000)]},
            "action 'notify' has 1,000 events waiting",
        ),
        (
            {"jobs": {"errors": replace(JOB, residual=1)}},
            "job 'errors': 1 record not accounted for: please report it",
        ),
        (
            {"jobs": {"errors": replace(JOB, silent=["web2"])}},
            "job 'errors': nothing comes from web2, while other nodes go on",
        ),
        (
            {"jobs": {"errors": replace(JOB, nodes={"web1": replace(COUNTS, dead=9)})}},
            "job 'errors': 9 dead records at its agents (web1 9)",
        ),
        (
            {"jobs": {"errors": replace(JOB, warnings=["web1: 94% came late"])}},
            "job 'errors': web1: 94% came late",
        ),
        (
            {"intake": IntakeStatus(bytes=4096, pressure=1.0, held=4_000)},
            "overload: sources are stopped, 4,000 events held back",
        ),
        (
            {"sources": [BEHIND]},
            "source 'in' is 45 s behind, 1 event",
        ),
        (
            {"sources": [replace(BEHIND, lag_seconds=6.0, lag_growth=1_200.4)]},
            "source 'in' is 6 s behind, 1 event, and falls behind by 1,200 events a second",
        ),
        (
            {"horizon": NOW - 600_000_000},
            "5 events waiting for the horizon, which is 10 min back",
        ),
        (
            {
                "dead_letters": 12,
                "letters_left": LettersLeft(12, 0),
                "functions": [replace(UPDATE, dead_letters=12)],
            },
            "12 dead letters (count 12)",
        ),
        (
            {
                "dead_letters": 12,
                "letters_left": LettersLeft(2, 0),
                "functions": [replace(UPDATE, dead_letters=12)],
            },
            "2 dead letters left of 12 (count 12)",
        ),
        (
            {"late": 3, "letters_left": LettersLeft(0, 1)},
            "1 event came too late for event time",
        ),
    ],
)
def test_each_trouble_has_a_sentence(changed: dict[str, Any], text: str) -> None:
    assert texts(**changed) == [text]


def test_letters_that_were_all_retried_or_removed_need_no_attention() -> None:
    """The letters still count, but need no attention: operators ignore a warning that never goes
    away."""
    assert texts(dead_letters=12, late=3, functions=[replace(UPDATE, dead_letters=12)]) == []


def test_what_is_bad_comes_first() -> None:
    """A failing sink stops everything; late events do not."""
    left = LettersLeft(0, 3)
    troubled = replace(CALM, late=3, letters_left=left, troubles=[SinkTrouble("sink 'a'", 1, "x")])
    assert [item.level for item in attention_of(troubled, NOW)] == ["bad", "warning"]


def test_in_arrival_order_nothing_waits_for_the_horizon() -> None:
    assert texts(order="arrival", horizon=NOW - 10**12) == []


def test_a_lag_that_rises_and_falls_with_batches_does_not_grow() -> None:
    """The lag after a batch is compared, not the records since then."""
    trend = LagTrend()
    for second in range(61):
        trend.add(second * 1_000_000, 500 * (second % 5))
    assert trend.growth() == 0.0


def test_a_lag_is_looked_at_for_a_while_first() -> None:
    trend = LagTrend()
    trend.add(0, 10)
    trend.add(10_000_000, 10_000)
    assert trend.growth() is None
