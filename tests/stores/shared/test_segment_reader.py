"""A part of a large changes object is never mistaken for another, whatever happened to its head."""

from __future__ import annotations

import msgspec
import pytest

from millstream.errors import PlaceDamaged
from millstream.places.memory_place import MemoryPlace
from millstream.places.place import sealed
from millstream.stores.shared import segment_reader
from millstream.stores.shared.changes_object import ObjectHead, encode_changes, section_bounds
from millstream.stores.shared.manifest import ChangesSegment
from millstream.stores.shared.segment_reader import SegmentReader

NAME = "changes/000000000007/1-0-a"
SHARDS = {3: {"count": {b"Sa": b"1"}}, 5: {"count": {b"Sb": b"2"}}}


def segment(*shards: int) -> ChangesSegment:
    return ChangesSegment(NAME, 7, 7, 1, list(shards))


def rows(place: MemoryPlace, shard: int, *shards: int) -> list[dict[bytes, bytes | None]]:
    reader = SegmentReader(place, 0.0)
    return [frame.changes["count"] for frame in reader.frames(shard, [segment(*shards)])]


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """An object that is read in parts."""
    monkeypatch.setattr(segment_reader, "WHOLE_BYTES", 0)
    return sealed(NAME, encode_changes(7, NAME, SHARDS))


def test_a_shard_is_read_alone(data: bytes) -> None:
    """Each has its own rows."""
    place = MemoryPlace()
    place.put(NAME, data)
    assert rows(place, 3, 3, 5) == [{b"Sa": b"1"}]
    assert rows(place, 5, 3, 5) == [{b"Sb": b"2"}]


def test_a_damaged_head_is_found(data: bytes) -> None:
    """Any changed bit of the head is an error: no shard gets the rows of another, or none."""
    bounds = section_bounds(data)
    assert bounds is not None
    first = min(start for start, _ in bounds.values())
    for byte in range(4, first):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[byte] ^= 1 << bit
            place = MemoryPlace()
            place.put(NAME, bytes(damaged))
            for shard in SHARDS:
                with pytest.raises(PlaceDamaged):
                    rows(place, shard, 3, 5)


def test_a_shard_that_a_commit_names_must_be_there(data: bytes) -> None:
    """An object without it is not the committed one."""
    place = MemoryPlace()
    place.put(NAME, data)
    with pytest.raises(PlaceDamaged, match="shard 4"):
        rows(place, 4, 3, 4, 5)


def test_objects_of_before_have_no_checksum_of_the_head() -> None:
    """Such objects are read as before."""
    head = msgspec.msgpack.encode([{3: (0, 10)}])
    assert section_bounds(len(head).to_bytes(4, "little") + head) == {
        3: (4 + len(head), 4 + len(head) + 10)
    }
    assert ObjectHead({}).check is None
