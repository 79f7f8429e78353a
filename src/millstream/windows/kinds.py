"""The numbers in a combined value, as its kind says (`Job.kind`): what bounds are worked out of.

An algebra's values are read as the algebra writes them. A user's own `combine` gives a number; a
pair of numbers; or, of a histogram, counts: a dict by bucket or a list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import reduce
from typing import Any

from millstream.errors import FunctionError
from millstream.model.algebra import Algebra
from millstream.windows.job import Job
from millstream.windows.strata import Unit


def number_of(job: Job, partial: Any) -> float:
    """The number of a count or of a sum."""
    if isinstance(job.combine, Algebra):
        number: float = partial[job.combine.name]
        return number
    return _number(job, partial, "a number")


def pair_of(job: Job, partial: Any) -> tuple[float, float]:
    """What is divided, and by what, of a mean or a ratio."""
    if isinstance(job.combine, Algebra):
        return partial["sum"], partial["count"]
    if not isinstance(partial, list | tuple) or len(partial) != 2:
        raise _wrong(job, "two numbers, as in [sum, count]", partial)
    above, below = (_number(job, one, "two numbers, as in [sum, count]") for one in partial)
    return above, below


def buckets_of(
    job: Job, partials: Mapping[Unit, Any]
) -> tuple[list[Any], dict[Unit, dict[int, float]]]:
    """The buckets of a key, and for each pane the counts by the number of the bucket.

    Panes whose bins differ in width are brought to the bins that all of them have together.
    """
    if isinstance(job.combine, Algebra):
        return _binned(job, partials)
    if all(isinstance(one, Mapping) for one in partials.values()):
        labels = sorted({label for one in partials.values() for label in one})
        named = [(unit, list(one.items())) for unit, one in partials.items()]
    elif all(isinstance(one, list) for one in partials.values()):
        labels = list(range(max(map(len, partials.values()), default=0)))
        named = [(unit, list(enumerate(one))) for unit, one in partials.items()]
    else:
        raise _wrong(job, "counts by bucket, a dict or a list", next(iter(partials.values())))
    at = {label: number for number, label in enumerate(labels)}
    return labels, {
        unit: {at[label]: _number(job, count, "counts") for label, count in of}
        for unit, of in named
    }


def _binned(
    job: Job, partials: Mapping[Unit, Any]
) -> tuple[list[Any], dict[Unit, dict[int, float]]]:
    merging = job.merging
    if not partials:
        return [], {}
    together = merging.write(reduce(merging.merge, map(merging.read, partials.values())))
    labels = [[low, high] for low, high, _ in together["histogram"]]
    starts = [low for low, _ in labels if low is not None]
    open_below = len(labels) - len(starts)
    counts: dict[Unit, dict[int, float]] = {}
    for unit, partial in partials.items():
        of = counts.setdefault(unit, {})
        for low, _, count in partial["histogram"]:
            at = 0 if low is None else bisect_right(starts, low) - 1 + open_below
            if count:
                of[at] = of.get(at, 0) + count
    return labels, counts


def _number(job: Job, value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(job, what, value)
    return value


def _wrong(job: Job, what: str, came: Any) -> FunctionError:
    return FunctionError(
        f"job: combine must give {what}, if its bounds are those of a {job.kind}; "
        f"got {type(came).__name__} {came!r}"
    )
