"""Reads the numbers in a combined value, according to its kind (`Job.kind`), for computing bounds.

An algebra's values are read in the form that the algebra writes. A user's own `combine` gives a
number, a pair of numbers or, for a histogram, counts: a dict by bucket or a list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from millstream.errors import FunctionError
from millstream.model.algebra import Algebra
from millstream.windows.bounds.strata import Unit

if TYPE_CHECKING:
    from millstream.windows.job import Job


def number_of(job: Job, partial: Any) -> float:
    """Returns the number of a count or a sum."""
    if isinstance(job.combine, Algebra):
        number: float = partial[job.combine.name]
        return number
    return _number(job, partial, "a number")


def pair_of(job: Job, partial: Any) -> tuple[float, float]:
    """Returns the numerator and the denominator of a mean or a ratio."""
    if isinstance(job.combine, Algebra):
        return partial["sum"], partial["count"]
    if not isinstance(partial, list | tuple) or len(partial) != 2:
        raise _wrong(job, "two numbers, as in [sum, count]", partial)
    above, below = (_number(job, number, "two numbers, as in [sum, count]") for number in partial)
    return above, below


def buckets_of(
    job: Job, partials: Mapping[Unit, Any]
) -> tuple[list[Any], dict[Unit, dict[int, float]]]:
    """Returns the buckets of a key, and for each pane the counts by bucket number.

    If panes have bins of different widths, all are converted to the bins of their merge.
    """
    if isinstance(job.combine, Algebra):
        return _binned(job, partials)
    if all(isinstance(partial, Mapping) for partial in partials.values()):
        labels = sorted({label for partial in partials.values() for label in partial})
        named = [(unit, list(partial.items())) for unit, partial in partials.items()]
    elif all(isinstance(partial, list) for partial in partials.values()):
        labels = list(range(max(map(len, partials.values()), default=0)))
        named = [(unit, list(enumerate(partial))) for unit, partial in partials.items()]
    else:
        raise _wrong(job, "counts by bucket, a dict or a list", next(iter(partials.values())))
    index = {label: number for number, label in enumerate(labels)}
    return labels, {
        unit: {index[label]: _number(job, count, "counts") for label, count in counts}
        for unit, counts in named
    }


def _binned(
    job: Job, partials: Mapping[Unit, Any]
) -> tuple[list[Any], dict[Unit, dict[int, float]]]:
    merging = job.merging
    if not partials:
        return [], {}
    whole = merging.write(reduce(merging.merge, map(merging.read, partials.values())))
    labels = [[low, high] for low, high, _ in whole["histogram"]]
    starts = [low for low, _ in labels if low is not None]
    open_below = len(labels) - len(starts)
    counts: dict[Unit, dict[int, float]] = {}
    for unit, partial in partials.items():
        by_bucket = counts.setdefault(unit, {})
        for low, _, count in partial["histogram"]:
            bucket = 0 if low is None else bisect_right(starts, low) - 1 + open_below
            if count:
                by_bucket[bucket] = by_bucket.get(bucket, 0) + count
    return labels, counts


def _number(job: Job, value: Any, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(job, expected, value)
    return value


def _wrong(job: Job, expected: str, value: Any) -> FunctionError:
    return FunctionError(
        f"job: combine must give {expected}, if its bounds are those of a {job.kind}; "
        f"got {type(value).__name__} {value!r}"
    )
