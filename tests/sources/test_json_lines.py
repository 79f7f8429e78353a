"""JSON lines: valid and bad lines, and that any split gives every line once."""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from pathlib import Path

import pytest
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.errors import InputError
from millstream.sources import line_blocks, whole_files
from millstream.sources.formats import Bad, Chunk, InputSplit
from millstream.sources.named_format import format_named

FORMAT = format_named("json")
SAME_DIRECTORY = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def read(path: Path, start: int = 0, stop: int | None = None) -> list[Chunk]:
    return list(FORMAT.read(InputSplit(str(path), start, stop)))


def records(chunks: list[Chunk]) -> list[object]:
    return [record for chunk in chunks for record in chunk.records]


def bad(chunks: list[Chunk]) -> list[Bad]:
    return [one for chunk in chunks for one in chunk.bad]


def numbered(chunks: list[Chunk]) -> list[tuple[int, object]]:
    return [(c.line_of(i), record) for c in chunks for i, record in enumerate(c.records)]


def test_records_with_their_own_bytes(tmp_path: Path) -> None:
    """Each record comes with the bytes that it was decoded from."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n"two"\n[3]')
    chunks = read(path)
    assert records(chunks) == [{"a": 1}, "two", [3]]
    assert [raw for chunk in chunks for raw in chunk.raw or []] == [b'{"a": 1}', b'"two"', b"[3]"]
    assert bad(chunks) == []


def test_blank_lines_crlf_and_bom(tmp_path: Path) -> None:
    """Blank lines are skipped but counted; CRLF and a byte order mark are tolerated."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf1\r\n\r\n  \n2\r\n")
    chunks = read(path)
    assert numbered(chunks) == [(1, 1), (4, 2)]
    assert bad(chunks) == []


def test_bad_lines_stand_beside_good_ones(tmp_path: Path) -> None:
    """A torn line, bad UTF-8, NaN and endless nesting are bad, with line, text and reason."""
    path = tmp_path / "a.jsonl"
    lines = [b"1", b'{"a": ', b'"\xff"', b"2", b"NaN", b"[" * 100_000, b"3"]
    path.write_bytes(b"\n".join(lines))
    chunks = read(path)
    assert numbered(chunks) == [(1, 1), (4, 2), (7, 3)]
    assert [(one.line, one.value) for one in bad(chunks)] == [
        (2, '{"a": '),
        (3, b'"\xff"'),
        (5, "NaN"),
        (6, "[" * 2000),
    ]
    assert "ends too early" in bad(chunks)[0].error
    assert "UTF-8" in bad(chunks)[1].error
    assert all(one.error.startswith("a line must be one whole JSON value") for one in bad(chunks))


def test_two_torn_lines_never_make_one_value(tmp_path: Path) -> None:
    """Lines are decoded one by one: halves that would join to valid JSON stay two bad lines."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"[1\n2]\n")
    assert [one.line for one in bad(read(path))] == [1, 2]


@pytest.mark.parametrize("block", [1, 3, 7, 256 * 1024])
@SAME_DIRECTORY
@given(
    lines=st.lists(
        st.sampled_from([b"1", b'{"a":"bc"}', b"", b"}", b"  ", b'"long value"', b"2\r"])
    ),
    ended=st.booleans(),
    cuts=st.sets(st.integers(0, 80)),
)
def test_any_cut_gives_every_line_once(
    tmp_path: Path, block: int, lines: list[bytes], ended: bool, cuts: set[int]
) -> None:
    """However a file is cut into splits, every line is read by exactly one, with its number."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines) + (b"\n" if ended else b""))
    size = path.stat().st_size
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < size), size]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "BLOCK_BYTES", block)
        whole = read(path, 0, size)
        pieces = [chunk for low, high in pairwise(edges) for chunk in read(path, low, high)]
    assert numbered(pieces) == numbered(whole)
    assert bad(pieces) == bad(whole)
    good = [(n, line) for n, line in enumerate(lines, 1) if line.strip() not in (b"", b"}")]
    assert [(c.line_of(i), raw) for c in whole for i, raw in enumerate(c.raw or [])] == good
    assert [one.line for one in bad(whole)] == [n for n, x in enumerate(lines, 1) if x == b"}"]


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 300))
def test_splits_cover_the_range(start: int, length: int, target: int) -> None:
    """The splits of a range follow one another, cover it and keep to the target."""
    splits = FORMAT.splits("p", 5000, 5000, start, start + length, target)
    edges = [splits[0].start, *(split.stop for split in splits)]
    assert edges == sorted({*edges})
    assert (edges[0], edges[-1]) == (start, start + length)
    assert all(split.stop - split.start <= target for split in splits if split.stop)


