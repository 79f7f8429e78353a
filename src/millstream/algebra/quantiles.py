"""Quantiles within a relative error: counts by buckets of floats that share their first bits.

The bits of a positive float, read as an int, grow with it. The first bits are the exponent and the
start of the mantissa. So dropping the last bits leaves a bucket whose ends are close: with b bits
of the mantissa kept, any value in it is within `1 / (2**(b+1) + 1)` of its middle. The counts are
ints and nothing is rounded, so the result does not depend on the order of merging, and the same
floats give the same bytes on every machine. Only buckets that are not empty are kept, at most 2048
for an error of 0.01. Past that, neighbours are joined, which roughly doubles the error
(`millstream.algebra.buckets`). The slate then states the greater error.

A value nearer to zero than 1e-280 may count as zero.
"""

from __future__ import annotations

import math
import struct
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any

from millstream.algebra.buckets import Buckets, gathered, merged, raise_to, take_out
from millstream.algebra.field_picker import Number, Of, gathering_numbers, given, number_picker
from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra

OCTAVES = 32
"""A key's numbers may span this many doublings (a factor of four thousand million) at the requested
error. The limit of buckets is this times the buckets of one doubling."""

LEAST_ERROR, MOST_ERROR = 0.001, 0.3
MANTISSA = 52

_float, _bits = struct.Struct("<d"), struct.Struct("<q")
_GREATEST: int = _bits.unpack(_float.pack(sys.float_info.max))[0]


def quantiles(
    of: Of = None, at: Sequence[float] = (0.5, 0.9, 0.99), error: float = 0.01
) -> Algebra:
    """Computes quantiles: for each share in `at`, the value that this share of all numbers does not
    exceed, within a relative error.

    >>> algebra = quantiles("ms", at=[0.5])
    >>> algebra.write(algebra.zero())["quantiles"]
    {'0.5': None}
    """
    shares = _shares(at)
    kept = _kept(error)
    limit = OCTAVES << kept
    pick = number_picker("quantiles", of)
    pick_all = gathering_numbers(of)

    def write(buckets: Buckets) -> dict[str, Any]:
        counts = sorted(buckets.counts.items())
        bits = kept - buckets.level
        return {
            "quantiles": _values_at(counts, shares, bits),
            "count": sum(buckets.counts.values()),
            "error": _stated(bits),
            "bits": bits,
            "buckets": [list(pair) for pair in counts],
        }

    def read(slate: dict[str, Any]) -> Buckets:
        buckets = Buckets(kept - slate["bits"], dict(slate["buckets"]))
        return buckets if buckets.level >= 0 else raise_to(buckets, 0, join)

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Buckets]:
        return gathered(keys, _buckets(pick_all(values)[0], kept), join, limit)

    return Algebra(
        name="quantiles",
        zero=Buckets,
        lift=lambda event: Buckets(0, {bucket_of(pick(event), kept): 1}),
        merge=partial(merged, join=join, limit=limit),
        unmerge=partial(take_out, join=join),
        write=write,
        read=read,
        gather=gather,
        arguments=given(of=of, at=tuple(shares), error=error),
        error=f"{_stated(kept)}; more where a key's values need over {limit} buckets (its slate "
        "says how much)",
    )


def bucket_of(number: Number, bits: int) -> int:
    """Returns the bucket of a number if `bits` bits of the mantissa are kept. Buckets below zero
    are mirrored."""
    as_int: int = _bits.unpack(_float.pack(abs(number)))[0]
    bucket = as_int >> (MANTISSA - bits)
    return bucket if number > 0 else -bucket


def join(bucket: int, levels: int) -> int:
    """Joins buckets in pairs, mirrored at zero."""
    return bucket >> levels if bucket > 0 else -(-bucket >> levels)


def middle_of(bucket: int, bits: int) -> float:
    """Returns the value with the same relative distance to both ends of a bucket."""
    if bucket == 0:
        return 0.0
    if bucket < 0:
        return -middle_of(-bucket, bits)
    low, high = _start(bucket, bits), _start(bucket + 1, bits)
    times = high / low  # their sum or their product might exceed the range of floats
    return low * (2 * times / (1 + times))


def _start(bucket: int, bits: int) -> float:
    # The last bucket ends at the greatest float.
    as_int = min(bucket << (MANTISSA - bits), _GREATEST)
    start: float = _float.unpack(_bits.pack(as_int))[0]
    return start


def _buckets(numbers: list[Number], bits: int) -> Iterable[int]:
    import numpy as np

    floats = np.array(numbers, dtype=np.float64)
    buckets = np.abs(floats).view(np.int64) >> (MANTISSA - bits)
    listed: list[int] = np.where(floats > 0, buckets, -buckets).tolist()
    return listed


def _values_at(
    counts: list[tuple[int, int]], shares: dict[str, Fraction], bits: int
) -> dict[str, float | None]:
    """Returns the quantile of each share: the value at its rank, where the first value has rank
    1."""
    if not counts:
        return dict.fromkeys(shares)
    up_to = list(accumulate(n for _, n in counts))
    ranks = {name: max(1, math.ceil(share * up_to[-1])) for name, share in shares.items()}
    return {
        name: middle_of(counts[bisect_left(up_to, rank)][0], bits) for name, rank in ranks.items()
    }


def _stated(bits: int) -> str:
    """Describes the relative error. If `bits` is below 0, a bucket spans 2 ** -bits octaves."""
    times = 1 + 2**-bits if bits >= 0 else 2.0 ** (2**-bits)
    return f"{100 * (times - 1) / (times + 1):.2g}% of the value"


def _shares(at: Any) -> dict[str, Fraction]:
    """Returns the shares by their decimal text: 0.9 is nine tenths, not the nearest float."""
    listed = list(at) if isinstance(at, list | tuple) else [at]
    for share in listed:
        if type(share) not in (int, float) or not 0 <= share <= 1:
            raise DefinitionError(f"quantiles(at=) must be shares from 0 to 1; got {share!r}")
    if not listed:
        raise DefinitionError("quantiles(at=) must have a share, like 0.5")
    return {str(share): Fraction(str(share)) for share in listed}


def _kept(error: Any) -> int:
    """Returns how many bits of the mantissa an error needs."""
    if type(error) not in (int, float) or not LEAST_ERROR <= error <= MOST_ERROR:
        raise DefinitionError(
            f"quantiles(error=) must be from {LEAST_ERROR} to {MOST_ERROR}; got {error!r}"
        )
    return next(bits for bits in range(MANTISSA) if 1 / (2 ** (bits + 1) + 1) <= error)
