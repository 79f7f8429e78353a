"""Counts by bucket, few enough for a slate, and independent of the order of merging.

A bucket is an int. Going up one **level** joins neighbouring buckets in pairs. When more than
`limit` buckets are not empty, all counts go up a level (Epicoco et al., *UDDSketch*, 2020). Merging
stops at the lowest level at which all counts fit, and a part never needs a higher level than the
whole. So the result does not depend on the order of merging. `take_out` never lowers the level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

Join = Callable[[int, int], int]
"""Maps a bucket to the bucket that contains it, this many levels up."""


@dataclass(slots=True)
class Buckets:
    """The counts of the buckets of a level. No count is zero."""

    level: int = 0
    counts: dict[int, int] = field(default_factory=dict)


def raise_to(buckets: Buckets, level: int, join: Join) -> Buckets:
    """Returns the same counts at a level that is not lower."""
    if level == buckets.level:
        return buckets
    counts: dict[int, int] = {}
    for bucket, n in buckets.counts.items():
        joined = join(bucket, level - buckets.level)
        counts[joined] = counts.get(joined, 0) + n
    return Buckets(level, counts)


def fitted(buckets: Buckets, join: Join, limit: int) -> Buckets:
    """Returns the same counts at the first level that has no more than `limit` buckets."""
    while len(buckets.counts) > limit:
        buckets = raise_to(buckets, buckets.level + 1, join)
    return buckets


def merged(a: Buckets, b: Buckets, join: Join, limit: int) -> Buckets:
    """Merges both counts. May change `a`."""
    if a.level != b.level:
        level = max(a.level, b.level)
        a, b = raise_to(a, level, join), raise_to(b, level, join)
    for bucket, n in b.counts.items():
        a.counts[bucket] = a.counts.get(bucket, 0) + n
    return fitted(a, join, limit)


def take_out(a: Buckets, b: Buckets, join: Join) -> Buckets:
    """Returns the counts of `a` without those of `b`. Changes neither."""
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
    """Counts the buckets of each key."""
    partials: dict[str, Buckets] = {}
    for (key, bucket), n in Counter(zip(keys, buckets, strict=True)).items():
        partial = partials.get(key)
        if partial is None:
            partial = partials[key] = Buckets()
        partial.counts[bucket] = n
    return {key: fitted(partial, join, limit) for key, partial in partials.items()}
