"""Exact sums: the result does not depend on the order of adding.

Every finite float is a whole number times a power of two, and so is a sum of ints and floats.
Python's ints hold it without rounding. An **exact** number is an int, or a pair `(m, e)` that
stands for `m * 2**e`, with `e` below zero. It is rounded only for display, once and correctly.

    >>> total = 0
    >>> for _ in range(10):
    ...     total = add(total, exact(0.1))
    >>> shown(total)
    1.0
    >>> sum([0.1] * 10)
    0.9999999999999999
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from millstream.algebra.field_picker import Number

Exact = int | tuple[int, int]

WHOLE_LIMIT = 2**128
"""Whole numbers below this are shown as ints, greater ones as the nearest float."""

_TEXT = re.compile(r"(-?\d+)(?:\*2\*\*(-?\d+))?")


def exact(number: int | float) -> Exact:
    """Converts a finite number without any rounding."""
    if type(number) is int:
        return number
    top, bottom = number.as_integer_ratio()  # the denominator of a float is a power of two
    return top if bottom == 1 else (top, 1 - bottom.bit_length())


def add(a: Exact, b: Exact) -> Exact:
    """Returns the sum, without any rounding."""
    if type(a) is int and type(b) is int:
        return a + b
    m, e = a if isinstance(a, tuple) else (a, 0)
    n, f = b if isinstance(b, tuple) else (b, 0)
    if e < f:
        return m + (n << (f - e)), e
    return (m << (e - f)) + n, f


def subtract(a: Exact, b: Exact) -> Exact:
    """Returns the difference, without any rounding."""
    return add(a, (-b[0], b[1]) if isinstance(b, tuple) else -b)


def square(a: Exact) -> Exact:
    """Returns the square, without any rounding."""
    return (a[0] * a[0], 2 * a[1]) if isinstance(a, tuple) else a * a


def ratio(a: Exact) -> tuple[int, int]:
    """Returns the number as a fraction of two ints."""
    return (a[0], 1 << -a[1]) if isinstance(a, tuple) else (a, 1)


def divided(top: int, bottom: int) -> float | None:
    """Returns the float nearest to a fraction. None if it is past the greatest float."""
    try:
        return top / bottom  # Python rounds the division of two ints correctly, of any size
    except OverflowError:
        return None


def _reduced(a: Exact) -> Exact:
    """Returns the canonical form of a number: an int if it is whole, otherwise with an odd `m`."""
    if isinstance(a, int):
        return a
    m, e = a
    if m == 0:
        return 0
    spare = min((m & -m).bit_length() - 1, -e)
    return m >> spare if spare == -e else (m >> spare, e + spare)


def shown(a: Exact) -> int | float | None:
    """Returns the number for readers: an int if it is whole, otherwise the nearest float."""
    a = _reduced(a)
    if isinstance(a, int) and -WHOLE_LIMIT < a < WHOLE_LIMIT:
        return a
    return divided(*ratio(a))


def rest(a: Exact) -> str | None:
    """Returns the exact number as text, to be stored next to the number shown. None if the number
    shown is exact.

    >>> rest(exact(0.5)), rest(add(exact(0.1), exact(0.2)))
    (None, '10808639105689191*2**-55')
    """
    a = _reduced(a)
    seen = shown(a)
    if seen is not None and _reduced(exact(seen)) == a:
        return None
    return str(a) if isinstance(a, int) else f"{a[0]}*2**{a[1]}"


def read(seen: Any, text: str | None) -> Exact:
    """Returns the number that was written as `shown` and `rest`."""
    if text is None:
        return exact(seen)
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"an exact number must be like '3*2**-1'; got {text!r}")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


def sums_by_key(
    keys: Sequence[str], numbers: list[Number], whole: bool, powers: int
) -> tuple[Iterable[str], list[int], list[list[Exact]]]:
    """Returns the keys, how many numbers each has, and their exact sums (with `powers=2` also those
    of their squares). Ints whose sums fit into a machine int are added by numpy; others, and
    floats, as Python ints, in units of a power of two that divides all of them.

    The keys are numbered as they first occur, and all sums are by that number, so that a key is
    hashed only once for each event.
    """
    import numpy as np

    if len(numbers) != len(keys):
        raise ValueError("there must be a value for each key")
    numbering: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    places = np.fromiter(map(numbering.__getitem__, keys), np.int64, len(keys))
    counts: list[int] = np.bincount(places, minlength=len(numbering)).tolist()
    units, e = _units(numbers, whole)
    if whole and _fit(units, powers):
        array = np.array(units, dtype=np.int64)
        sums = [np.zeros(len(numbering), np.int64) for _ in range(powers)]
        for power, total in enumerate(sums, 1):
            np.add.at(total, places, array**power)
        return numbering, counts, [list(total.tolist()) for total in sums]
    listed = places.tolist()
    exact_sums: list[list[Exact]] = []
    for power in range(1, powers + 1):
        totals = [0] * len(numbering)
        for place, unit in zip(listed, units, strict=True):
            totals[place] += unit if power == 1 else unit * unit
        exact_sums.append([(total, power * e) if e else total for total in totals])
    return numbering, counts, exact_sums


def _fit(units: list[int], powers: int) -> bool:
    """True if no sum of these powers can exceed a machine int."""
    greatest: int = max(map(abs, units), default=0)
    fits: bool = len(units) * greatest**powers < 2**63
    return fits


def _units(numbers: list[Number], whole: bool) -> tuple[list[int], int]:
    """Returns the numbers as ints in units of one power of two, and its exponent. This is exact for
    all floats."""
    if whole:
        return numbers, 0  # type: ignore[return-value]  # all are ints
    import numpy as np

    floats = np.array(numbers, dtype=np.float64)
    if any(type(number) is int and abs(number) > 2**53 for number in numbers):
        raise OverflowError("a float may not hold this int exactly: lift one by one")
    mantissas, exponents = np.frexp(floats)
    exponents -= 53  # a float has 53 bits
    exponents[mantissas == 0] = 0
    least = min(0, int(exponents.min()))
    whole_mantissas = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    shifts = (exponents - least).tolist()
    return [m << shift for m, shift in zip(whole_mantissas, shifts, strict=True)], least
