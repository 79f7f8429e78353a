"""Answers with bounds: exact, sampled and in the worst case."""

from __future__ import annotations

from itertools import combinations
from math import sqrt
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from windows.told import Unit, a_job, data, inside, lost

import millstream as ms
from millstream.errors import DefinitionError, FunctionError
from millstream.messages.answers import BoundPanes
from millstream.windows.bounds.estimates import estimate
from millstream.windows.bounds.rare_keys import Rare
from millstream.windows.bounds.strata import Stratum
from millstream.windows.bounds.stratified_sample import TAILS, Sampling
from millstream.windows.bounds.tails import poisson_upper, two_sided
from millstream.windows.fidelity import Area
from millstream.windows.panes.pane_rank import rank

HALF = Area(0.5, drawn=True)


def drawn(node: str, panes: range, under: int, *, seed: int = 0) -> list[Unit]:
    """The panes of a node that have a rank under this one, in a block of ten."""
    return [(node, pane) for pane in panes if rank(seed, node, pane, 10) < under]


@pytest.mark.parametrize(
    ("confidence", "freedom", "known"),
    [
        (0.95, 1, 12.7062),
        (0.95, 2, 4.3027),
        (0.95, 5, 2.5706),
        (0.95, 30, 2.0423),
        (0.99, 10, 3.1693),
        (0.99, 120, 2.6174),
        (0.9, 3, 2.3534),
        (0.5, 4, 0.7407),
        (0.95, 1e6, 1.9600),
    ],
)
def test_quantiles_of_t(confidence: float, freedom: float, known: float) -> None:
    """The quantiles equal those of the printed tables."""
    assert two_sided(confidence, freedom) == pytest.approx(known, abs=6e-5)


def test_fewer_degrees_of_freedom_are_wider() -> None:
    """Also where they are not whole; less than one is taken as one."""
    found = [two_sided(0.95, freedom / 4) for freedom in range(4, 400)]
    assert found == sorted(found, reverse=True)
    assert two_sided(0.95, 0.2) == two_sided(0.95, 1)


def test_limits_of_a_poisson_mean() -> None:
    """The limits equal those of the printed tables, and 0 events give -log of the probability."""
    limits = [poisson_upper(seen, 0.025) for seen in (0, 1, 5, 10)]
    assert limits == pytest.approx([3.689, 5.572, 11.668, 18.390], abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "partials", "truth"),
    [
        ("count", (3, 4), 7),
        ("sum", (1.5, -2), -0.5),
        ("mean", ([6, 2], [4, 2]), 2.5),
        ("ratio", ([1, 4], [2, 2]), 0.5),
        ("histogram", ([1, 2], [0, 4]), 7),
    ],
)
def test_with_nothing_missing_it_is_exact(kind: str, partials: Any, truth: float) -> None:
    """low == high == value, with certainty, for each kind and whatever the job draws."""
    units = [("a", 0), ("a", 1)]
    for options in ({}, {"shed": "drawn"}, {"fidelity": HALF}):
        job = a_job(kind, panes=2, **options)
        told = {unit: data(9) for unit in units}
        found = estimate(job, ["a"], range(2), told, {"k": dict(zip(units, partials, strict=True))})
        for bound in (found.keys["k"], found.total):
            assert bound.value == bound.low == bound.high == pytest.approx(truth)
            assert (bound.method, bound.confidence) == ("exact", 1.0)
    if kind == "histogram":
        shown = [(one.bucket, one.value, one.high) for one in bound_buckets(found)]
        assert shown == [(0, 1, 1), (1, 6, 6)]
    assert found.unseen.high == (None if kind in ("mean", "ratio") else 0)


def bound_buckets(found: Any) -> list[dict[str, Any]]:
    return list(found.keys["k"].buckets)


@pytest.mark.parametrize(
    ("algebra", "values", "kind", "truth"),
    [
        (ms.algebra.count(), [1, 1, 1], "count", 3),
        (ms.algebra.sum(), [0.5, 2, 3], "sum", 5.5),
        (ms.algebra.mean(), [1, 2, 6], "mean", 3),
        (ms.algebra.histogram(width=1), [0.5, 2.5, 2.6], "histogram", 3),
        (ms.algebra.histogram(bins=[0, 2]), [-1, 1, 5], "histogram", 3),
    ],
)
def test_the_values_of_algebras_are_understood(
    algebra: Any, values: list[float], kind: str, truth: float
) -> None:
    """The kind is that of the algebra, and partials are read as they are in the messages."""
    job = a_job(None, panes=3, combine=algebra)
    merging = job.merging
    partials = {("a", at): merging.write(merging.lift("k", one)) for at, one in enumerate(values)}
    found = estimate(job, ["a"], range(3), dict.fromkeys(partials, data(1)), {"k": partials})
    assert job.kind == kind
    assert found.keys["k"].value == pytest.approx(truth)
    if kind == "histogram":
        everything = merging.write(merging.lift("k", values[0]))
        for one in values[1:]:
            both = merging.merge(merging.read(everything), merging.lift("k", one))
            everything = merging.write(both)
        shown = [[*one.bucket, one.value] for one in bound_buckets(found)]
        assert shown == everything["histogram"]


