"""Sums that are exact, so that the order of adding does not show.

Every finite float is a whole number times a power of two, so a sum of ints and floats is one too,
and Python's ints keep it without rounding. An **exact** number is an int, or a pair `(m, e)` that
stands for `m * 2**e`, `e` below zero. It is rounded only to be shown, once and correctly.

    >>> total = 0
    >>> for _ in range(10):
    ...     total = add(total, exact(0.1))
    >>> shown(total)
    1.0
    >>> sum([0.1] * 10)
    0.9999999999999999
"""

from __future__ import annotations

import re
from typing import Any

Exact = int | tuple[int, int]

WHOLE_LIMIT = 2**128
"""A whole number below it is shown as an int; past it as the nearest float."""

_TEXT = re.compile(r"(-?\d+)(?:\*2\*\*(-?\d+))?")


def exact(number: int | float) -> Exact:
    """A finite number without any rounding."""
    if type(number) is int:
        return number
    top, bottom = number.as_integer_ratio()  # the bottom of a float is a power of two
    return top if bottom == 1 else (top, 1 - bottom.bit_length())


def add(a: Exact, b: Exact) -> Exact:
    """The sum, without any rounding."""
    if type(a) is int and type(b) is int:
        return a + b
    m, e = a if isinstance(a, tuple) else (a, 0)
    n, f = b if isinstance(b, tuple) else (b, 0)
    if e < f:
        return m + (n << (f - e)), e
    return (m << (e - f)) + n, f


def subtract(a: Exact, b: Exact) -> Exact:
    """The difference, without any rounding."""
    return add(a, (-b[0], b[1]) if isinstance(b, tuple) else -b)


def square(a: Exact) -> Exact:
    """The square, without any rounding."""
    return (a[0] * a[0], 2 * a[1]) if isinstance(a, tuple) else a * a


def ratio(a: Exact) -> tuple[int, int]:
    """The number as a fraction of two ints."""
    return (a[0], 1 << -a[1]) if isinstance(a, tuple) else (a, 1)


def divided(top: int, bottom: int) -> float | None:
    """The float nearest to a fraction; None where it is past the greatest float."""
    try:
        return top / bottom  # Python rounds the division of two ints correctly, whatever their size
    except OverflowError:
        return None


def _reduced(a: Exact) -> Exact:
    """The one form of a number: whole numbers as ints, else an odd `m`."""
    if isinstance(a, int):
        return a
    m, e = a
    if m == 0:
        return 0
    spare = min((m & -m).bit_length() - 1, -e)
    return m >> spare if spare == -e else (m >> spare, e + spare)


def shown(a: Exact) -> int | float | None:
    """What readers see: an int if it is whole, else the nearest float."""
    a = _reduced(a)
    if isinstance(a, int) and -WHOLE_LIMIT < a < WHOLE_LIMIT:
        return a
    return divided(*ratio(a))


def rest(a: Exact) -> str | None:
    """What must be kept next to the number shown: all of it as text; None if what is shown is all.

    >>> rest(exact(0.5)), rest(add(exact(0.1), exact(0.2)))
    (None, '10808639105689191*2**-55')
    """
    a = _reduced(a)
    seen = shown(a)
    if seen is not None and _reduced(exact(seen)) == a:
        return None
    return str(a) if isinstance(a, int) else f"{a[0]}*2**{a[1]}"


def read(seen: Any, text: str | None) -> Exact:
    """The number that was written as `shown` and `rest`."""
    if text is None:
        return exact(seen)
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"an exact number must be like '3*2**-1'; got {text!r}")
    return int(found[1]) if found[2] is None else (int(found[1]), int(found[2]))
