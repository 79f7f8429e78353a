"""Bases: all rows of a shard as of the end of a batch, as objects of the place.

A base is written in parts, so that neither its writer nor its readers hold a whole shard in memory.
Each base has a new name, so an unfinished base is harmless garbage.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from uuid import uuid4

import msgspec

from millstream.errors import PlaceDamaged
from millstream.places.place import Place, persistent, read, sealed
from millstream.stores.contract import View
from millstream.stores.shared.manifest import BaseRef, Lineage, part_names

PART_BYTES = 16 << 20
"""The approximate bytes of rows in a part."""
CHUNK = 1_000
AHEAD = 3
"""The number of parts that are fetched ahead."""


class BasePart(msgspec.Struct, frozen=True, array_like=True):
    """Rows in key order."""

    keys: list[bytes]
    values: list[bytes]


_parts = msgspec.msgpack.Decoder(BasePart)


def write_base(
    place: Place, shard: int, batch: int, lineage: Lineage, view: View, patience: float
) -> BaseRef:
    """Write the rows of a view, which is as of the end of `batch`, as a base."""
    prefix = f"bases/{shard:04d}/{batch:012d}-{uuid4().hex[:12]}"
    size = number = 0
    for part in _divided(view):
        name = f"{prefix}/{number:02d}"
        data = sealed(name, msgspec.msgpack.encode(part))
        persistent(lambda name=name, data=data: place.put(name, data), patience)  # type: ignore[misc]
        size, number = size + len(data), number + 1
    return BaseRef(prefix, shard, batch, number, size, lineage)


def read_base(place: Place, base: BaseRef, patience: float) -> Iterator[tuple[bytes, bytes]]:
    """The rows of a base, in key order."""

    def fetched(name: str) -> bytes | None:
        return persistent(lambda: read(place, name), patience)

    names = part_names(base)
    with ThreadPoolExecutor(AHEAD) as pool:
        coming = [pool.submit(fetched, name) for name in names[:AHEAD]]
        for number, name in enumerate(names):
            data = coming[number].result()
            if number + AHEAD < len(names):
                coming.append(pool.submit(fetched, names[number + AHEAD]))
            if data is None:
                raise PlaceDamaged(
                    f"{place.address}/{name}: is missing, and it is a part of the base of shard "
                    f"{base.shard}; restore it from a copy or an earlier version of the bucket"
                )
            part = _parts.decode(data)
            yield from zip(part.keys, part.values, strict=True)
            coming[number].cancel()
            coming[number] = coming[-1]  # releases the memory of this part


def _divided(view: View) -> Iterator[BasePart]:
    """Divides a view's rows into parts; at least one, so that an empty shard has a base too."""
    rows = view.scan(b"")
    keys: list[bytes] = []
    values: list[bytes] = []
    size, any_yet = 0, False
    while chunk := list(islice(rows, CHUNK)):
        for key, value in chunk:
            keys.append(key)
            values.append(value)
            size += len(key) + len(value)
        if size >= PART_BYTES:
            yield BasePart(keys, values)
            keys, values, size, any_yet = [], [], 0, True
    if keys or not any_yet:
        yield BasePart(keys, values)