def test_bins_of_different_widths_come_together() -> None:
    """Panes with so many bins that the width doubled are compared with those where it did not."""
    job = a_job(None, panes=2, combine=ms.algebra.histogram(width=1))
    merging = job.merging
    wide, few = merging.lift("k", 0), merging.lift("k", 3)
    for number in range(1, 1_500):
        wide = merging.merge(wide, merging.lift("k", number))
    partials = {("a", 0): merging.write(wide), ("a", 1): merging.write(few)}
    told = {("a", 0): data(1_500), ("a", 1): data(1)}
    found = estimate(job, ["a"], range(2), told, {"k": partials})
    counts = {tuple(one.bucket): one.value for one in bound_buckets(found)}
    assert (counts[0, 2], counts[2, 4], sum(counts.values())) == (2, 3, 1_501)


def test_a_value_that_is_not_of_its_kind() -> None:
    """The error has the expected and the given value."""
    with pytest.raises(FunctionError, match=r"two numbers.* of a mean; got int 3"):
        estimate(a_job("mean", 1), ["a"], range(1), {("a", 0): data(1)}, {"k": {("a", 0): 3}})
    for most in (-1, (3, 2), "x", (1, 2, 3)):
        with pytest.raises(DefinitionError, match="job: most must be"):
            a_job(most=most)


def test_a_sample_by_hand() -> None:
    """Two nodes, five of ten panes each, records not told: the formula of the textbook."""
    job, values = a_job("sum", fidelity=HALF), dict[Unit, float]()
    for node, numbers in (("a", [1, 2, 3, 4, 5]), ("b", [10, 12, 14, 16, 18])):
        values |= zip(drawn(node, range(10), 5), numbers, strict=True)
    told = {unit: data(7) for unit in values}
    found = estimate(job, ["a", "b"], range(10), told, {"k": values}).total
    variances = [100 * 0.5 * 2.5 / 5, 100 * 0.5 * 10 / 5]
    freedom = sum(variances) ** 2 / sum(one**2 / 4 for one in variances) / TAILS
    half = two_sided(0.95, freedom) * sqrt(sum(variances))
    assert found.value == pytest.approx(2 * (15 + 70))
    assert (found.low, found.high) == pytest.approx((170 - half, 170 + half))
    assert (found.method, found.confidence) == ("sampled", 0.95)
    assert found.panes == BoundPanes(received=10, left_out=10, lost=0, unknown=0)
    in_time = estimate(job, ["a", "b"], range(10), told, {"k": values}, final=False).total
    assert (in_time.low, in_time.high) == (found.low, found.high)
    assert (in_time.confidence, in_time.on_time_confidence) == (None, 0.95)


def test_what_goes_with_the_records_is_known_from_them() -> None:
    """A total that is proportional to the records needs no interval once all records are counted;
    their number, told of panes that were left out, corrects the sample."""
    job = a_job("sum", fidelity=HALF)
    told, values = {}, dict[Unit, float]()
    for node in ("a", "b", "c"):
        for pane in range(10):
            records = 10 + 7 * pane + (pane * pane) % 5
            if (node, pane) in drawn(node, range(10), 5):
                told[node, pane], values[node, pane] = data(records), 0.3 * records
            else:
                told[node, pane] = lost(records, "drawn")
    total = 0.3 * sum(one.records + one.shed for one in told.values())
    found = estimate(job, ["a", "b", "c"], range(10), told, {"k": values}).total
    assert found.value == pytest.approx(total)
    assert (found.low, found.high) == pytest.approx((total, total), rel=1e-6)


