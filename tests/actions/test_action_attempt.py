"""The decision that follows an attempt: pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.actions.attempt import (
    LONGEST_PAUSE,
    Again,
    AttemptOutcome,
    Dead,
    Done,
    Policy,
    answer_means,
    decide,
    seconds_of,
)

policies = st.builds(Policy, st.integers(1, 30), st.none() | st.floats(0, 1e4, allow_nan=False))
chances = st.floats(0, 1, exclude_max=True)
waits = st.none() | st.floats(0, 1e5, allow_nan=False)


@given(policies, st.lists(st.tuples(waits, chances), min_size=40, max_size=40))
def test_a_record_is_given_up_in_the_end(
    policy: Policy, tries: list[tuple[float | None, float]]
) -> None:
    """Whatever a receiver answers, the number of attempts is bounded and all are within the
    patience. No pause is shorter than the receiver asked for, and no computed pause exceeds the
    longest."""
    spent = 0.0
    for number, (asked, chance) in enumerate(tries, 1):
        decision = decide(AttemptOutcome("again", "no", asked), number, spent, policy, chance)
        if isinstance(decision, Dead):
            assert "no (given up after" in decision.error
            assert number == policy.tries or policy.patience is not None
            return
        assert isinstance(decision, Again)
        assert number < policy.tries
        assert decision.seconds >= (asked or 0.0)
        assert 0.25 <= decision.seconds <= max(LONGEST_PAUSE, asked or 0.0)
        spent += decision.seconds
        assert policy.patience is None or spent <= policy.patience
    raise AssertionError("it was never given up")


@given(policies, st.integers(1, 50), st.floats(0, 1e6), chances)
def test_an_answer_for_good_is_not_tried_again(
    policy: Policy, tries: int, spent: float, chance: float
) -> None:
    """A success or a refusal is final, whatever the earlier attempts gave."""
    assert decide(AttemptOutcome("done"), tries, spent, policy, chance) == Done()
    assert decide(AttemptOutcome("never", "HTTP 404"), tries, spent, policy, chance) == Dead(
        "HTTP 404"
    )


def pause(tries: int, chance: float) -> float:
    decision = decide(AttemptOutcome("again", "no"), tries, 0, Policy(20, None), chance)
    assert isinstance(decision, Again)
    return decision.seconds


@given(chances, chances)
def test_pauses_double_and_differ_by_chance(one: float, other: float) -> None:
    """Chance takes off at most a half, so a later pause is never below half of an earlier."""
    for tries in range(1, 12):
        assert pause(tries, 0.0) / 2 <= pause(tries, one) <= pause(tries, 0.0)
        assert pause(tries + 1, other) >= pause(tries, 0.0) / 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, "done") for status in (200, 201, 202, 204, 299)),
        *((status, "again") for status in (408, 425, 429, 500, 502, 503, 504, 599)),
        *((status, "never") for status in (301, 302, 308, 400, 401, 403, 404, 409, 410, 422, 451)),
    ],
)
def test_what_a_status_means(status: int, kind: str) -> None:
    """2xx is done; 408, 425, 429 and 5xx are tried again; all else is refused."""
    assert answer_means(status, "", None, 0).kind == kind


@given(st.text(max_size=40))
def test_any_header_is_taken(text: str) -> None:
    """A Retry-After that means nothing is as none; no wait is below zero."""
    seconds = seconds_of(text, 1e9)
    assert seconds is None or seconds >= 0
