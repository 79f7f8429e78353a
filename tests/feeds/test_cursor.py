"""Cursors: what was written is read, and nothing else is."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import InputError
from millstream.feeds.reads.cursor import Cursor, Direction, Diverse, from_and_including
from millstream.feeds.records import LATEST

NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=200)
TIMES = st.integers(0, LATEST - 1)
POSITIONS = st.tuples(TIMES, NAMES, NAMES)
DIVERSE = st.builds(
    Diverse, TIMES, TIMES, st.integers(1, 100), st.integers(1, LATEST), st.booleans()
)
DIRECTIONS: st.SearchStrategy[Direction] = st.sampled_from(["older", "newer"])
CURSORS = st.builds(Cursor, DIRECTIONS, POSITIONS, st.none() | DIVERSE)


@given(CURSORS)
def test_what_was_written_is_read(cursor: Cursor) -> None:
    """A cursor with any names comes back as it was; its text needs no quoting in an address."""
    text = cursor.text()
    assert Cursor.read(text) == cursor
    assert all(one.isascii() and (one.isalnum() or one in "-_") for one in text)


@given(CURSORS, st.data())
def test_a_changed_cursor_is_refused(cursor: Cursor, data: st.DataObject) -> None:
    """A changed or missing character is noticed."""
    text = cursor.text()
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from(["", "A", "b", "_", "=", "é", "\n"]))
    changed = text[:at] + other + text[at + 1 :]
    if changed != text:
        with pytest.raises(InputError, match="ask without a cursor"):
            Cursor.read(changed)


@given(st.text(max_size=80))
def test_no_text_that_is_no_cursor_breaks_anything(text: str) -> None:
    """Any invalid text gets the same error."""
    with pytest.raises(InputError, match="cursor must be the 'next' or 'previous' of an answer"):
        Cursor.read(text)


@pytest.mark.parametrize(
    "packed",
    [
        b'[2,\'o\',1,"a","b"]',
        b'[2,"o",1,"a","b"]',
        b'[1,"x",1,"a","b"]',
        b'[1,"o",true,"a","b"]',
        b'[1,"o",-1,"a","b"]',
        b'[1,"o",1e3,"a","b"]',
        b'[1,"o",1, "a","b"]',
        b'[1,"o",1,"a"]',
        b'[1,"o",1,"a",null]',
        b'[1,"o",1,"a","\\ud800"]',
        b'[1,"o",1,"a","b",1,1,1,1]',
        b'[1,"o",1,"a","b",1,1,0,1,0]',
        b'[1,"o",1,"a","b",1,1,1,1,2]',
        b'{"v":1}',
        b"1",
        b"[" * 2_000,
        b"\xff",
        b"",
    ],
)
def test_a_forged_cursor_is_refused(packed: bytes) -> None:
    """With a right checksum too: only what `text` writes is a cursor."""
    text = urlsafe_b64encode(crc32(packed).to_bytes(4) + packed).decode().rstrip("=")
    with pytest.raises(InputError, match="cursor must be"):
        Cursor.read(text)


def test_a_long_text_is_refused_and_not_repeated() -> None:
    """An error shows no more than the beginning of what came."""
    with pytest.raises(InputError) as caught:
        Cursor.read("A" * 100_000)
    assert len(str(caught.value)) < 300


def test_the_text_stays_what_it_is() -> None:
    """Clients keep cursors: a change of this text ends all of them, and needs a new version."""
    text = Cursor("older", (1_700_000_000_000_000, "ann", "p1")).text()
    assert text == "7BcaNVsxLCJvIiwxNzAwMDAwMDAwMDAwMDAwLCJhbm4iLCJwMSJd"


@given(POSITIONS, POSITIONS)
def test_from_and_including(position: tuple[int, str, str], other: tuple[int, str, str]) -> None:
    """Nothing is between a post and where a cursor stands that shows it again, but what a newer
    one has of the same producer at the same time."""
    assert from_and_including(position, "newer") < position < from_and_including(position, "older")
    if other > position:
        assert other > from_and_including(position, "older")
    if other < position and other[:2] != position[:2]:
        assert other < from_and_including(position, "newer")
