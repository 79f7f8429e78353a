"""Counts different items with a HyperLogLog sketch of Apache DataSketches.

The sketch does not depend on the order of its items, but the library's bytes do: they hold an
estimate that follows the order of arrival, and small sketches list their items as they came. So
`write` converts the bytes to one canonical form that the library's published format allows: the
list is sorted, or the order-dependent estimate is removed and marked as such (the library then
estimates from the registers alone). Equal items give equal bytes, for any order and any tree of
merging (tested). The library can read them in Python, Java and C++.

Two items are the same if their canonical JSON is the same: 1, 1.0 and "1" are three items.
"""

from __future__ import annotations

import math
import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from millstream.algebra.field_picker import Of, gathering_items, given, item_picker
from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra

LEAST_ERROR, MOST_ERROR = 0.002, 0.2

_SPREAD = 1.04
"""One standard deviation of HyperLogLog's error, times the root of the number of registers."""

# The library's format: positions of the flags, of the mode, and of each mode's content.
_FLAGS, _MODE = 5, 7
_OUT_OF_ORDER = 0x10
_LIST, _SET, _REGISTERS = 0, 1, 2
_ITEMS_AT = {_LIST: 8, _SET: 12}
_ESTIMATE_BY_ORDER = slice(8, 16)


def distinct(of: Of = None, error: float = 0.02) -> Algebra:
    """Counts the different items, within a relative error.

    `error` is one standard deviation, from 0.002 to 0.2. It determines how many registers of one
    byte the sketch has (0.02: 4096). `low` and `high` are two standard deviations away.
    """
    lg = _registers(error)
    stated = f"{100 * _SPREAD / math.sqrt(2**lg):.2g}% at one standard deviation"
    pick = item_picker("distinct", of)
    pick_all = gathering_items(of)

    def zero() -> Any:
        return _library().hll_union(lg)

    def lift(event: Any) -> Any:
        sketch = zero()
        sketch.update(pick(event))
        return sketch

    def merge(a: Any, b: Any) -> Any:
        a.update(_result(b))
        return a

    def write(partial: Any) -> dict[str, Any]:
        content = canonical(_result(partial).serialize_compact())
        # Read back, since only the canonical sketch's estimate is independent of the order.
        sketch = _library().hll_sketch.deserialize(content)
        return {
            "distinct": round(sketch.get_estimate()),
            "low": math.floor(sketch.get_lower_bound(2)),
            "high": math.ceil(sketch.get_upper_bound(2)),
            "error": stated,
            "sketch": b64encode(content).decode(),
        }

    def read(slate: dict[str, Any]) -> Any:
        sketch = zero()
        sketch.update(_library().hll_sketch.deserialize(b64decode(slate["sketch"])))
        return sketch

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
        partials: dict[str, Any] = {}
        for key, item in set(zip(keys, pick_all(values), strict=True)):
            sketch = partials.get(key)
            if sketch is None:
                sketch = partials[key] = zero()
            sketch.update(item)
        return partials

    return Algebra(
        name="distinct",
        zero=zero,
        lift=lift,
        merge=merge,
        write=write,
        read=read,
        gather=gather,
        arguments=given(of=of, error=error),
        error=stated,
    )


def canonical(content: bytes) -> bytes:
    """Returns the bytes of the same sketch in a form that does not depend on the order of its
    items."""
    mode = content[_MODE] & 3
    changed = bytearray(content)
    if mode == _REGISTERS:
        changed[_FLAGS] |= _OUT_OF_ORDER
        changed[_ESTIMATE_BY_ORDER] = bytes(8)
    else:
        start = _ITEMS_AT[mode]
        items = struct.Struct(f"<{(len(content) - start) // 4}I")
        changed[start:] = items.pack(*sorted(items.unpack_from(content, start)))
    return bytes(changed)


def _registers(error: Any) -> int:
    """Returns the binary logarithm of the number of registers that an error needs."""
    if type(error) not in (int, float) or not LEAST_ERROR <= error <= MOST_ERROR:
        raise DefinitionError(
            f"distinct(error=) must be from {LEAST_ERROR} to {MOST_ERROR}; got {error!r}"
        )
    return math.ceil(2 * math.log2(_SPREAD / error))


def _result(union: Any) -> Any:
    return union.get_result(_library().tgt_hll_type.HLL_8)


def _library() -> Any:
    """Loads the library when the first sketch is made: defining an application does not need it."""
    import datasketches

    return datasketches
