"""H and L from measures that are noisy, and steps towards a latency that come to rest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.feeds.policy.costs import (
    FIRST,
    LEAST,
    MOST,
    OFF,
    READS,
    Calibration,
    CostLine,
    Spent,
    kept,
)
from millstream.feeds.policy.latency import (
    CALM,
    FEWEST,
    KEPT,
    MOST_KNOWN,
    MOST_STEPS,
    PATIENCE,
    Latencies,
    Steps,
    Wholesale,
)

PULL, ITEM, READ = 20e-6, 3e-6, 200e-6
"""Seconds of a pull, of an item and of every read."""


def measure(
    line: CostLine, reads: int, random: Random, *, pull: float = PULL, odd: float = 0.0
) -> None:
    """Reads of feeds with noise of a fifth; of `odd` of them something else took 50 ms."""
    for _ in range(reads):
        pulled, items = random.randrange(60), random.randrange(21)
        cost = (READ + pull * pulled + ITEM * items) * random.uniform(0.8, 1.2)
        line.add(pulled, items, cost + 0.05 * (random.random() < odd))


@pytest.mark.parametrize("seed", range(5))
def test_the_cost_of_a_pull_is_found(seed: int) -> None:
    """After some hundred noisy reads the slope is within a tenth of what a pull costs."""
    line = CostLine(READS)
    measure(line, 500, Random(seed))
    assert line.slope == pytest.approx(PULL, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_outliers_hardly_count(seed: int) -> None:
    """One read of fifty takes a hundred times as long, also among the first. The slope is within a
    sixth of its value without them."""
    line = CostLine(READS)
    measure(line, 3_000, Random(seed), odd=0.02)
    assert line.slope == pytest.approx(PULL, rel=0.17)


def test_a_cost_that_has_changed_is_followed() -> None:
    """Reads that are slower, or faster, from some time on: the old ones are forgotten."""
    random, line = Random(1), CostLine(READS)
    for pull in (PULL, 5 * PULL, PULL):
        measure(line, 15_000, random, pull=pull)
        assert line.slope == pytest.approx(pull, rel=0.15)


def test_what_cannot_be_told_is_not_known() -> None:
    """No slope from few reads, from reads that all pull as many, from noise without a cause, nor
    if pulls and items always go together."""
    few, same, noise, joined = (CostLine(READS) for _ in range(4))
    measure(few, FIRST - 1, Random(1))
    random = Random(2)
    for _ in range(1_000):
        same.add(7, random.randrange(21), random.uniform(1e-4, 2e-4))
        noise.add(random.randrange(60), random.randrange(21), random.uniform(1e-4, 2e-4))
        both = random.randrange(20)
        joined.add(both, both, both * random.uniform(0.9, 1.1) * 1e-5)
    assert [one.slope for one in (few, same, noise, joined)] == [None] * 4


def test_what_cannot_be_told_is_bounded() -> None:
    """If pulls cost next to nothing, the upper bound shrinks with more reads. If all reads pull the
    same number, nothing is known."""
    random, line, same = Random(6), CostLine(READS), CostLine(READS)
    bounds = []
    for number in range(4_000):
        noise = random.uniform(1e-4, 2e-4)
        line.add(random.randrange(60), random.randrange(21), noise)
        same.add(7, random.randrange(21), noise)
        if number in (100, 1_000, 3_999):
            bounds.append(line.most)
    assert line.slope is None
    assert same.most is None
    few, more, many = bounds
    assert few is None
    assert more is not None
    assert many is not None
    assert 1e-5 > more > many > 0.0


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("alone", [0.0, 0.3, 0.9])
def test_a_pull_is_worth_what_it_would_save(alone: float, together: bool) -> None:
    """The only pull of a read costs more than one of several: L is the mean of both, by how many
    of the pulls are the only one; or, where all of a read are decided on together, one of each."""
    random, found = Random(11), Calibration(together=together)
    pulls = dear = 0
    for _ in range(6_000):
        several = random.randrange(2, 6) if random.random() > alone else 1
        pulled = random.choice((0, several))
        pulls, dear = pulls + pulled, dear + (pulled > 0 if together else pulled == 1)
        cpu = READ + PULL * pulled + 2 * PULL * (pulled > 0)
        found.read_took(cpu * random.uniform(0.9, 1.1), pulled, 20)
    part = dear / pulls
    assert found.low == pytest.approx(3 * PULL * part + PULL * (1 - part), rel=0.15)


def test_who_pulls_from_many_follows_many() -> None:
    """With per-producer coherency a read costs by whom a consumer follows, pulled or not: that is
    not taken for what a pull costs."""
    random, found = Random(7), Calibration()
    found.spent(Spent(0, 0, 0.0, 60e-6))
    for _ in range(3_000):
        follows = random.randrange(1, 60)
        pulled = random.randrange(follows + 1)
        cpu = (READ + 30e-6 * follows) * random.uniform(0.95, 1.05)
        found.read_took(cpu, pulled, follows, "per-producer")
        if random.random() < 0.1:
            found.read_took(READ + PULL * pulled, pulled, 20, "global")
    ratio = found.settled()
    assert ratio is not None
    assert ratio > 20.0


def test_the_reads_that_come_most_count() -> None:
    """L is that of the coherency that is asked for the most, of late."""
    random, found = Random(8), Calibration()
    for coherency, pull in (("global", PULL), ("per-producer", 3 * PULL), ("global", PULL)):
        for _ in range(6_000):
            pulled = random.randrange(60)
            found.read_took(READ + pull * pulled * random.uniform(0.9, 1.1), pulled, 20, coherency)
        assert found.low == pytest.approx(pull, rel=0.1)


def test_the_ratio_follows_its_bound() -> None:
    """While only an upper bound of a pull's cost is known, the ratio follows it, but is not below
    the application's. With the first slope it is the measured value."""
    random, found = Random(9), Calibration(2.0)

    def read(times: int, pull: float) -> None:
        for _ in range(times):
            pulled = random.randrange(10)
            cpu = (READ + pull * pulled) * random.uniform(0.5, 1.5)
            found.read_took(cpu, pulled, 20)

    read(5_000, 0.0)
    assert found.low is None
    ratios = []
    for high in (60e-6, 12e-6, 1e-6):
        found.spent(Spent(0, 0, 0.0, high))
        ratios.append(found.settled() or 0.0)
    assert 64.0 > ratios[0] > 4 * ratios[1] > 8.0
    assert ratios[2] == ratios[1]
    found.spent(Spent(0, 0, 0.0, 60e-6))
    read(8_000, PULL)
    assert found.settled() == pytest.approx(60e-6 / PULL, rel=0.3)


