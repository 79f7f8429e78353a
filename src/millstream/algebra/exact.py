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

import re
from typing import Any

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
