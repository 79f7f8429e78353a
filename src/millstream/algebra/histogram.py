"""Counts numbers by bin: bins with given ends, or bins of one width.

A bin includes its lower end and not its upper one. With `bins`, numbers below the first or above
the last end have a bin too. With `width`, bins start at multiples of it (of its decimal value: 0.3
starts the fourth bin of width 0.1). Only bins that are not empty are kept, and past 1000 of them
the width doubles (`millstream.algebra.buckets`). The result does not depend on the order of
merging.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from millstream.algebra.buckets import Buckets, gathered, merged, take_out
from millstream.algebra.field_picker import (
    Number,
    Of,
    finite,
    gathering_numbers,
    given,
    number_picker,
    where_of,
)
from millstream.errors import DefinitionError, InputError
from millstream.model.algebra import Algebra

LIMIT = 1000
"""The maximum number of bins."""

FARTHEST = 2**50
"""The greatest distance of a number from zero, in widths: past it, floats cannot tell two bins
apart."""


def histogram(
    of: Of = None, bins: Sequence[Number] | None = None, width: Number | None = None
) -> Algebra:
    """Counts the numbers in each bin: `{"histogram": [[low, high, count], ...], "count": n}`.

    >>> algebra = histogram(bins=[0, 10])
    >>> algebra.write(algebra.zero())
    {'histogram': [[None, 0, 0], [0, 10, 0], [10, None, 0]], 'count': 0}
    """
    if (bins is None) == (width is None):
        raise DefinitionError("histogram() takes either bins=, a list of their ends, or width=")
    if bins is not None:
        return _of_bins(of, _ends(bins))
    return _of_width(of, _width(width))


def _of_bins(field: Of, ends: tuple[Number, ...]) -> Algebra:
    pick = number_picker("histogram", field)
    pick_all = gathering_numbers(field)
    low, high = (None, *ends), (*ends, None)

    def lift(event: Any) -> list[int]:
        counts = [0] * len(low)
        counts[bisect_right(ends, pick(event))] = 1
        return counts

    def write(counts: list[int]) -> dict[str, Any]:
        shown = [list(bin_) for bin_ in zip(low, high, counts, strict=True)]
        return {"histogram": shown, "count": sum(counts)}

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, list[int]]:
        places = [bisect_right(ends, number) for number in pick_all(values)[0]]
        partials: dict[str, list[int]] = {}
        for (key, place), n in Counter(zip(keys, places, strict=True)).items():
            if key not in partials:
                partials[key] = [0] * len(low)
            partials[key][place] = n
        return partials

    return Algebra(
        name="histogram",
        zero=lambda: [0] * len(low),
        lift=lift,
        merge=lambda a, b: [x + y for x, y in zip(a, b, strict=True)],
        unmerge=lambda a, b: [x - y for x, y in zip(a, b, strict=True)],
        write=write,
        read=lambda slate: [n for _, _, n in slate["histogram"]],
        gather=gather,
        arguments=given(of=field, bins=ends),
    )


@dataclass(frozen=True, slots=True)
class Width:
    """Bins of one width, identified by number: bin 0 starts at zero."""

    top: int
    bottom: int

    def start(self, place: int) -> Number:
        """Returns where a bin starts: a whole number, or the nearest float."""
        top = place * self.top
        return top // self.bottom if top % self.bottom == 0 else top / self.bottom

    def place(self, number: Number) -> int:
        """Returns the bin of a number, so that it agrees with the rounded `start` of each bin."""
        if type(number) is int:
            return number * self.bottom // self.top
        # The division is rounded, so the bin may be off by one.
        near = math.floor(number / (self.top / self.bottom))
        while number < self.start(near):
            near -= 1
        while number >= self.start(near + 1):
            near += 1
        return near


def _of_width(field: Of, width: Width) -> Algebra:
    pick = number_picker("histogram", field)
    pick_all = gathering_numbers(field)
    where = where_of("histogram", field)
    farthest = float(FARTHEST * Fraction(width.top, width.bottom))

    def lift(event: Any) -> Buckets:
        number = pick(event)
        if abs(number) >= farthest:
            raise InputError(
                f"{where}: must be within 2**50 widths of zero; got {number!r}: choose a greater "
                "width"
            )
        return Buckets(0, {width.place(number): 1})

    def write(buckets: Buckets) -> dict[str, Any]:
        level = buckets.level
        shown = [
            [width.start(place << level), width.start((place + 1) << level), n]
            for place, n in sorted(buckets.counts.items())
        ]
        return {
            "histogram": shown,
            "width": width.start(1 << level),
            "count": sum(buckets.counts.values()),
        }

    def read(slate: dict[str, Any]) -> Buckets:
        level = width.place(slate["width"]).bit_length() - 1
        counts = {width.place(low) >> level: n for low, _, n in slate["histogram"]}
        return Buckets(level, counts)

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Buckets]:
        numbers, _ = pick_all(values)
        if numbers and (min(numbers) <= -farthest or max(numbers) >= farthest):
            raise ValueError("a number is too far from zero")
        return gathered(keys, map(width.place, numbers), _join, LIMIT)

    return Algebra(
        name="histogram",
        zero=Buckets,
        lift=lift,
        merge=partial(merged, join=_join, limit=LIMIT),
        unmerge=partial(take_out, join=_join),
        write=write,
        read=read,
        gather=gather,
        arguments=given(of=field, width=width.start(1)),
        error=f"counts are exact; past {LIMIT} bins that are not empty the width doubles",
    )


def _join(place: int, levels: int) -> int:
    return place >> levels


def _ends(bins: Any) -> tuple[Number, ...]:
    if not isinstance(bins, list | tuple) or not 1 <= len(bins) < LIMIT:
        raise DefinitionError(
            f"histogram(bins=) must be a list of 1 to {LIMIT - 1} numbers; got {bins!r}"
        )
    ends = tuple(_number("bins", end) for end in bins)
    for before, after in pairwise(ends):
        if before >= after:
            raise DefinitionError(
                f"histogram(bins=) must be in ascending order; got {after!r} after {before!r}"
            )
    return ends


def _width(width: Any) -> Width:
    number = _number("width", width)
    if not 1e-100 < number < 1e100:
        raise DefinitionError(f"histogram(width=) must be from 1e-100 to 1e100; got {width!r}")
    return Width(*Fraction(str(number)).as_integer_ratio())


def _number(name: str, value: Any) -> Number:
    try:
        return finite(value, f"histogram({name}=)")
    except InputError as error:
        raise DefinitionError(str(error)) from None
