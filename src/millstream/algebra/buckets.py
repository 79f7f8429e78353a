"""Counts by bucket, few enough for a slate, whatever the order that they come in.

A bucket is an int; neighbours can be joined, again and again: each joining is one **level**, at
which `join` says where a bucket of level 0 has gone. When more than `limit` buckets are not empty,
all are joined at the next level (Epicoco et al., *UDDSketch*, 2020). The level is the least at
which all that was counted fits, since a part never needs a higher one than the whole: so the order
of merging does not show. Only `take_out` leaves the level where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

Join = Callable[[int, int], int]
"""Where a bucket has gone after so many more levels."""


@dataclass(slots=True)
class Buckets:
    """How many came into each bucket of a level; no count is zero."""

    level: int = 0
    counts: dict[int, int] = field(default_factory=dict)


def raise_to(buckets: Buckets, level: int, join: Join) -> Buckets:
    """The same counts at a level that is not lower."""
    if level == buckets.level:
        return buckets
    counts: dict[int, int] = {}
    for bucket, n in buckets.counts.items():
        joined = join(bucket, level - buckets.level)
        counts[joined] = counts.get(joined, 0) + n
    return Buckets(level, counts)


def fitted(buckets: Buckets, join: Join, limit: int) -> Buckets:
    """The same counts at the first level that has no more than `limit` buckets."""
    while len(buckets.counts) > limit:
        buckets = raise_to(buckets, buckets.level + 1, join)
    return buckets


def merged(a: Buckets, b: Buckets, join: Join, limit: int) -> Buckets:
    """Both counts; `a` may change."""
    if a.level != b.level:
        level = max(a.level, b.level)
        a, b = raise_to(a, level, join), raise_to(b, level, join)
    for bucket, n in b.counts.items():
        a.counts[bucket] = a.counts.get(bucket, 0) + n
    return fitted(a, join, limit)


def take_out(a: Buckets, b: Buckets, join: Join) -> Buckets:
    """What was counted in `a` without what was counted in `b`; neither changes."""
    level = max(a.level, b.level)
    counts = dict(raise_to(a, level, join).counts)
    for bucket, n in raise_to(b, level, join).counts.items():
        left = counts[bucket] - n
        if left:
            counts[bucket] = left
        else:
            del counts[bucket]
    return Buckets(level, counts)


def gathered(
    keys: Sequence[str], buckets: Iterable[int], join: Join, limit: int
) -> dict[str, Buckets]:
    """The counts of each key."""
    partials: dict[str, Buckets] = {}
    for (key, bucket), n in Counter(zip(keys, buckets, strict=True)).items():
        partial = partials.get(key)
        if partial is None:
            partial = partials[key] = Buckets()
        partial.counts[bucket] = n
    return {key: fitted(partial, join, limit) for key, partial in partials.items()}
