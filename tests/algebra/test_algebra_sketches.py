"""The sketches: within the error that they state, bounded, and the same whatever the order."""

from __future__ import annotations

import json
import math
from base64 import b64decode
from collections import Counter
from random import Random

import datasketches
import pytest
from algebra.merging import anyhow, event, in_order, slate, stored
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream import algebra
from millstream.algebra.buckets import Buckets, merged, take_out
from millstream.algebra.histogram import LIMIT as MOST_BINS
from millstream.algebra.quantiles import bucket_of, join, middle_of

# How many different items


@pytest.mark.parametrize("items", [0, 1, 7, 8, 9, 100, 383, 384, 385, 386, 1000, 20_000])
def test_distinct_has_one_form(items: int) -> None:
    """Around every change of the sketch's own form: any order, tree and repetition, same bytes."""
    one = algebra.distinct()
    random = Random(items)
    values = list(range(items))
    assert one.gather is not None
    wanted = slate(one, one.gather(["k"] * items, values).get("k", one.zero()))
    assert slate(one, stored(one, one.read(json.loads(wanted)))) == wanted
    for _ in range(3):
        random.shuffle(values)
        cuts = sorted(random.randrange(items + 1) for _ in range(6))
        total = one.zero()
        for start, end in zip([0, *cuts], [*cuts, items], strict=True):
            again = values[start:end] + values[: random.randrange(20)]
            part = one.gather(["k"] * len(again), again).get("k", one.zero())
            if random.random() < 0.5:
                part = stored(one, part)
            total = one.merge(part, total) if random.random() < 0.5 else one.merge(total, part)
        assert slate(one, total) == wanted


@pytest.mark.parametrize("error", [0.005, 0.02, 0.1])
def test_distinct_is_within_its_error(error: float) -> None:
    """Over twenty sets of 10,000 the root of the mean squared error is at most 1.3 times what is
    stated, and the truth is between `low` and `high` nearly always."""
    one = algebra.distinct(error=error)
    assert one.gather is not None
    errors, inside = [], 0
    for trial in range(20):
        values = [f"{trial}-{n}" for n in range(10_000)]
        found = one.write(one.gather(["k"] * len(values), values)["k"])
        errors.append(found["distinct"] / 10_000 - 1)
        inside += found["low"] <= 10_000 <= found["high"]
    assert math.sqrt(sum(e * e for e in errors) / 20) <= 1.3 * error
    assert inside >= 17


def test_distinct_says_its_error_and_is_bounded() -> None:
    """1.6% for 4096 registers of a byte, in slate and algebra; the size does not grow."""
    one = algebra.distinct("user")
    assert one.gather is not None
    values = [{"user": n} for n in range(30_000)]
    partial = one.gather(["k"] * len(values), values)["k"]
    found = one.write(partial)
    assert found["error"] == one.error == "1.6% at one standard deviation"
    assert len(slate(one, partial)) < 5700
    small = one.write(one.lift(event({"user": "ann"})))
    assert (small["distinct"], small["low"], small["high"]) == (1, 1, 2)


def test_the_library_reads_what_is_stored() -> None:
    """The bytes are a sketch of Apache DataSketches, that other tools can take up."""
    one = algebra.distinct()
    assert one.gather is not None
    found = one.write(one.gather(["k"] * 5000, list(range(5000)))["k"])
    sketch = datasketches.hll_sketch.deserialize(b64decode(found["sketch"]))
    assert round(sketch.get_estimate()) == found["distinct"]
    assert sketch.lg_config_k == 12


# Quantiles


@pytest.mark.parametrize("error", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("shape", ["lognormal", "uniform", "both signs"])
def test_quantiles_are_within_their_error(error: float, shape: str) -> None:
    """Every quantile is within the relative error of the number at its rank, not only nearly
    always."""
    random = Random(shape)
    draw = {
        "lognormal": lambda: random.lognormvariate(3, 0.2),
        "uniform": lambda: random.randrange(1, 1000),
        "both signs": lambda: random.choice([-1, 1]) * random.uniform(50, 60),
    }[shape]
    values = [draw() for _ in range(5000)]
    at = [0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1]
    one = algebra.quantiles(at=at, error=error)
    assert one.gather is not None
    found = one.write(one.gather(["k"] * len(values), values)["k"])
    assert float(found["error"].split("%")[0]) <= 100 * error
    ranked = sorted(values)
    for share in at:
        true = ranked[max(1, math.ceil(share * len(values))) - 1]
        assert abs(found["quantiles"][str(share)] - true) <= error * abs(true)


@given(st.floats(1e-300, 1.7e308), st.integers(-3, 13))
def test_the_middle_of_a_bucket_is_near(number: float, bits: int) -> None:
    """Any number is within the relative error of the middle of its bucket, on both sides of zero,
    however many buckets were joined."""
    times = 1 + 2**-bits if bits >= 0 else 2.0 ** (2**-bits)
    error = (times - 1) / (times + 1) * (1 + 1e-12)
    for one in (number, -number):
        middle = middle_of(bucket_of(one, bits), bits)
        assert abs(middle - one) <= error * abs(one)
    assert join(bucket_of(-number, bits), 2) == bucket_of(-number, bits - 2)
    assert join(bucket_of(number, bits), 2) == bucket_of(number, bits - 2)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e300, 1e300))
