"""Lines of text: records by a pattern or as they are, over several lines, in any encoding."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.errors import DefinitionError, InputError
from millstream.model.text_form import PLAIN_TEXT, TextForm, text_form
from millstream.sources import line_blocks
from millstream.sources.formats import Bad, Chunk, InputSplit
from millstream.sources.named_format import format_named

LINES = st.lists(
    st.sampled_from([b"1 a", b"22 bc", b"  at f", b"", b"\r", b"3", b"4 \xff", b"x\r"]), max_size=14
)


def read(
    path: Path, form: TextForm = PLAIN_TEXT, start: int = 0, stop: int | None = None
) -> list[Chunk]:
    return list(format_named("text", form).read(InputSplit(str(path), start, stop)))


def numbered(chunks: list[Chunk]) -> list[tuple[int, object]]:
    return [(c.line_of(i), record) for c in chunks for i, record in enumerate(c.records)]


def bad(chunks: list[Chunk]) -> list[Bad]:
    return [one for chunk in chunks for one in chunk.bad]


def test_a_line_is_a_record(tmp_path: Path) -> None:
    """Without a pattern; a mark of the byte order, line ends and empty lines are no part of it."""
    path = tmp_path / "a.log"
    path.write_bytes(b"\xef\xbb\xbffirst\r\n\r\n\n  second \nlast")
    chunks = read(path)
    assert numbered(chunks) == [
        (1, {"line": "first"}),
        (4, {"line": "  second "}),
        (5, {"line": "last"}),
    ]
    assert bad(chunks) == []


def test_the_groups_of_a_pattern_are_the_record(tmp_path: Path) -> None:
    """A line that does not match is bad, with its number and its text."""
    path = tmp_path / "a.log"
    path.write_bytes(b"ann 3\nnobody\nbob 4\n")
    chunks = read(path, TextForm(r"(?P<user>\w+) (?P<count>\d+)"))
    assert numbered(chunks) == [
        (1, {"user": "ann", "count": "3"}),
        (3, {"user": "bob", "count": "4"}),
    ]
    assert [(one.line, one.value) for one in bad(chunks)] == [(2, "nobody")]
    assert "does not match the pattern" in bad(chunks)[0].error


def test_records_of_several_lines(tmp_path: Path) -> None:
    """Lines that begin no record belong to the one before."""
    path = tmp_path / "a.log"
    path.write_bytes(b"  lost\n10:00 failed\r\n  at f\r\n\r\n  at g\r\n10:01 fine\n\n")
    form = TextForm(r"(?P<at>\d\d:\d\d) (?P<text>(?s:.*))", starts=r"\d\d:")
    chunks = read(path, form)
    assert numbered(chunks) == [
        (2, {"at": "10:00", "text": "failed\n  at f\n\n  at g"}),
        (6, {"at": "10:01", "text": "fine"}),
    ]
    assert [one.line for one in bad(chunks)] == [1]


@pytest.mark.parametrize("block", [1, 5, 256 * 1024])
@pytest.mark.parametrize("starts", [None, r"\d"])
@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lines=LINES, ended=st.booleans(), cuts=st.sets(st.integers(1, 60)))
def test_any_cut_gives_every_record_once(
    tmp_path: Path,
    block: int,
    starts: str | None,
    lines: list[bytes],
    ended: bool,
    cuts: set[int],
) -> None:
    """However a file is cut into splits, every record is read by the split in which it begins."""
    path = tmp_path / "a.log"
    path.write_bytes(b"\n".join(lines) + (b"\n" if ended else b""))
    size = path.stat().st_size
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < size), size]
    form = TextForm(starts=starts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "BLOCK_BYTES", block)
        whole = read(path, form) if size else []
        pieces = [chunk for low, high in pairwise(edges) for chunk in read(path, form, low, high)]
    assert numbered(pieces) == numbered(whole)
    assert bad(pieces) == bad(whole)
    if starts is None:
        good = [n for n, line in enumerate(lines, 1) if line.strip() and b"\xff" not in line]
        assert [number for number, _ in numbered(whole)] == good


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "iso8859-15", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_encodings(tmp_path: Path, encoding: str, packed: bool) -> None:
    """Files in encodings with one byte per character can be split. A UTF-16 file is one split."""
    data = "café 1\r\nnaïve 2\r\n".encode(encoding)
    path = tmp_path / ("a.log.gz" if packed else "a.log")
    path.write_bytes(gzip.compress(data) if packed else data)
    form = text_form("here", encoding=encoding)
    format, size = format_named("text", form), path.stat().st_size
    units = format.units(str(path), size)
    splits = format.splits(str(path), size, units, 0, units, 4)
    assert (len(splits) == 1) == (packed or form.is_wide)
    chunks = [chunk for split in splits for chunk in format.read(split)]
    assert numbered(chunks) == [(1, {"line": "café 1"}), (2, {"line": "naïve 2"})]
    assert bad(chunks) == []


def test_bytes_that_are_not_of_the_encoding(tmp_path: Path) -> None:
    """They make a bad line with advice, not a crash. For UTF-16 there is one error for the file."""
    path = tmp_path / "a.log"
    path.write_bytes(b"caf\xe9\nfine\n")
    chunks = read(path)
    assert numbered(chunks) == [(2, {"line": "fine"})]
    assert "must be UTF-8; got bytes that are not" in bad(chunks)[0].error
    assert numbered(read(path, text_form("here", encoding="cp1252"))) == [
        (1, {"line": "café"}),
        (2, {"line": "fine"}),
    ]
    path.write_bytes("fine\n".encode("utf-16"))
    size = path.stat().st_size
    pieces = [
        chunk for low, high in ((0, 5), (5, size)) for chunk in read(path, stop=high, start=low)
    ]
    assert numbered(pieces) == []
    assert [one.line for one in bad(pieces)] == [0]
    assert "byte-order mark of UTF-16" in bad(pieces)[0].error


@pytest.mark.parametrize(
    "encoding", ["shift_jis", "gbk", "utf-7", "utf-32", "rot13", "hex", "x", "cp037", 5]
)
def test_encodings_that_are_refused(encoding: str) -> None:
    """Unknown encodings are refused, and those in which a byte may be part of a character."""
    with pytest.raises(DefinitionError, match=r"^here: encoding must be utf-8, utf-16, or one"):
        text_form("here", encoding=encoding)


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", 5])
def test_delimiters_that_are_refused(delimiter: str) -> None:
    """A delimiter must be a single character without another meaning."""
    with pytest.raises(DefinitionError, match=r"^here: delimiter must be one character"):
        text_form("here", delimiter=delimiter)


def test_a_record_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is bad, and the next ones are read."""
    monkeypatch.setattr(line_blocks, "LINE_BYTES", 100)
    path = tmp_path / "a.log"
    path.write_bytes(b"1 a\n" + b"more\n" * 100 + b"2 b\n")
    chunks = read(path, TextForm(starts=r"\d"))
    assert numbered(chunks) == [(102, {"line": "2 b"})]
    assert [one.line for one in bad(chunks)] == [1]


def test_a_file_that_was_taken_and_is_shorter(tmp_path: Path) -> None:
    """It stops the run. An empty file is given up."""
    path = tmp_path / "a.log"
    path.write_bytes(b"1\n")
    with pytest.raises(InputError, match="put it back and start again"):
        read(path, start=0, stop=10)
    path.write_bytes(b"")
    assert "given up" in bad(read(path, start=0, stop=10))[0].error