def test_reads_that_come_as_often_change_nothing() -> None:
    """Of two coherencies with equally many reads, the earlier one stays."""
    random, found = Random(10), Calibration()
    found.spent(Spent(0, 0, 0.0, 60e-6))
    seen = set()
    for number in range(12_000):
        pulled = random.randrange(60)
        coherency, pull = random.choice((("global", PULL), ("per-producer", 3 * PULL)))
        found.read_took(READ + pull * pulled, pulled, 20, coherency)
        if number > 2_000 and number % 100 == 0:
            seen.add(found.settled())
    assert len(seen) == 1


def test_the_items_may_always_be_as_many() -> None:
    """With full pages only, what a pull costs is known all the same."""
    random, line = Random(3), CostLine(READS)
    for _ in range(300):
        pulled = random.randrange(30)
        line.add(pulled, 20, READ + PULL * pulled * random.uniform(0.9, 1.1))
    assert line.slope == pytest.approx(PULL, rel=0.1)


def test_high_is_both_functions_time() -> None:
    """The cost of a push is the consumers' time for an event, the time for storing it, and the
    producers' extra time per push. A replaced store does not disturb it."""
    random, found = Random(4), Calibration()
    assert found.high is None
    for _ in range(2):  # the second time as of a new store
        pushes = processed = 0
        spent = stored = 0.0
        for _ in range(300):
            more, taken = random.randrange(2_000), random.randrange(1, 200)
            pushes, processed = pushes + more, processed + taken
            spent += (5e-6 * more + 80e-6 * taken) * random.uniform(0.9, 1.1)
            stored += 20e-6 * more * random.uniform(0.9, 1.1)
            found.spent(Spent(pushes, processed, spent, 25e-6, pushes, stored))
            found.spent(Spent(pushes, processed, spent, 25e-6, pushes, stored))  # seen again
        assert found.high == pytest.approx(50e-6, rel=0.05)


def test_the_ratio_is_known_with_both_and_rests() -> None:
    """No ratio until H and L are known; then it is one of few values, however noisy L is."""
    random, found = Random(5), Calibration()
    for _ in range(200):
        found.read_took(READ + PULL * (pulled := random.randrange(60)), pulled, 20)
    assert found.settled() is None
    found.spent(Spent(0, 0, 0.0, 60e-6))
    seen = set()
    for _ in range(200):
        for _ in range(50):
            pulled = random.randrange(60)
            found.read_took((READ + PULL * pulled) * random.uniform(0.5, 1.5), pulled, 20)
        seen.add(found.settled())
    assert len(seen) == 1
    assert seen.pop() == pytest.approx(3.0, rel=0.2)


