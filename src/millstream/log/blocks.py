"""The bytes of a block: one append writes a block, whole or not at all.

    magic        4   b"MSB\\xff": no byte of JSON is 0xff, so no record looks like a block
    head check   4   crc32 of the rest of the header
    body check   4   crc32 of tags and payload
    tags         4   length
    payload      4   length
    count        4   records in the payload
    first        8   number of its first record
    stamp        8   time of the append, microseconds
    prior        8   stamp of the block before: a segment tells the last stamp of the one before it
    tags             JSON: [[tag, first, count, digest], ...]
    payload          the records, joined by newlines

All numbers are little endian. The header has its own check, so that boundaries can be read, and
trusted, without the payloads. Functions here take bytes and file handles, no file names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec

MAGIC = b"MSB\xff"
_HEADER = Struct("<4sIIIIIQqq")
HEADER_BYTES = _HEADER.size
_CHECKED = 8
"""The check covers the header from this byte on."""
_CHUNK = 1 << 20
_LENGTH_LIMIT = 1 << 32


class Tag(NamedTuple):
    """An idempotency tag, and the result of its append."""

    tag: str
    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    digest: int


class Header(NamedTuple):
    """The header of a block. `size` is that of the whole block."""

    size: int
    body_check: int
    tags_bytes: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    first: int
    stamp: int
    prior: int


class FoundBlock(NamedTuple):
    """A whole block at an offset, its body checked."""

    offset: int
    header: Header
    body: memoryview

    @property
    def next_offset(self) -> int:
        return self.offset + self.header.size

    def tags(self) -> list[Tag]:
        return decode_tags(self.body[: self.header.tags_bytes])

    def lines(self) -> list[bytes]:
        if not self.header.count:
            return []
        return bytes(self.body[self.header.tags_bytes :]).split(b"\n")


class BadBlock(ValueError):
    """The bytes at an offset are not a whole block."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(f"at offset {offset} {why}")
        self.offset = offset
        self.why = why


_encode_tags = msgspec.json.Encoder().encode
_decode_tags = msgspec.json.Decoder(list[Tag]).decode


def encode_block(
    payload: bytes, count: int, first: int, stamp: int, prior: int, tags: Sequence[Tag] = ()
) -> bytes:
    """Encodes a block of `count` records, joined by newlines. ValueError if they are too long.

    >>> block = encode_block(b"1\\n2", 2, first=7, stamp=100, prior=90)
    >>> decode_header(block).first, len(block) == decode_header(block).size
    (7, True)
    """
    if len(payload) >= _LENGTH_LIMIT:
        raise ValueError(f"an append is under 4 GiB; this has {len(payload)} bytes")
    tagged = _encode_tags(tags) if tags else b""
    check = crc32(payload, crc32(tagged))
    fields = (check, len(tagged), len(payload), count, first, stamp, prior)
    head_check = crc32(_HEADER.pack(MAGIC, 0, *fields)[_CHECKED:])
    return b"".join((_HEADER.pack(MAGIC, head_check, *fields), tagged, payload))


def decode_header(data: bytes, at: int = 0) -> Header:
    """Parses the header at a byte; ValueError says why there is none."""
    if len(data) - at < HEADER_BYTES:
        raise ValueError("there is only a part of a header")
    magic, head_check, check, tags, payload, count, first, stamp, prior = _HEADER.unpack_from(
        data, at
    )
    if magic != MAGIC:
        raise ValueError("no block begins")
    if crc32(data[at + _CHECKED : at + HEADER_BYTES]) != head_check:
        raise ValueError("the header does not fit its checksum")
    return Header(HEADER_BYTES + tags + payload, check, tags, count, first, stamp, prior)


def decode_tags(data: bytes | memoryview) -> list[Tag]:
    """The tags of a block."""
    return _decode_tags(data) if data else []


def walk(file: int, base: int, start: int, stop: int, number: int = -1) -> Iterator[FoundBlock]:
    """The blocks of a segment file, whose first byte has the offset `base`, from start to stop.

    Reads about a megabyte at once. Raises BadBlock if a block is incomplete, damaged, or goes past
    `stop`, or if its first record does not follow the block before (`number` for the first).
    """
    at, need = start, HEADER_BYTES
    while at < stop:
        data = os.pread(file, min(max(_CHUNK, need), stop - at), at - base)
        if len(data) < need:
            raise BadBlock(at, f"there are {len(data)} bytes of a block of at least {need}")
        view, used = memoryview(data), 0
        while len(data) - used >= (need := HEADER_BYTES):
            try:
                header = decode_header(data, used)
            except ValueError as error:
                raise BadBlock(at, str(error)) from None
            need = header.size
            if len(data) - used < need:
                break
            body = view[used + HEADER_BYTES : used + need]
            if crc32(body) != header.body_check:
                raise BadBlock(at, "the content does not fit its checksum")
            if number not in (-1, header.first):
                raise BadBlock(at, f"record {header.first} follows where {number} must")
            yield FoundBlock(at, header, body)
            number = header.first + header.count
            used, at = used + need, at + need


def walk_bytes(data: bytes, start: int, number: int = -1) -> Iterator[FoundBlock]:
    """The blocks in bytes that begin at the offset `start`; BadBlock if one is not whole.

    `number` is the record that the first block must begin with; -1: any.
    """
    view, used = memoryview(data), 0
    while used < len(data):
        at = start + used
        try:
            header = decode_header(data, used)
        except ValueError as error:
            raise BadBlock(at, str(error)) from None
        body = view[used + HEADER_BYTES : used + header.size]
        if len(body) != header.size - HEADER_BYTES:
            raise BadBlock(at, "there is only a part of a block")
        if crc32(body) != header.body_check:
            raise BadBlock(at, "the content does not fit its checksum")
        if number not in (-1, header.first):
            raise BadBlock(at, f"record {header.first} follows where {number} must")
        yield FoundBlock(at, header, body)
        number = header.first + header.count
        used += header.size


def headers(file: int, base: int, start: int, stop: int) -> Iterator[tuple[int, Header]]:
    """Offsets and headers of the blocks from start to stop, without reading their bodies."""
    at = start
    while at < stop:
        try:
            header = decode_header(os.pread(file, HEADER_BYTES, at - base))
        except ValueError as error:
            raise BadBlock(at, str(error)) from None
        yield at, header
        at += header.size


def tags_at(file: int, place: int, header: Header) -> list[Tag]:
    """The tags of the block whose header is at byte `place` of a file."""
    if not header.tags_bytes:
        return []
    return decode_tags(os.pread(file, header.tags_bytes, place + HEADER_BYTES))


def holds_a_block(data: bytes) -> bool:
    """True if a whole block begins anywhere in the data.

    The remains of an interrupted append hold none: a block is written only after the one before it
    is on disk.
    """
    at = data.find(MAGIC)
    while at >= 0:
        try:
            header = decode_header(data, at)
        except ValueError:
            pass
        else:
            body = data[at + HEADER_BYTES : at + header.size]
            if at + header.size <= len(data) and crc32(body) == header.body_check:
                return True
        at = data.find(MAGIC, at + 1)
    return False
