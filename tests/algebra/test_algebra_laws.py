"""The laws of `millstream.model.algebra`, for every algebra of the library."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

import pytest
from algebra.merging import anyhow, event, in_order, slate, stored
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream import algebra
from millstream.algebra import Algebra
from millstream.errors import InputError

NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 0.2, 0.3, 1e300, -1e300, 5e-324, 2.0**53]),
    st.floats(allow_nan=False, allow_infinity=False),
)
NEAR = st.one_of(st.integers(-1000, 1000), st.floats(-1000, 1000))
ITEMS = st.one_of(
    st.integers(-3, 3), st.sampled_from(["a", "b", "1", 'é"', ""]), st.none(), st.booleans(),
    st.sampled_from([1.0, [1], {"b": 1, "a": [None]}]),
)  # fmt: skip
RANKED = st.fixed_dictionaries({"item": ITEMS, "score": NUMBERS})

EXACT = {
    "count": (algebra.count(), ITEMS),
    "sum": (algebra.sum(), NUMBERS),
    "mean": (algebra.mean(), NUMBERS),
    "variance": (algebra.variance(), NUMBERS),
    "min": (algebra.min(), NUMBERS),
    "max": (algebra.max(), NUMBERS),
    "top by": (algebra.top(3, "item", "score"), RANKED),
    "top, all kept": (algebra.top(2), ITEMS),
    "distinct": (algebra.distinct(), ITEMS),
    "distinct, few registers": (algebra.distinct(error=0.2), st.integers(0, 400)),
    "quantiles": (algebra.quantiles(at=[0, 0.25, 0.5, 1]), NUMBERS),
    "histogram, bins": (algebra.histogram(bins=[-1, 0, 0.5, 2**64]), NUMBERS),
    "histogram, width": (algebra.histogram(width=0.1), NEAR),
}
"""Every algebra whose bytes do not depend on the order, and values for it."""


def names(*left_out: str) -> list[str]:
    return [name for name in EXACT if name not in left_out]


@st.composite
def cases(draw: st.DrawFn, only: list[str]) -> tuple[Algebra, list[Any], Random]:
    one, values = EXACT[draw(st.sampled_from(only))]
    return one, draw(st.lists(values, max_size=25)), draw(st.randoms(use_true_random=False))


@pytest.mark.parametrize("name", EXACT)
@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_the_order_and_the_tree_of_merging_do_not_show(name: str, data: st.DataObject) -> None:
    """Any order, any tree, slates stored on the way: the same bytes."""
    one, values, random = data.draw(cases([name]))
    assert slate(one, anyhow(one, values, random)) == slate(one, in_order(one, values))


@pytest.mark.parametrize(
    "equal", [[0.0, -0.0], [1, 1.0], [0.0, 0, -0.0], [2**60, 2.0**60]], ids=str
)
@pytest.mark.parametrize("name", ["min", "max", "sum", "mean", "variance", "top by", "quantiles"])
def test_which_of_equal_numbers_came_first_does_not_show(name: str, equal: list[Any]) -> None:
    """1 and 1.0, or zero with and without a sign: any order gives the same bytes."""
    one, _ = EXACT[name]
    seen = set()
    for order in permutations(equal):
        values = [{"item": "a", "score": n} for n in order] if name == "top by" else order
        seen.add(slate(one, in_order(one, values)))
        if one.gather is not None and 2**60 not in equal:
            seen.add(slate(one, one.gather(["k"] * len(values), values)["k"]))
    assert len(seen) == 1


@pytest.mark.parametrize("name", EXACT)
@settings(deadline=None, max_examples=examples(30))
@given(data=st.data())
def test_what_is_stored_is_what_it_was(name: str, data: st.DataObject) -> None:
    """A partial that was written and read writes the same bytes, and goes on in the same way."""
    one, values, _ = data.draw(cases([name]))
    assert slate(one, stored(one, in_order(one, values))) == slate(one, in_order(one, values))
    half = len(values) // 2
    on = stored(one, in_order(one, values[:half]))
    for value in values[half:]:
        on = one.merge(on, one.lift(event(value)))
    assert slate(one, on) == slate(one, in_order(one, values))


@pytest.mark.parametrize("name", [name for name, (one, _) in EXACT.items() if one.unmerge])
@settings(deadline=None, max_examples=examples(40))
@given(data=st.data())
def test_what_was_merged_can_be_taken_out(name: str, data: st.DataObject) -> None:
    """`unmerge(merge(a, b), b)` has the bytes of `a`, and leaves both of its arguments alone."""
    one, values, random = data.draw(cases([name]))
    assert one.unmerge is not None
    cut = random.randrange(len(values) + 1)
    a, b = values[:cut], values[cut:]
    both, taken = in_order(one, values), in_order(one, b)
    before = slate(one, both), slate(one, taken)
    assert slate(one, one.unmerge(both, taken)) == slate(one, in_order(one, a))
    assert (slate(one, both), slate(one, taken)) == before


def test_what_can_be_taken_out() -> None:
    """Sums and counts can; an extreme that is gone does not say what was next to it."""
    able = {one.name for one, _ in EXACT.values() if one.unmerge is not None}
    assert able == {"count", "sum", "mean", "variance", "quantiles", "histogram"}


@pytest.mark.parametrize("name", EXACT)
@settings(deadline=None, max_examples=examples(40))
@given(data=st.data())
def test_gathering_is_lifting_and_merging(name: str, data: st.DataObject) -> None:
    """Many events at once give, key by key, the bytes that one after the other gives."""
    one, values, random = data.draw(cases([name]))
    assert one.gather is not None
    keys = [random.choice("abc") for _ in values]
    try:
        gathered = one.gather(keys, values if one.needs_values else [])
    except OverflowError:  # the contract: they are then lifted one by one
        assert any(type(value) is int and abs(value) > 2**53 for value in values)
        return
    assert set(gathered) == set(keys)
    for key, partial in gathered.items():
        own = [value for value, its in zip(values, keys, strict=True) if its == key]
        assert slate(one, partial) == slate(one, in_order(one, own))


@pytest.mark.parametrize("name", EXACT)
@settings(deadline=None, max_examples=examples(30))
@given(data=st.data())
def test_merging_leaves_its_second_argument_alone(name: str, data: st.DataObject) -> None:
    """The second argument of `merge` can be used again, also after the result has changed."""
    one, values, _ = data.draw(cases([name]))
    second = in_order(one, values)
    before = slate(one, second)
    result = one.merge(one.zero(), second)
    for value in values[:3]:
        result = one.merge(result, one.lift(event(value)))
    assert slate(one, second) == before


@pytest.mark.parametrize("name", names("count", "top by", "top, all kept"))
@pytest.mark.parametrize("bad", [float("nan"), b"raw"])
def test_gathering_fails_where_lifting_does(name: str, bad: Any) -> None:
    """A value that makes a dead letter is not taken in with the others."""
    one, _ = EXACT[name]
    assert one.gather is not None
    with pytest.raises(InputError):
        one.lift(event(bad))
    with pytest.raises((InputError, TypeError, ValueError)):
        one.gather(["a", "a"], [1, bad])


def test_equal_arguments_are_the_same_algebra() -> None:
    """Two applications that say the same have the same algebra; another argument is another."""
    assert algebra.sum("a") == algebra.sum("a")
    assert algebra.sum("a") != algebra.sum("b")
    assert algebra.sum() != algebra.mean()
    assert algebra.quantiles(at=[0.5]) == algebra.quantiles(at=(0.5,))
    assert algebra.histogram(width=2).arguments == (("width", 2),)


def test_those_of_a_toml_file() -> None:
    """Every function of the library can be named there."""
    assert set(algebra.BUILT_IN) == set(algebra.__all__) - {"BUILT_IN", "Algebra"}
    assert {algebra.BUILT_IN[name] is getattr(algebra, name) for name in algebra.BUILT_IN} == {True}
