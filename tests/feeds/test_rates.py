"""Rates as they are kept: right for often and for rarely, quick in a flash and calm after it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from millstream.codec import decode_value, encode_value
from millstream.feeds.policy.rates import (
    ALWAYS,
    CALM,
    FLASH,
    LASTING,
    MOST,
    NEVER,
    SECOND,
    Rate,
    class_from,
    class_of,
)

HOUR, DAY = 3_600 * SECOND, 86_400 * SECOND
START = 1_700_000_000_000_000


def poisson(per_day: float, days: float, seed: int) -> tuple[Rate, int]:
    """The rate of events that come by chance, and when the last one came."""
    random, rate, at = Random(seed), Rate(), START
    while at < START + days * DAY:
        at += 1 + int(random.expovariate(per_day) * DAY)
        rate.add(at, 1.0, DAY)
    return rate, at


def per_day(rate: Rate, now: int = 0) -> float:
    return rate.per_second(DAY, now) * 86_400


@pytest.mark.parametrize(("usual", "days"), [(139, 5), (24, 7), (1, 40), (1 / 7, 280)])
def test_a_rate_is_right_by_a_factor(usual: float, days: float) -> None:
    """With a memory of a day, whether there are a hundred a day or one a week: of a hundred
    estimates nine of ten are within a factor of 1.6, half of them within 1.3, and their mean is
    within a tenth of the rate."""
    found = sorted(per_day(poisson(usual, days, seed)[0]) / usual for seed in range(100))
    assert found[5] > 1 / 1.6
    assert found[94] < 1.6
    assert found[25] > 1 / 1.3
    assert found[74] < 1.3
    assert sum(found) / len(found) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("gap", [HOUR, DAY, 7 * DAY])
def test_what_comes_evenly_is_known_well(gap: int) -> None:
    """Events at even gaps: after thirty of them the rate is within a tenth."""
    rate = Rate()
    for number in range(60):
        rate.add(START + number * gap, 1.0, DAY)
    assert per_day(rate) == pytest.approx(DAY / gap, rel=0.1)


def test_a_fresh_rate_is_neither_high_nor_nothing() -> None:
    """One event counts as two a day, and a second one at once is no flood. One a day is measured
    within a fifth after five days, twenty a day within a factor of two after one."""
    rate = Rate()
    assert rate.per_second(DAY) == 0.0
    rate.add(START, 1.0, DAY)
    assert per_day(rate) == pytest.approx(2.0)
    rate.add(START + 1, 1.0, DAY)
    assert per_day(rate) == pytest.approx(4.0)
    daily = Rate()
    for day in range(6):
        daily.add(START + day * DAY, 1.0, DAY)
    assert 1 / 1.2 < per_day(daily) < 1.2
    often = Rate()
    for number in range(20):
        often.add(START + number * DAY // 20, 1.0, DAY)
    assert 10.0 < per_day(often) < 20.0


def test_a_rate_fades_when_nothing_comes() -> None:
    """As of a later time a rate is lower, the lower the later; ten days of silence after one an
    hour leave less than a twentieth."""
    rate, last = poisson(24, 10, 1)
    times = [last + day * DAY for day in range(11)]
    found = [per_day(rate, now) for now in times]
    assert found == sorted(found, reverse=True)
    assert found[10] < found[0] / 20


@pytest.mark.parametrize("usual", [1.0, 24.0])
def test_a_flash_is_seen_within_ten_events_and_forgotten_after(usual: float) -> None:
    """After a few events a day, ten at one a second give a rate of over 0.1 a second. It does not
    fall during the flash. The first event after the flash has the usual rate again."""
    rate, last = poisson(usual, 20, 3)
    before = per_day(rate)
    seen = []
    for number in range(600):
        last += SECOND if number % 100 else 90 * SECOND  # with a lull now and then
        rate.add(last, 1.0, DAY)
        seen.append(rate.per_second(DAY))
    assert seen[9] > 0.1
    assert all(later > 0.9 * max(seen[: i + 1]) for i, later in enumerate(seen))
    assert 0.5 < seen[-1] < 1.5
    last += HOUR
    assert per_day(rate, last) < 1.5 * before
    rate.add(last, 1.0, DAY)
    assert before / 1.5 < per_day(rate) < 1.5 * before


def test_a_flash_is_over_without_an_event_too() -> None:
    """As of a time when the short memory is empty the rate is the usual one."""
    rate, last = poisson(24, 10, 4)
    usual = per_day(rate)
    for _ in range(20):
        last += SECOND
        rate.add(last, 1.0, DAY)
    assert per_day(rate, last + FLASH) > 100 * usual
    assert rate.sudden < 20
    over = last + FLASH * 7
    assert CALM > 20 / 2**7
    assert per_day(rate, over) < 1.5 * usual


def test_what_lasts_becomes_usual() -> None:
    """A rate that has risen for good is still known when it is no flash any more."""
    rate, last = poisson(24, 10, 5)
    usual = rate.per_second(DAY)
    for _ in range(int(2 * LASTING * DAY / (10 * SECOND))):
        last += 10 * SECOND
        rate.add(last, 1.0, DAY)
    later = rate.per_second(DAY)
    assert 0.1 < later < 0.2
    assert 10 * usual < rate.per_second(DAY, last + HOUR) < later


def test_many_at_once_are_no_flash_if_that_is_said() -> None:
    """Counts from elsewhere come in groups: a hundred at once are spread over their time."""
    rate = Rate()
    for number in range(100):
        rate.add(START + number * HOUR, 100.0, DAY, flashes=False)
    assert rate.per_second(DAY) * 3_600 == pytest.approx(100.0, rel=0.1)
    assert rate.peak == rate.sudden == 0.0


@given(
    gaps=st.lists(st.integers(-HOUR, 3 * DAY), max_size=30), counts=st.sampled_from([1.0, 0.5, 9.0])
)
def test_a_rate_is_stored_whole(gaps: list[int], counts: float) -> None:
    """For any events, also out of order, a rate is a number from 0 up. It is the same if it is
    stored and read after each event."""
    rate, stored, at = Rate(), Rate(), START
    for gap in gaps:
        at += gap
        rate.add(at, counts, DAY)
        stored = convert(decode_value(encode_value(stored.rounded())), Rate)
        stored.add(at, counts, DAY)
        assert 0.0 < rate.per_second(DAY) < 1e6
        assert stored.per_second(DAY) == pytest.approx(rate.per_second(DAY), rel=1e-4)


@given(rate=st.floats(1e-9, 1e9))
def test_classes_part_rates_in_order(rate: float) -> None:
    """A class holds rates up to a quarter of a doubling apart; `class_from` is the lowest class
    that has no lower rate; all are between never and always."""
    assert NEVER < class_of(rate) <= class_from(rate) <= class_of(rate) + 1 <= MOST + 1 < ALWAYS
    assert class_of(rate) <= class_of(rate * 1.01)
    assert class_of(rate * 2) in (class_of(rate) + 4, MOST, *range(1, 5))