def test_buckets_are_in_the_order_of_the_numbers(a: float, b: float) -> None:
    """A greater number is never in a lower bucket."""
    low, high = sorted((a, b))
    assert bucket_of(low, 6) <= bucket_of(high, 6)


def test_quantiles_of_far_numbers_are_bounded() -> None:
    """With numbers over all that floats hold, at most 2048 buckets are kept, the slate says its
    greater error, that error holds, and the order of merging does not show."""
    random = Random(5)
    values = [random.choice([-1, 1]) * 10 ** random.uniform(-300, 300) for _ in range(6000)]
    one = algebra.quantiles(at=[0.1, 0.9])
    assert one.gather is not None
    partial = one.gather(["k"] * len(values), values)["k"]
    found = one.write(partial)
    assert len(found["buckets"]) <= 2048
    assert found["bits"] < 6
    error = float(found["error"].split("%")[0]) / 100 * 1.06  # it is shown with two digits
    ranked = sorted(values)
    for share in (0.1, 0.9):
        true = ranked[math.ceil(share * len(values)) - 1]
        assert abs(found["quantiles"][str(share)] - true) <= error * abs(true)
    assert slate(one, anyhow(one, values, random)) == slate(one, partial)
    assert len(slate(one, partial)) < 50_000


@settings(deadline=None)
@given(st.lists(st.integers(-400, 400), max_size=60), st.randoms(use_true_random=False))
def test_joining_does_not_show_the_order(numbers: list[int], random: Random) -> None:
    """With few buckets allowed: the level and the counts are those of the whole, however it was
    put together; what is taken out again leaves the counts of the rest."""

    def put_together(some: list[int]) -> Buckets:
        parts = [Buckets(0, {number: 1}) for number in some] + [Buckets()]
        while len(parts) > 1:
            b = parts.pop(random.randrange(len(parts)))
            a = parts.pop(random.randrange(len(parts)))
            parts.append(merged(a, b, join, 8))
        return parts[0]

    whole = put_together(numbers)
    random.shuffle(numbers)
    assert put_together(numbers) == whole
    level = next(n for n in range(20) if len({join(number, n) for number in numbers}) <= 8)
    assert whole == Buckets(level, dict(Counter(join(number, level) for number in numbers)))
    left = take_out(whole, put_together(numbers[:20]), join)
    assert left.counts == Counter(join(number, level) for number in numbers[20:])


def test_a_histogram_of_far_numbers_is_bounded() -> None:
    """Past 1000 bins the width doubles until they fit; counts stay exact, the order unseen."""
    random = Random(6)
    values = [random.uniform(-1e4, 1e4) for _ in range(3000)]
    one = algebra.histogram(width=0.5)
    assert one.gather is not None
    partial = one.gather(["k"] * len(values), values)["k"]
    found = one.write(partial)
    assert len(found["histogram"]) <= MOST_BINS
    assert found["width"] in (16, 32)
    for low, high, n in found["histogram"]:
        assert high - low == found["width"]
        assert n == len([value for value in values if low <= value < high])
    assert slate(one, anyhow(one, values, random)) == slate(one, partial)


# The most frequent items


@pytest.mark.parametrize("seed", range(4))
def test_the_most_frequent_are_within_their_bound(seed: int) -> None:
    """Past what is kept, over any tree: no count too high, none too low by more than `short`, no
    item left out that came more often, `short` at most a share of 1 / (keep + 1), size bounded."""
    random = Random(seed)
    items = [f"i{int(random.paretovariate(0.7))}" for _ in range(4000)]
    one = algebra.top(5, keep=40)
    found = one.write(anyhow(one, items, random))
    true = Counter(items)
    kept = dict(found["top"] + found["rest"])
    assert len(kept) <= 40
    assert len(found["top"]) == 5
    assert found["count"] == len(items)
    assert 0 < found["short"] <= len(items) / 41
    assert found["error"] == f"each count is at most {found['short']} too low"
    for item, n in true.items():
        assert n - found["short"] <= kept.get(item, 0) <= n
    assert one.write(stored(one, one.read(found))) == found


def test_the_most_frequent_gathered_are_within_their_bound() -> None:
    """The same for many events at once, and for two orders of merging the same two."""
    random = Random(9)
    items = [f"i{int(random.paretovariate(0.5))}" for _ in range(4000)]
    one = algebra.top(3, keep=50)
    assert one.gather is not None
    halves = [one.gather(["k"] * 2000, items[:2000])["k"], in_order(one, items[2000:])]
    forward = slate(one, one.merge(stored(one, halves[0]), halves[1]))
    assert forward == slate(one, one.merge(stored(one, halves[1]), halves[0]))
    found = json.loads(forward)
    for item, n in found["top"]:
        assert n <= Counter(items)[item] <= n + found["short"]
    assert one.error is not None
    assert "at most 50 items" in one.error
