"""Pages from several streams: the first posts of all, in order, none twice, and little read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.codec import encode_value
from millstream.feeds.names import Position
from millstream.feeds.reads.candidates import PULLED, Candidate, items_of, place_of
from millstream.feeds.reads.stream_merge import LEAST, MORE, SPARE, Merged, PostStream, read_into
from millstream.feeds.reads.tables import Row, Rows

Post = tuple[int, str, str]


class Counted:
    """Streams of posts that count the rows that are read."""

    def __init__(self, streams: Sequence[Sequence[Post]]) -> None:
        self._streams = [sorted(posts) for posts in streams]
        self._may_repeat = len({*chain(*streams)}) < sum(map(len, streams))
        self.read = 0

    def streams(
        self, than: Position | None, before: Position | None, newest_first: bool
    ) -> list[PostStream]:
        inside = [
            [
                post
                for post in (reversed(posts) if newest_first else posts)
                if (than is None or post > than) and (before is None or post < before)
            ]
            for posts in self._streams
        ]
        return [PostStream(self._rows(posts), self._add) for posts in inside]

    def _rows(self, posts: Sequence[Post]) -> Rows:
        for post in posts:
            self.read += 1
            yield place_of(*post), encode_value({"v": post[2]})

    def _add(self, rows: list[Row], found: list[Candidate]) -> bool:
        found += [(place, kept, PULLED) for place, kept in rows]
        return self._may_repeat


POSTS = st.tuples(st.integers(1, 12), st.sampled_from("ab"), st.sampled_from("xy"))
STREAMS = st.lists(st.sets(POSTS, max_size=20), max_size=5)


@given(streams=STREAMS, most=st.integers(1, 12), newest_first=st.booleans(), data=st.data())
def test_the_first_of_all_streams(
    streams: list[set[Post]], most: int, newest_first: bool, data: st.DataObject
) -> None:
    """By position, from either end and between two positions; what several streams have comes
    once."""
    than = data.draw(st.none() | POSTS)
    before = data.draw(st.none() | POSTS)
    tables = Counted([sorted(posts) for posts in streams])
    found = Merged(most, newest_first=newest_first)
    read_into(found, tables.streams(than, before, newest_first))
    inside = [
        post
        for post in sorted(set().union(*streams), reverse=newest_first)
        if (than is None or post > than) and (before is None or post < before)
    ]
    assert [item.position for item in items_of(found.settled())] == inside[:most]


@given(posts=st.sets(POSTS, max_size=40), of=st.integers(1, 4), most=st.integers(1, 12))
def test_streams_that_have_nothing_in_common(posts: set[Post], of: int, most: int) -> None:
    """They are sorted without a search for duplicates."""
    streams = [[post for post in posts if hash(post) % of == number] for number in range(of)]
    found = Merged(most)
    read_into(found, Counted(streams).streams(None, None, True))
    shown = [item.position for item in items_of(found.settled())]
    assert shown == sorted(posts, reverse=True)[:most]


@pytest.mark.parametrize("streams", [1, 2, 5, 50])
def test_little_more_is_read_than_is_shown(streams: int) -> None:
    """Of long streams, no more than a page and a few rows of each are read."""
    posts = [[(n * 100 + of, f"p{of}", "x") for n in range(200)] for of in range(streams)]
    tables = Counted(posts)
    found = Merged(21)
    read_into(found, tables.streams(None, None, True))
    assert len(found.settled()) == 21
    assert tables.read <= SPARE * 21 + (LEAST + 1) * streams


def test_a_stream_that_has_it_all() -> None:
    """It is read on in small steps until the page is full."""
    tables = Counted(
        [[(1_000 + n, "a", "x") for n in range(50)], [(n, "b", "x") for n in range(50)]]
    )
    found = Merged(21)
    read_into(found, tables.streams(None, None, True))
    assert {item.producer for item in items_of(found.settled())} == {"a"}
    assert tables.read <= 21 + int(SPARE * 21 / 2) + 1 + 21 // MORE


@pytest.mark.parametrize("newest_first", [True, False])
@given(shown=st.sets(st.integers(0, 60)), other=st.sets(st.integers(0, 60), max_size=30))
def test_rows_that_are_not_shown(newest_first: bool, shown: set[int], other: set[int]) -> None:
    """Hidden rows do not count towards the number that is wanted of a stream."""

    def add(rows: list[Row], found: list[Candidate]) -> bool:
        found += [(place, b"null", PULLED) for place, kept in rows if kept == b"shown"]
        return False

    order = range(60, -1, -1) if newest_first else range(61)
    last = ((place_of(n, "b", "x"), b"shown" if n in shown else b"") for n in order)
    first = ((place_of(n, "a", "x"), b"shown") for n in order if n in other)
    found = Merged(9, newest_first=newest_first)
    read_into(found, [PostStream(first, add), PostStream(last, add)])
    expected = [(n, "a") for n in other] + [(n, "b") for n in shown]
    places = [place_of(n, of, "x") for n, of in sorted(expected, reverse=newest_first)]
    assert [place for place, _, _ in found.settled()] == places[:9]