def test_a_corrected_sample_by_hand() -> None:
    """The combined regression estimator of the textbook; its slope costs a degree of freedom and
    adds its own variance."""
    x = {("a", at): 10 + at * at for at in range(18)}
    y = {("a", at): 3.0 * of + (-1) ** at * (of % 7) for (_, at), of in x.items() if at % 2}
    part = Stratum(tuple(x), frozenset(y), tuple(set(x) - set(y)), x)
    found = Sampling([part]).total(y)
    mean_x, mean_y = sum(x[unit] for unit in y) / 9, sum(y.values()) / 9
    spread = sum((x[unit] - mean_x) ** 2 for unit in y)
    slope = sum((x[unit] - mean_x) * y[unit] for unit in y) / spread
    gap = sum(x.values()) - 18 * mean_x
    rest = sum((y[unit] - mean_y - slope * (x[unit] - mean_x)) ** 2 for unit in y) / 7
    assert found.value == pytest.approx(18 * mean_y + slope * gap)
    assert found.variance == pytest.approx(18**2 * 0.5 / 9 * rest + gap**2 * rest / spread)
    assert found.freedom == pytest.approx(7 / TAILS)


def test_what_was_shed_in_order_is_bounded_by_its_records() -> None:
    """A count is between the received records and those plus every missing record. A sum needs the
    most that a record adds. Nothing is known of a crashed node."""
    told = {("a", 0): data(5), ("a", 1): lost(8), ("b", 0): data(6), ("b", 1): data(6)}
    values = {"k": {("a", 0): 3, ("b", 0): 1, ("b", 1): 0}}
    count = estimate(a_job("count", 2), ["a", "b"], range(2), told, values)
    assert (count.keys["k"].low, count.keys["k"].high) == (4, 12)
    assert (count.keys["k"].method, count.keys["k"].confidence) == ("worst case", 1.0)
    assert (count.unseen.low, count.unseen.high) == (0, 8)
    plain = estimate(a_job("sum", 2), ["a", "b"], range(2), told, values).keys["k"]
    assert (plain.low, plain.high) == (4, None)
    either = a_job("sum", 2, most=(-2, 5))
    both = estimate(either, ["a", "b"], range(2), told, values).keys["k"]
    assert (both.low, both.high) == (4 - 16, 4 + 40)
    del told["a", 1]
    crashed = estimate(a_job("count", 2), ["a", "b"], range(2), told, values)
    assert (crashed.total.low, crashed.total.high) == (4, None)
    assert crashed.total.panes.unknown == 1


def test_the_mean_of_what_was_lost_is_within_the_most() -> None:
    """A mean moves towards the bound of a value by the part of the records that are missing."""
    told = {("a", 0): data(4), ("a", 1): lost(4)}
    values = {"k": {("a", 0): [8, 4]}}
    bound = estimate(a_job("mean", 2, most=10), ["a"], range(2), told, values).keys["k"]
    assert (bound.value, bound.low, bound.high) == (2, 1, 6)
    bound = estimate(a_job("mean", 2), ["a"], range(2), told, values).keys["k"]
    assert (bound.value, bound.low, bound.high) == (2, None, None)


def test_a_most_that_is_not_so_is_not_used() -> None:
    """A record that adds more than 1 to a count shows that nothing is known of the others."""
    told = {("a", 0): data(2), ("a", 1): lost(2)}
    bound = estimate(a_job("count", 2), ["a"], range(2), told, {"k": {("a", 0): 7}}).keys["k"]
    assert (bound.low, bound.high) == (7, None)


def test_late_records_are_missing_ones() -> None:
    """Records that were too late for their pane make an answer inexact by as many."""
    told = {("a", 0): data(5), ("a", 1): data(5, {"0": 2, "-4": 9})}
    values = {"k": {("a", 0): 5, ("a", 1): 5}}
    bound = estimate(a_job("count", 2), ["a"], range(2), told, values).total
    assert (bound.low, bound.high, bound.method) == (10, 12, "worst case")


def test_panes_beyond_the_sample_bound_it_but_do_not_move_it() -> None:
    """With shedding by rank, panes made before the threshold was lowered are not part of the
    estimate, but the answer is never below them."""
    job = a_job("count", shed="drawn")
    ranks = {pane: rank(0, "a", pane, 10) for pane in range(10)}
    made = {pane for pane, of in ranks.items() if of < 4 or of == 9}
    told = {("a", p): data(100) if p in made else lost(100, "shed") for p in range(10)}
    values = {("a", p): 100 if ranks[p] == 9 else 10 for p in made}
    found = estimate(job, ["a"], range(10), told, {"k": values}).total
    # All that came is more than the sample allows for: then nothing but what is certain is said.
    assert (found.low, found.high) == (140, 140 + 500)
    values = {("a", p): 60 if ranks[p] == 9 else 10 + p for p in made}
    found = estimate(job, ["a"], range(10), told, {"k": values}).total
    sample = [value for unit, value in values.items() if ranks[unit[1]] < 4]
    assert found.value == pytest.approx(10 * sum(sample) / 4)


