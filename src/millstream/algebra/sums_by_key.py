"""Computes the exact sums of many numbers by key at once.

Ints whose sums fit into a machine int are added by numpy. Others, and floats, are added as Python
ints, in units of a power of two that divides all of them: nothing is rounded.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence

from millstream.algebra.exact import Exact
from millstream.algebra.field_picker import Number


def sums_by_key(
    keys: Sequence[str], numbers: list[Number], whole: bool, powers: int
) -> tuple[Iterable[str], list[int], list[list[Exact]]]:
    """Returns the keys, how many numbers each has, and their exact sums (with `powers=2` also those
    of their squares).

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
