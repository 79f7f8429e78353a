"""The bytes of a block: they are read back unchanged, and any damage is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.log.blocks import (
    BadBlock,
    FoundBlock,
    Tag,
    decode_header,
    encode_block,
    headers,
    holds_a_block,
    tags_at,
    walk,
)
from millstream.log.entries import Entry

LINES = st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"n")), max_size=5)
TAGS = st.lists(
    st.builds(
        Tag,
        st.text(min_size=1, max_size=5),
        st.integers(0, 1 << 60),
        st.integers(0, 1 << 31),
        st.integers(-(1 << 63), (1 << 64) - 1),
    ),
    max_size=3,
)


def file_of(data: bytes) -> int:
    """A file without a name that holds the data."""
    file = os.memfd_create("blocks")
    os.write(file, data)
    return file


def walked(data: bytes, base: int = 0) -> list[FoundBlock]:
    """The blocks of a file that holds the data, and whose first byte has the offset `base`."""
    file = file_of(data)
    try:
        return list(walk(file, base, base, base + len(data)))
    finally:
        os.close(file)


@given(st.lists(st.tuples(LINES, TAGS), max_size=4), st.integers(0, 1 << 50), st.integers(0, 99))
def test_what_goes_in_comes_out(
    appends: list[tuple[list[bytes], list[Tag]]], base: int, at: int
) -> None:
    """Lines of any bytes but newlines, no lines, empty lines, tags: all come back the same."""
    data, number = b"", at
    for stamp, (lines, tags) in enumerate(appends):
        data += encode_block(b"\n".join(lines), len(lines), number, stamp, stamp - 1, tags)
        number += len(lines)
    found = walked(data, base)
    assert [(block.lines(), block.tags()) for block in found] == appends
    assert [(block.header.stamp, block.header.prior) for block in found] == [
        (stamp, stamp - 1) for stamp in range(len(appends))
    ]
    assert [block.offset for block in found][:1] == [base][: len(found)]
    assert sum(block.header.size for block in found) == len(data)
    file = file_of(data)
    assert list(headers(file, base, base, base + len(data))) == [
        (b.offset, b.header) for b in found
    ]
    assert [tags_at(file, b.offset - base, b.header) for b in found] == [b.tags() for b in found]
    os.close(file)


def test_every_flipped_bit_is_found() -> None:
    """A block with any flipped bit, in its header, tags or payload, is refused."""
    block = encode_block(b'{"n":1}\n{"n":2}', 2, 5, 1_000, 900, [Tag("t", 5, 2, 77)])
    for bit in range(len(block) * 8):
        changed = bytearray(block)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BadBlock):
            walked(bytes(changed))


def test_every_cut_is_found() -> None:
    """A block that misses bytes at its end is refused, and the one before it is given."""
    first, second = encode_block(b"1", 1, 0, 1, 0), encode_block(b"2\n3", 2, 1, 2, 1)
    for cut in range(1, len(second)):
        file = file_of((first + second)[:-cut])
        found = walk(file, 0, 0, len(first + second) - cut)
        assert next(found).lines() == [b"1"]
        with pytest.raises(BadBlock, match=f"at offset {len(first)}"):
            next(found)
        os.close(file)


def test_blocks_of_any_length_are_read(tmp_path: Path) -> None:
    """Blocks that are longer than a read, and those across the border of two, come whole."""
    sizes = [3_000_000, 10, 1 << 20, (1 << 20) - 48, 500_000, 700_000, 0, 5_000_000]
    data, lines = b"", [bytes([65 + n]) * size for n, size in enumerate(sizes)]
    for number, line in enumerate(lines):
        data += encode_block(line, 1, number, 0, 0)
    assert [block.lines() for block in walked(data)] == [[line] for line in lines]


def test_a_newline_in_a_record_is_refused() -> None:
    """It would become two records. The error names the line."""
    for lines in ([b"1\n"], [b"\n"], [b"1", b"2\n3", b"4"]):
        with pytest.raises(ValueError, match="no newline inside"):
            Entry.of(lines)


def test_the_records_must_follow_each_other() -> None:
    """A block whose first record is not the one after the last is not of this place."""
    data = encode_block(b"1", 1, 0, 0, 0) + encode_block(b"2", 1, 2, 0, 0)
    with pytest.raises(BadBlock, match="record 2 follows where 1 must"):
        walked(data)


def test_a_block_behind_garbage_is_seen() -> None:
    """A whole block is found wherever it begins. A part of a block is not mistaken for one."""
    block = encode_block(b"[1, 2]", 1, 3, 0, 0)
    assert holds_a_block(block)
    assert holds_a_block(b"MSB\xff??" + block + b"more")
    assert not holds_a_block(b"")
    assert not any(holds_a_block(block[:cut]) for cut in range(len(block)))
    assert not any(holds_a_block(block[cut:]) for cut in range(1, len(block)))


def test_a_header_says_why_it_is_none() -> None:
    """Too short, not a block, and damaged are told apart."""
    block = encode_block(b"1", 1, 0, 0, 0)
    for data, why in (
        (block[:20], "only a part"),
        (b"x" + block[1:], "no block begins"),
        (block[:20] + b"x" + block[21:], "does not fit its checksum"),
    ):
        with pytest.raises(ValueError, match=why):
            decode_header(data)
