"""Count, sum, mean and variance.

All are exact (`millstream.algebra.exact`): the slate has the same bytes for any order of merging.
All can be unmerged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from millstream.algebra.exact import (
    Exact,
    add,
    divided,
    exact,
    ratio,
    read,
    rest,
    shown,
    square,
    subtract,
    sums_by_key,
)
from millstream.algebra.field_picker import Of, gathering_numbers, given, number_picker, plain_field
from millstream.model.algebra import Algebra

Mean = tuple[int, Exact]
Moments = tuple[int, Exact, Exact]


def count() -> Algebra:
    """The number of events: `{"count": 5}`.

    >>> algebra = count()
    >>> algebra.write(algebra.merge(2, 3))
    {'count': 5}
    """
    return Algebra(
        name="count",
        zero=int,
        lift=lambda _: 1,
        merge=lambda a, b: a + b,
        unmerge=lambda a, b: a - b,
        write=lambda n: {"count": n},
        read=lambda slate: slate["count"],
        gather=lambda keys, _: Counter(keys),
        needs_values=False,
        counted=int,
        whole="count",
    )


def sum_of(of: Of = None) -> Algebra:
    """The exact sum of a number: `{"sum": 7}`. If `sum` is rounded, `exact` has the exact sum.

    >>> algebra = sum_of("amount")
    >>> algebra.write(algebra.merge(algebra.read({"sum": 0.1}), algebra.read({"sum": 0.25})))
    {'sum': 0.35, 'exact': '12610078956637389*2**-55'}
    """
    pick = number_picker("sum", of)
    pick_all = gathering_numbers(of)

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Exact]:
        distinct_keys, _, (totals,) = sums_by_key(keys, *pick_all(values), powers=1)
        return dict(zip(distinct_keys, totals, strict=True))

    return Algebra(
        name="sum",
        zero=int,
        lift=lambda event: exact(pick(event)),
        merge=add,
        unmerge=subtract,
        write=lambda total: _written({}, sum=total),
        read=lambda slate: _read(slate, "sum"),
        gather=gather,
        number=plain_field(of),
        totalled=lambda _, total: total,
        whole="sum",
        arguments=given(of=of),
    )


def mean(of: Of = None) -> Algebra:
    """The mean of a number, correctly rounded: `{"mean": 2.5, "count": 2, "sum": 5}`."""
    pick = number_picker("mean", of)
    pick_all = gathering_numbers(of)

    def merge(a: Mean, b: Mean) -> Mean:
        return a[0] + b[0], add(a[1], b[1])

    def unmerge(a: Mean, b: Mean) -> Mean:
        return a[0] - b[0], subtract(a[1], b[1])

    def write(partial: Mean) -> dict[str, Any]:
        n, total = partial
        return _written({"mean": _mean(n, total), "count": n}, sum=total)

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Mean]:
        distinct_keys, counts, (totals,) = sums_by_key(keys, *pick_all(values), powers=1)
        return dict(zip(distinct_keys, zip(counts, totals, strict=True), strict=True))

    return Algebra(
        name="mean",
        zero=lambda: (0, 0),
        lift=lambda event: (1, exact(pick(event))),
        merge=merge,
        unmerge=unmerge,
        write=write,
        read=lambda slate: (slate["count"], _read(slate, "sum")),
        gather=gather,
        number=plain_field(of),
        totalled=lambda n, total: (n, total),
        arguments=given(of=of),
    )


def variance(of: Of = None) -> Algebra:
    """The sample variance and standard deviation of a number (with the divisor n - 1, as in SQL;
    null below two events), from the exact sums of the numbers and of their squares.

    >>> algebra = variance()
    >>> algebra.write((2, 4, 10))
    {'variance': 2.0, 'deviation': 1.4142135623730951, 'mean': 2.0, 'count': 2, 'sum': 4, \
'squares': 10}
    """
    pick = number_picker("variance", of)
    pick_all = gathering_numbers(of)

    def lift(event: Any) -> Moments:
        number = exact(pick(event))
        return 1, number, square(number)

    def merge(a: Moments, b: Moments) -> Moments:
        return a[0] + b[0], add(a[1], b[1]), add(a[2], b[2])

    def unmerge(a: Moments, b: Moments) -> Moments:
        return a[0] - b[0], subtract(a[1], b[1]), subtract(a[2], b[2])

    def write(partial: Moments) -> dict[str, Any]:
        n, total, squares = partial
        spread = _variance(n, total, squares)
        first = {
            "variance": spread,
            "deviation": None if spread is None else math.sqrt(spread),
            "mean": _mean(n, total),
            "count": n,
        }
        return _written(first, sum=total, squares=squares)

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Moments]:
        distinct_keys, counts, (totals, squares) = sums_by_key(keys, *pick_all(values), powers=2)
        return dict(zip(distinct_keys, zip(counts, totals, squares, strict=True), strict=True))

    return Algebra(
        name="variance",
        zero=lambda: (0, 0, 0),
        lift=lift,
        merge=merge,
        unmerge=unmerge,
        write=write,
        read=lambda slate: (slate["count"], _read(slate, "sum"), _read(slate, "squares")),
        gather=gather,
        arguments=given(of=of),
    )


def _written(slate: dict[str, Any], **numbers: Exact) -> dict[str, Any]:
    """Adds the numbers to a slate. If a number is rounded, `exact` (or `exact_squares`) has the
    exact number."""
    for name, number in numbers.items():
        slate[name] = shown(number)
        text = rest(number)
        if text is not None:
            slate[_exact_name(name)] = text
    return slate


def _read(slate: dict[str, Any], name: str) -> Exact:
    return read(slate[name], slate.get(_exact_name(name)))


def _exact_name(name: str) -> str:
    return "exact" if name == "sum" else f"exact_{name}"


def _mean(n: int, total: Exact) -> float | None:
    if n == 0:
        return None
    top, bottom = ratio(total)
    return divided(top, bottom * n)


def _variance(n: int, total: Exact, squares: Exact) -> float | None:
    """Computes (squares - total**2 / n) / (n - 1), rounded once."""
    if n < 2:
        return None
    top, bottom = ratio(total)
    over, under = ratio(squares)
    return divided(n * over * bottom**2 - top**2 * under, n * (n - 1) * under * bottom**2)
