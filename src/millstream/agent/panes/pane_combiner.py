"""Adds a batch of records to a pane: map, lift and merge, each record whole or not at all.

If `map` or `combine` raises, the record is returned as failed and nothing of it is in the pane.
(`gather`, which some algebras have, is not called: it may load numpy, which an agent does without.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from millstream.errors import FunctionError
from millstream.model.algebra import Algebra
from millstream.model.event import Event
from millstream.model.place import FAILURES
from millstream.windows.job import Job

Partials = dict[str, Any]
Failed = list[tuple[int, BaseException]]
"""The index of each record that failed, and its error."""
Combine = Callable[[Partials, Sequence[Any]], Failed]


def combiner(job: Job) -> Combine:
    """Returns a function that adds records to the partials of a pane."""
    combine = job.combine
    if isinstance(combine, Algebra):
        return _merging(job, combine) if combine.counted is None else _counting(job, combine)
    return _keeping(job) if combine is None else _combining(job, combine)


def _pairs(job: Job, record: Any) -> list[tuple[str, Any]]:
    pairs = list(job.map(record))
    for key, _ in pairs:
        if type(key) is not str:
            raise FunctionError(
                f"job: map must yield pairs whose key is text; got {type(key).__name__} {key!r}"
            )
    return pairs


def _counting(job: Job, algebra: Algebra) -> Combine:
    """For an algebra that ignores values: only its keys are counted."""
    counted, merge = algebra.counted, algebra.merge
    assert counted is not None

    def take(partials: Partials, records: Sequence[Any]) -> Failed:
        failed: Failed = []
        keys: list[str] = []
        for index, record in enumerate(records):
            try:
                keys.extend([key for key, _ in _pairs(job, record)])
            except FAILURES as error:
                failed.append((index, error))
        for key, times in Counter(keys).items():
            known, fresh = partials.get(key), counted(times)
            partials[key] = fresh if known is None else merge(known, fresh)
        return failed

    return take


def _merging(job: Job, algebra: Algebra) -> Combine:
    """For any other algebra: its `lift` may fail, its `merge` does not."""
    lift, merge = algebra.lift, algebra.merge

    def take(partials: Partials, records: Sequence[Any]) -> Failed:
        failed: Failed = []
        for index, record in enumerate(records):
            try:
                pairs = _pairs(job, record)
                lifted = [(key, lift(Event("", 0, key, value))) for key, value in pairs]
            except FAILURES as error:
                failed.append((index, error))
                continue
            for key, value in lifted:
                known = partials.get(key)
                partials[key] = value if known is None else merge(known, value)
        return failed

    return take


def _combining(job: Job, merge: Callable[[Any, Any], Any]) -> Combine:
    """For a function of the user's, which may fail in the middle of a record."""

    def take(partials: Partials, records: Sequence[Any]) -> Failed:
        failed: Failed = []
        get = partials.get
        for index, record in enumerate(records):
            try:
                fresh: Partials = {}
                for key, value in _pairs(job, record):
                    known = fresh.get(key)
                    if known is None:
                        known = get(key)
                    fresh[key] = value if known is None else merge(known, value)
            except FAILURES as error:
                failed.append((index, error))
            else:
                partials.update(fresh)
        return failed

    return take


def _keeping(job: Job) -> Combine:
    """For a job without `combine`: all values are kept."""

    def take(partials: Partials, records: Sequence[Any]) -> Failed:
        failed: Failed = []
        for index, record in enumerate(records):
            try:
                pairs = _pairs(job, record)
            except FAILURES as error:
                failed.append((index, error))
                continue
            for key, value in pairs:
                partials.setdefault(key, []).append(value)
        return failed

    return take
