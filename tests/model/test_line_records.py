"""Lines of text become records, and records of several lines are put together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import DefinitionError, InputError
from millstream.model.line_records import (
    JoinedLines,
    LineJoiner,
    check_pattern,
    check_starts,
    line_reader,
)

LINES = st.lists(st.sampled_from([b"1 a", b"2 b", b"  at f", b"", b"\r", b"3"]), max_size=12)


def joined(lines: list[bytes]) -> list[JoinedLines]:
    joiner = LineJoiner(r"\d")
    closed = joiner.take(lines)
    last = joiner.end()
    return closed if last is None else [*closed, last]


def test_a_line_is_text_or_the_groups_of_a_pattern() -> None:
    """Without a pattern the record has the line; a group that took no part is null."""
    assert line_reader()(b"hello\r") == {"line": "hello"}
    read = line_reader(r"(?P<a>\d+)( (?P<b>\w+))?")
    assert read(b"12 x and more") == {"a": "12", "b": "x"}
    assert read(b"12") == {"a": "12", "b": None}


def test_a_line_that_cannot_be_read_says_why() -> None:
    """The error is different for a line that does not match and for bytes that are not of the
    encoding."""
    with pytest.raises(InputError, match=r"does not match the pattern '\(\?P<a>\\d\)'"):
        line_reader(r"(?P<a>\d)")(b"x1")
    with pytest.raises(InputError, match="must be UTF-8; got bytes that are not"):
        line_reader()(b"caf\xe9")
    assert line_reader(encoding="latin-1")(b"caf\xe9") == {"line": "café"}
    assert line_reader(errors="replace")(b"caf\xe9") == {"line": "caf\N{REPLACEMENT CHARACTER}"}


@given(lines=LINES)
def test_records_are_all_the_lines_and_begin_where_starts_says(lines: list[bytes]) -> None:
    """Put together again, the records are the lines; only the first may begin with another line."""
    records = joined(lines)
    assert [line for record in records for line in record.data.split(b"\n")] == lines
    assert all(record.data[:1].isdigit() for record in records[1:])
    text = b"".join(line + b"\n" for line in lines)
    for record in records:
        assert text[record.at : record.at + record.size] == record.data + b"\n"
        assert text[: record.at].count(b"\n") == record.line


@given(lines=LINES, cut=st.integers(0, 12))
def test_how_lines_are_handed_over_does_not_matter(lines: list[bytes], cut: int) -> None:
    """Lines give the same records one at a time or all at once."""
    joiner = LineJoiner(r"\d")
    closed = joiner.take(lines[:cut])
    before = joiner.open
    closed += joiner.take(lines[cut:])
    last = joiner.end()
    assert [*closed, *([] if last is None else [last])] == joined(lines)
    assert (before is None) == (not lines[:cut])


@given(lines=LINES, cut=st.integers(1, 12))
def test_a_record_is_of_the_piece_in_which_it_begins(lines: list[bytes], cut: int) -> None:
    """A reader that begins inside of a file skips what is of a record before it."""
    at = sum(len(line) + 1 for line in lines[:cut])
    later = LineJoiner(r"\d", line=cut, at=at, inside=True)
    found = later.take(lines[cut:])
    last = later.end()
    found += [] if last is None else [last]
    assert found == [record for record in joined(lines) if record.line >= cut]


def test_a_record_that_never_ends_does_not_fill_the_memory() -> None:
    """Only enough of it is kept to show that it is too long. Its full size is reported."""
    joiner = LineJoiner(r"\d", longest=10)
    joiner.take([b"1"] + [b"more"] * 1000)
    record = joiner.end()
    assert record is not None
    assert record.size == 2 + 5 * 1000
    assert 10 < len(record.data) < 20


def test_ends_of_lines_are_no_part_of_a_joined_record() -> None:
    """Neither a carriage return nor blank lines after it."""
    assert line_reader()(b"1 failed\r\n  at f\r\n\r\n") == {"line": "1 failed\n  at f"}


@pytest.mark.parametrize(
    ("check", "given_", "says"),
    [
        (check_pattern, "(", "pattern must be a regular expression"),
        (check_pattern, r"\d+", "pattern must name its groups"),
        (check_pattern, 3, "pattern must be a regular expression; got 3"),
        (check_starts, "(", "starts must be a regular expression"),
        (check_starts, r"\d*", "starts must not match every line"),
    ],
)
def test_what_could_give_no_record_is_refused(check: Any, given_: Any, says: str) -> None:
    """With the place and what must be."""
    with pytest.raises(DefinitionError, match=f"^here: {says}"):
        check(given_, "here")