def test_a_pane_that_did_not_fit_spoils_the_sample() -> None:
    """That the largest pane is missing is no accident: its block is bounded by the worst case."""
    job = a_job("count", shed="drawn")
    made = drawn("a", range(10), 5)
    told = {("a", pane): lost(10, "drawn") for pane in range(10)} | dict.fromkeys(made, data(10))
    told[made[0]] = lost(1_000, "memory")
    found = estimate(job, ["a"], range(10), told, {"k": dict.fromkeys(made[1:], 5)}).total
    assert (found.low, found.high, found.method) == (20, 20 + 1_050, "worst case")


def test_few_drawn_panes_are_wide() -> None:
    """A single pane of each of several nodes is compared with those of the others. A single pane
    overall cannot be compared, and is bounded by the worst case."""
    job = a_job("count", 4, fidelity=Area(0.25, drawn=True))
    nodes, panes = [f"n{at}" for at in range(6)], range(4)
    first = [(node, pane) for node in nodes for pane in panes if rank(0, node, pane, 4) == 0]
    told = {(node, pane): lost(50, "drawn") for node in nodes for pane in panes}
    told |= dict.fromkeys(first, data(50))
    values = {unit: 10 + at for at, unit in enumerate(first)}
    found = estimate(job, nodes, panes, told, {"k": values}).total
    assert found.method == "sampled"
    assert found.low < found.value == 4 * sum(values.values()) < found.high
    one = {unit: told[unit] for unit in told if unit[0] == "n0"}
    found = estimate(job, ["n0"], panes, one, {"k": {first[0]: 10}}).total
    assert (found.low, found.high, found.method) == (10, 160, "worst case")


SIZES = (5, 9, 1, 20, 2, 7)


@pytest.mark.parametrize("chance", [0.05, 0.2])
def test_an_unseen_key_is_within_its_bound(chance: float) -> None:
    """Tried on all samples of three of six panes: a key whose panes hold more than the bound is in
    none of the drawn ones with no more than this chance, whatever its panes are."""
    for size in range(1, 7):
        for key in combinations(range(6), size):
            missed = 0
            for sample in combinations(range(6), 3):
                rare = Rare([stratum(sample)], frozenset(), {})
                unseen = not set(key) & set(sample)
                missed += unseen and sum(SIZES[at] for at in key) > rare.unseen(chance)
            assert missed / 20 <= chance
    assert Rare([stratum((0, 1, 2))], frozenset(), {}).unseen(0.2) == 27  # of 29 that are missing


@pytest.mark.parametrize("chance", [0.05, 0.2])
def test_a_rare_key_is_within_its_bound(chance: float) -> None:
    """The same holds for a key that was drawn a few times: its other panes exceed the bound with no
    more than this probability."""
    for size in range(1, 7):
        for key in combinations(range(6), size):
            missed = 0
            for sample in combinations(range(6), 3):
                part = stratum(sample)
                values = {("a", at): float(SIZES[at]) for at in key if at in sample}
                found = Sampling([part]).total(values)
                beyond = Rare([part], frozenset(), {}).beyond(found, values, 1, chance)
                missed += sum(SIZES[at] for at in key if at not in sample) > beyond
            assert missed / 20 <= chance


def stratum(sample: tuple[int, ...]) -> Stratum:
    units = tuple(("a", at) for at in range(6))
    return Stratum(
        units=units,
        sample=frozenset(("a", at) for at in sample),
        missing=tuple(unit for unit in units if unit[1] not in sample),
        records={("a", at): size for at, size in enumerate(SIZES)},
    )


panes_told = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.sampled_from(["data", "shed", "cancelled", "memory", "absent", "nothing"]),
        st.floats(0, 1),
    ),
    min_size=12,
    max_size=12,
)


@given(panes_told, st.sampled_from(["order", "drawn"]))
@settings(max_examples=examples(200), deadline=None)
def test_what_is_certain_always_holds(panes: list[tuple[int, str, float]], shed: str) -> None:
    """For any loss and cause, the truth is inside the worst-case bound. So is the value, and the
    records that came never exceed the upper bound."""
    job = a_job("count", 6, shed=shed)
    told, values, truth = {}, dict[Unit, int](), 0
    for at, (records, why, part) in enumerate(panes):
        unit, count = ("ab"[at // 6], at % 6), round(part * records)
        truth += count
        if why == "data":
            told[unit], values[unit] = data(records), count
        elif why != "nothing":
            told[unit] = lost(0 if why == "absent" else records, why)
    found = estimate(job, ["a", "b"], range(6), told, {"k": values})
    for bound in (found.keys["k"], found.total):
        assert inside(bound, bound.value)
        assert bound.low >= sum(values.values())
        if bound.confidence == 1.0:
            assert inside(bound, truth)
    if shed == "order":
        assert found.total.confidence == 1.0