def test_chunks_are_bounded(tmp_path: Path) -> None:
    """Very short lines still come at most 8,192 at a time, and keep their numbers."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b"%d\n" % (i % 10) for i in range(20_000)))
    chunks = read(path)
    assert max(len(chunk.records) for chunk in chunks) <= 8192
    assert numbered(chunks) == [(i + 1, i % 10) for i in range(20_000)]


def test_a_line_without_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line past the limit is bad, and the lines after it are read."""
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 16)
    monkeypatch.setattr(line_blocks, "LINE_BYTES", 100)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n" + b"2" * 1000 + b"\n3\n")
    chunks = read(path)
    assert records(chunks) == [1, 3]
    assert [one.line for one in bad(chunks)] == [2]
    assert "longer than 100 bytes" in bad(chunks)[0].error


def test_gzip_is_one_split(tmp_path: Path) -> None:
    """A compressed file is read as one split of one unit."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'1\n{"a": 2}\nx\n'))
    size = path.stat().st_size
    assert FORMAT.units(str(path), size) == 1
    assert FORMAT.splits(str(path), size, 1, 0, 1, 1) == [InputSplit(str(path), 0, None)]
    chunks = read(path)
    assert numbered(chunks) == [(1, 1), (2, {"a": 2})]
    assert [one.line for one in bad(chunks)] == [3]


@pytest.mark.parametrize("damage", ["cut", "no end", "corrupt", "foreign"])
@pytest.mark.parametrize("held", [1 << 30, 1000])
def test_nothing_of_a_damaged_gzip_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, held: int
) -> None:
    """There is one error for the whole file, with line 0, and no record. So when the file is
    written again under a new name, as the error says, nothing counts twice."""
    monkeypatch.setattr(whole_files, "HELD_BYTES", held)
    path = tmp_path / "a.jsonl.gz"
    text = b"".join(b"%d\n" % (i * 7919) for i in range(20_000))
    data = gzip.compress(text)
    middle = len(data) // 2
    path.write_bytes(
        {
            "cut": data[:-200],
            "no end": data[:-8],
            "corrupt": data[:middle] + b"\0\0\0\0" + data[middle + 4 :],
            "foreign": b"not gzip at all",
        }[damage]
    )
    chunks = read(path)
    assert records(chunks) == []
    assert [one.line for one in bad(chunks)] == [0]
    assert "cut short or corrupt" in bad(chunks)[0].error
    assert "nothing of it was read" in bad(chunks)[0].error
    path.with_name("b.jsonl.gz").write_bytes(data)
    assert records(read(path.with_name("b.jsonl.gz"))) == [i * 7919 for i in range(20_000)]


def test_a_byte_order_mark_belongs_at_the_start(tmp_path: Path) -> None:
    """Anywhere else it is no JSON, also where a split begins."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n\xef\xbb\xbf2\n")
    assert [one.line for one in bad(read(path, 2, 7))] == [2]


def test_a_vanished_file_stops_the_run(tmp_path: Path) -> None:
    """A file that was taken and is gone raises, and the error says what to do."""
    path = tmp_path / "gone.jsonl"
    with pytest.raises(InputError, match=r"gone\.jsonl.*put it back"):
        read(path, 0, 10)


def test_a_shrunk_file_stops_the_run_and_an_empty_one_gives_up(tmp_path: Path) -> None:
    """A file that is shorter than its recorded size raises. An emptied one is bad, and the run
    continues."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n2\n")
    os.truncate(path, 2)
    with pytest.raises(InputError, match="2 bytes now"):
        read(path, 0, 4)
    os.truncate(path, 0)
    assert [one.line for one in bad(read(path, 0, 4))] == [0]


def test_a_value_that_is_nested_too_deeply_is_bad(tmp_path: Path) -> None:
    """A value on which a later reader could fail, deeper in its own calls, is bad at its entry."""
    path = tmp_path / "a.jsonl"
    lines = [b"[" * depth + b"]" * depth for depth in (500, 501, 960, 100_000)]
    path.write_bytes(b"\n".join([*lines, b'"' + b"[" * 2_000 + b'"']))
    chunks = read(path)
    assert [line for line, _ in numbered(chunks)] == [1, 5]
    assert [one.line for one in bad(chunks)] == [2, 3, 4]
    assert "nested" in bad(chunks)[0].error