@given(before=st.none() | st.floats(LEAST, MOST), found=st.floats(1e-6, 1e6))
def test_a_ratio_is_kept_unless_it_is_off(before: float | None, found: float) -> None:
    """The ratio is within bounds, and changes only by a fifth or more. Asking again changes
    nothing."""
    now = kept(before, found)
    assert LEAST <= now <= MOST
    assert kept(now, found) == now
    if before is not None and now != before:
        assert max(now / before, before / now) >= (1 + OFF) * 0.999


def decided(latency: Callable[[int], float], times: int, steps: Steps | None = None) -> list[Steps]:
    """Decisions of a system whose reads take `latency(steps)`, for a target of 1."""
    found = [steps or Steps()]
    for _ in range(times):
        found.append(found[-1].decided(latency(found[-1].taken), 1.0))
    return found


@pytest.mark.parametrize("enough", range(MOST_STEPS + 1))
def test_steps_stop_where_reads_are_fast_enough(enough: int) -> None:
    """Reads that are just fast enough from some step on: it goes there at once and stays; if no
    step is enough, it stays at the last."""
    found = decided(lambda taken: 0.9 if taken >= enough else 1.5, 50)
    assert [one.taken for one in found[: enough + 1]] == list(range(enough + 1))
    assert {one.taken for one in found[enough:]} == {enough}
    assert decided(lambda _: 9.0, 50)[-1].taken == MOST_STEPS


def test_steps_go_back_when_reads_are_calm() -> None:
    """After a busy time it goes back to the cheapest, a step after each patient wait."""
    found = decided(lambda _: CALM / 2, 100, Steps(taken=3))
    assert [one.taken for one in found[: PATIENCE + 1]] == [3] * PATIENCE + [2]
    assert found[-1].taken == 0


def test_steps_come_to_rest_between_too_slow_and_too_fast() -> None:
    """With one step reads are calm, with none too slow: it tries the step back ever more seldom."""
    found = decided(lambda taken: 1.5 if taken == 0 else CALM / 2, 1_000)
    tries = [i for i, (one, other) in enumerate(pairwise(found)) if other.taken < one.taken]
    assert len(tries) < 15
    gaps = [other - one for one, other in pairwise(tries)]
    assert gaps == sorted(gaps)


def test_percentiles_of_the_last_reads() -> None:
    """The percentiles are right, and old reads are forgotten. A decision needs enough new reads,
    and uses only those."""
    found = Latencies()
    assert found.percentiles(50, 95) == [None, None]
    assert found.since_decision(95) is None
    for _ in range(KEPT):
        found.add(1_000.0)
    for number in range(1, KEPT + 1):
        found.add(float(number))
    assert found.percentiles(50, 100) == [KEPT / 2, KEPT]
    assert found.since_decision(100) == KEPT
    for _ in range(FEWEST - 1):
        found.add(2.0)
    assert found.since_decision(95) is None
    found.add(3.0)
    assert (found.since_decision(99), found.since_decision(99)) == (2.0, None)


def test_wholesale_takes_who_looks_often_for_few_pulls_first() -> None:
    """Each step takes as many more consumers, in the order of reads over producers pulled; who
    was taken stays until steps go back, though it pulls nothing now; who pulls nothing is none."""
    found = Wholesale()
    for number in range(12):
        for _ in range(number + 1):
            found.read(f"c{number:02d}", 10)
    found.read("pushed", 0)
    found.choose(0)
    assert len(found) == 0
    found.choose(1)
    assert {one for one in ("c11", "c10", "c09", "pushed") if one in found} == {"c11", "c10"}
    for _ in range(99):
        found.read("c00", 1)
        found.read("c11", 0)
    found.choose(1)
    assert "c00" not in found
    found.choose(2)
    assert all(one in found for one in ("c11", "c10", "c00"))
    found.choose(MOST_STEPS)
    assert len(found) == 12
    found.choose(1)
    assert "c11" in found
    assert "c10" in found
    assert len(found) == 2


def test_wholesale_remembers_not_too_many() -> None:
    """When there are too many consumers, those that have not read for longest are forgotten."""
    found = Wholesale()
    found.read("first", 5)
    found.choose(MOST_STEPS)
    assert "first" in found
    for number in range(MOST_KNOWN):
        found.read(f"c{number}", 5)
    assert "first" not in found
