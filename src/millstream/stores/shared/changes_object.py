"""An object of the place with the rows that one task of a batch changed; and packs of such objects.

DESIGN
------
`head length (u32) | head | frames`. The head has the position of each shard's frames, so that a
reader that needs some shards of a large object reads only their bytes. A frame has the changes of
one commit in one shard, `length (u32) | crc32 (u32) | body`. Head and frames have checksums of
their own, since they are read without the rest of their object, and frames are copied from object
to object.

A pack is an object of the same form with the frames of many batches, by shard and then in the order
in which they must be applied, so that restoring a shard needs few reads. Packing copies frames
without parsing them.

A frame names the object that it was first written to. That name distinguishes the attempts of a
batch (see `copies`), and is kept when the frame is packed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4
from zlib import crc32

import msgspec

from millstream.errors import PlaceDamaged
from millstream.places.place import Place, persistent, read, sealed
from millstream.stores.contract import Changes
from millstream.stores.shared.manifest import ChangesSegment, PackRef

_LENGTH = struct.Struct("<I")
_FRAME = struct.Struct("<II")
AT_ONCE = 8
PATIENCE = 60.0
HEAD_GUESS = 4_096
"""Bytes that are read first of an object, to find its head."""


class FunctionRows(msgspec.Struct, frozen=True, array_like=True):
    """A function's changes in a shard, in key order."""

    keys: list[bytes]
    values: list[bytes | None]
    """None: the row is deleted."""


class ChangeFrame(msgspec.Struct, frozen=True, array_like=True):
    """The changes of one commit in one shard."""

    batch: int
    id: str
    """The object that the frame was first written to."""
    functions: dict[str, FunctionRows]
    """Every function that the commit names, also those without changes."""

    @property
    def changes(self) -> dict[str, Changes]:
        return {
            function: dict(zip(rows.keys, rows.values, strict=True))
            for function, rows in self.functions.items()
        }


class ObjectHead(msgspec.Struct, frozen=True, array_like=True):
    """The position of each shard's frames: (start, end), counted from the end of the head."""

    shards: dict[int, tuple[int, int]]
    check: int | None = None
    """The CRC-32 of the encoded positions; None in objects of earlier versions."""


_frames = msgspec.msgpack.Decoder(ChangeFrame)
_heads = msgspec.msgpack.Decoder(ObjectHead)


def encode_changes(batch: int, id: str, shards: Mapping[int, Mapping[str, Changes]]) -> bytes:
    """Encodes the object `id` with a task's changes in its shards."""
    return _joined(
        {
            number: [
                _encoded(ChangeFrame(batch, id, {f: _sorted(c) for f, c in functions.items()}))
            ]
            for number, functions in shards.items()
        }
    )


def packed(objects: Sequence[bytes]) -> bytes:
    """Packs several objects, given in the order of their batches, into one."""
    frames: dict[int, list[bytes]] = {}
    for data in objects:
        for number in shards_in(data):
            frames.setdefault(number, []).append(section(data, number))
    return _joined(frames)


def shards_in(data: bytes) -> list[int]:
    """The shards that an object has frames of."""
    return sorted(_head(data)[0].shards)


def section(data: bytes, shard: int) -> bytes:
    """The bytes of a shard's frames; empty if the object has none."""
    head, length = _head(data)
    start, end = head.shards.get(shard, (0, 0))
    return data[length + start : length + end]


def section_bounds(beginning: bytes) -> dict[int, tuple[int, int]] | None:
    """The position of each shard's frames, from an object's first bytes; None if too few bytes.

    Raises ValueError if the head is damaged: the object's own checksum is not read here.
    """
    if len(beginning) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack_from(beginning)
    length = _LENGTH.size + size
    if len(beginning) < length:
        return None
    head, _ = _head(beginning)
    if head.check not in (None, _check(head.shards)):
        raise ValueError("the head does not fit its checksum")
    return {number: (length + start, length + end) for number, (start, end) in head.shards.items()}


def frames_in(where: str, data: bytes) -> Iterator[ChangeFrame]:
    """The frames of a section, in order; PlaceDamaged if one does not match its checksum."""
    at = 0
    while at < len(data):
        try:
            size, check = _FRAME.unpack_from(data, at)
            body = data[at + _FRAME.size : at + _FRAME.size + size]
            if len(body) != size or crc32(body) != check:
                raise ValueError("checksum")
            yield _frames.decode(body)
        except (ValueError, struct.error) as error:
            raise PlaceDamaged(
                f"{where}: the frame at byte {at} of a shard does not fit its checksum ({error}): "
                "the object is damaged; restore it from a copy or an earlier version of the bucket"
            ) from None
        at += _FRAME.size + size


def _head(data: bytes) -> tuple[ObjectHead, int]:
    """The head of an object, and the number of bytes before its frames."""
    (size,) = _LENGTH.unpack_from(data)
    return _heads.decode(data[_LENGTH.size : _LENGTH.size + size]), _LENGTH.size + size


def _joined(frames: Mapping[int, Iterable[bytes]]) -> bytes:
    bounds: dict[int, tuple[int, int]] = {}
    pieces: list[bytes] = []
    at = 0
    for number in sorted(frames):
        whole = b"".join(frames[number])
        bounds[number] = at, at + len(whole)
        pieces.append(whole)
        at += len(whole)
    head = msgspec.msgpack.encode(ObjectHead(bounds, _check(bounds)))
    return b"".join([_LENGTH.pack(len(head)), head, *pieces])


def _check(shards: Mapping[int, tuple[int, int]]) -> int:
    return crc32(msgspec.msgpack.encode(shards))


def _encoded(frame: ChangeFrame) -> bytes:
    body = msgspec.msgpack.encode(frame)
    return _FRAME.pack(len(body), crc32(body)) + body


def _sorted(changes: Changes) -> FunctionRows:
    keys = sorted(changes)
    return FunctionRows(keys, [changes[key] for key in keys])


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
