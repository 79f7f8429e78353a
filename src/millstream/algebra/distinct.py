"""How many different items: a HyperLogLog sketch of Apache DataSketches.

The sketch is the same whatever the order of its items, but the library's bytes are not: they hold
an estimate that follows the order of arrival, and small sketches list their items as they came. So
`write` puts the bytes into one form, as the library's published format allows: the list sorted, or
the estimate by order left out and marked so (the library then estimates from the registers alone).
Equal items give equal bytes, whatever the order or the tree of merging (tested), and the library
reads them as its own, in Python, Java and C++.

Two items are the same if their canonical JSON is: 1 and "1" are two, and so are 1 and 1.0.
"""

from __future__ import annotations

import math
import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from millstream.algebra.picking import Of, gathering_items, given, item_picker
from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra

LEAST_ERROR, MOST_ERROR = 0.002, 0.2

_SPREAD = 1.04
"""One standard deviation of HyperLogLog's error, times the root of the number of registers."""

# The library's format: the byte of the flags, that of the mode, and where each mode's content is.
_FLAGS, _MODE = 5, 7
_OUT_OF_ORDER = 0x10
_LIST, _SET, _REGISTERS = 0, 1, 2
_ITEMS_AT = {_LIST: 8, _SET: 12}
_ESTIMATE_BY_ORDER = slice(8, 16)


def distinct(of: Of = None, error: float = 0.02) -> Algebra:
    """How many different items there are, within a relative error.

    `error` is one standard deviation, from 0.002 to 0.2; the sketch has as many registers of a byte
    as that needs (0.02: 4096). `low` and `high` are two standard deviations away.
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
        sketch = _library().hll_sketch.deserialize(content)  # its estimate, not that by order
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
    """The same sketch's bytes, whatever the order that its items came in."""
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
    """The logarithm of how many registers an error needs."""
    if type(error) not in (int, float) or not LEAST_ERROR <= error <= MOST_ERROR:
        raise DefinitionError(
            f"distinct(error=) must be from {LEAST_ERROR} to {MOST_ERROR}; got {error!r}"
        )
    return math.ceil(2 * math.log2(_SPREAD / error))


def _result(union: Any) -> Any:
    return union.get_result(_library().tgt_hll_type.HLL_8)


def _library() -> Any:
    """Loaded when the first sketch is made: to define an application it is not needed."""
    import datasketches

    return datasketches
