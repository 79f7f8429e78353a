"""Errors about an event or an argument say where, what is expected and what was given."""

from __future__ import annotations

from typing import Any

import pytest
from algebra.merging import event

from millstream import algebra
from millstream.algebra import Algebra
from millstream.errors import DefinitionError, InputError


@pytest.mark.parametrize(
    ("one", "value", "message"),
    [
        (algebra.sum("amount"), {"price": 1}, r"sum\('amount'\): the value has no field 'amount'"),
        (algebra.sum("a.b"), {"a": 1}, r"sum\('a.b'\): the value has no field 'a.b'"),
        (algebra.sum("amount"), "text", r"the value has no field 'amount'"),
        (algebra.mean("n"), {"n": "7"}, r"mean\('n'\): must be a number; got str '7'"),
        (algebra.max("n"), {"n": True}, r"max\('n'\): must be a number; got bool True"),
        (algebra.min(), None, r"min\(\): must be a number; got NoneType None"),
        (algebra.variance(), float("nan"), r"variance\(\): must be a finite number; got nan"),
        (algebra.sum(), float("-inf"), r"sum\(\): must be a finite number; got -inf"),
        (algebra.sum(), 2**1024, r"sum\(\): an int must be below 2\*\*1024; got 1025 bits"),
        (algebra.distinct(), b"raw", r"distinct\(\): must be what JSON can carry; got bytes"),
        (algebra.top(3), [float("inf")], r"top\(\): a value must be what JSON can carry"),
        (algebra.top(3, by="n"), {"n": []}, r"top\('n'\): must be a number; got list \[\]"),
        (algebra.histogram(width=1e-9), 1e9, r"histogram\(\): must be within 2\*\*50 widths"),
        (algebra.quantiles("ms"), {"ms": {}}, r"quantiles\('ms'\): must be a number; got dict"),
    ],
    ids=lambda given: given.words if isinstance(given, Algebra) else "",
)
def test_an_event_that_cannot_be_lifted(one: Algebra, value: Any, message: str) -> None:
    """It raises InputError, so the event becomes a dead letter, and the message says why."""
    with pytest.raises(InputError, match=message):
        one.lift(event(value))


def test_a_function_that_raises_is_named() -> None:
    """The error has the exception. The function's results are checked as fields are."""

    def price(value: Any) -> Any:
        return value["price"] / value["count"]

    one = algebra.sum(price)
    assert one.write(one.lift(event({"price": 3, "count": 2}))) == {"sum": 1.5}
    with pytest.raises(InputError, match=r"sum\(price\): its function raised ZeroDivisionError"):
        one.lift(event({"price": 3, "count": 0}))


def test_where_an_algebra_looks() -> None:
    """At the value, a field, a field in a field, or what a function says."""
    assert algebra.sum().lift(event(3)) == 3
    assert algebra.sum("a").lift(event({"a": 3})) == 3
    assert algebra.sum("a.b").lift(event({"a": {"b": 3}})) == 3
    for of, values in [(None, [1, 2]), ("a", [{"a": 1}, {"a": 2}]), (len, ["x", "yz"])]:
        gather = algebra.sum(of).gather
        assert gather is not None
        assert gather(["k", "k"], values) == {"k": 3}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: algebra.sum(3), r"sum\(of=\) must be a field, a dotted path or a function"),
        (lambda: algebra.sum(""), r"sum\(of=\) must be a field"),
        (lambda: algebra.top(0), r"top\(k=\) must be a whole number up to 10000; got 0"),
        (lambda: algebra.top(3, keep=2), r"top\(keep=2\) must be at least k, which is 3"),
        (lambda: algebra.top(3, by="n", keep=9), r"top\(keep=\) is for the most frequent items"),
        (lambda: algebra.distinct(error=0), r"distinct\(error=\) must be from 0.002 to 0.2; got 0"),
        (lambda: algebra.quantiles(at=[]), r"quantiles\(at=\) must have a share"),
        (
            lambda: algebra.quantiles(at=[50]),
            r"quantiles\(at=\) must be shares from 0 to 1; got 50",
        ),
        (lambda: algebra.quantiles(error=1), r"quantiles\(error=\) must be from 0.001 to 0.3"),
        (lambda: algebra.histogram(), r"histogram\(\) takes either bins="),
        (lambda: algebra.histogram(bins=[1], width=1), r"histogram\(\) takes either bins="),
        (
            lambda: algebra.histogram(bins=[1, 1]),
            r"histogram\(bins=\) must be in ascending order; got 1 after 1",
        ),
        (lambda: algebra.histogram(bins=[]), r"histogram\(bins=\) must be a list of 1 to 999"),
        (lambda: algebra.histogram(bins=["a"]), r"histogram\(bins=\): must be a number; got str"),
        (lambda: algebra.histogram(width=0), r"histogram\(width=\) must be from 1e-100 to 1e100"),
    ],
)
def test_a_wrong_argument(make: Any, message: str) -> None:
    """The argument is refused when the application is built."""
    with pytest.raises(DefinitionError, match=message):
        make()
