"""Packs many changes objects into one, so that restoring a shard needs few reads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from millstream.errors import PlaceDamaged
from millstream.places.place import Place, persistent, read, sealed
from millstream.stores.shared.changes_object import packed
from millstream.stores.shared.manifest import ChangesSegment, PackRef

AT_ONCE = 8
PATIENCE = 60.0


def write_pack(
    place: Place, segments: Sequence[ChangesSegment], patience: float = PATIENCE
) -> PackRef:
    """Put the content of consecutive segments into one object."""

    def content(segment: ChangesSegment) -> bytes:
        data = persistent(lambda: read(place, segment.name), patience)
        if data is None:
            raise PlaceDamaged(
                f"{place.address}/{segment.name}: is missing, and a commit names it; restore it "
                "from a copy or an earlier version of the bucket"
            )
        return data

    with ThreadPoolExecutor(AT_ONCE) as pool:
        whole = packed([*pool.map(content, segments)])
    name = f"packs/{segments[0].first:012d}-{segments[-1].last:012d}/{uuid4().hex[:12]}"
    data = sealed(name, whole)
    persistent(lambda: place.put(name, data), patience)
    return PackRef(name, len(data), [segment.name for segment in segments])
