"""Pages from several streams: the first posts of all, in order, none twice, and little read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.codec import encode_value
from millstream.feeds.candidates import Candidate
from millstream.feeds.merging import LEAST, Merged, Opened, Stream, read_into
from millstream.feeds.names import Position, entry, post_entry
from millstream.feeds.tables import Rows

Post = tuple[int, str, str]


class Counted:
    """Tables of posts, each of a stream, that count the rows that are read."""

    def __init__(self, streams: Sequence[Sequence[Post]]) -> None:
        self.streams = [sorted(posts) for posts in streams]
        self.read = 0

    def rows(
        self, update: str, key: str, limit: int, start: str, stop: str, *, reverse: bool = False
    ) -> Rows:
        named = [(entry("post", *self._name(post)), post) for post in self.streams[int(key)]]
        inside = [(name, post) for name, post in named if start <= name < stop]
        found = list(islice(reversed(inside) if reverse else inside, limit))
        self.read += len(found)
        return [(name.encode(), encode_value({"v": post[2]})) for name, post in found]

    def open(
        self, number: int, than: Position | None, before: Position | None, newest_first: bool
    ) -> Stream:
        start = "post" if than is None else entry("post", *self._name(than)) + "\0"
        stop = "post\x20" if before is None else entry("post", *self._name(before))
        tables: Any = self
        return Stream(tables, ("posts", f"{number}"), self._add, start, stop, newest_first)

    def opened(self, than: Position | None, before: Position | None) -> list[Opened]:
        return [(partial(self.open, one), than, before) for one in range(len(self.streams))]

    def _add(self, rows: Rows, found: list[Candidate]) -> None:
        for name, kept in rows:
            _, ts, producer, post = name.split(b"\x1f")
            found.append((ts, producer, post, None, "pull", kept))

    def _name(self, post: Post) -> tuple[str, str, str]:
        ts, producer, name = post
        return post_entry(ts, "").split("\x1f")[1], producer, name

    def get(self, update: str, key: str, entry: str) -> Any:
        raise AssertionError("nothing is read by name")

    def scan(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        raise AssertionError("nothing is scanned")

    def once(self, what: str, make: Callable[[], Any]) -> Any:
        raise AssertionError("nothing is kept")


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
    read_into(found, tables.opened(than, before))
    inside = [
        post
        for post in sorted(set().union(*streams), reverse=newest_first)
        if (than is None or post > than) and (before is None or post < before)
    ]
    assert [item.position for item in found.items()] == inside[:most]
    if len(inside) >= most:
        assert found.bound == inside[most - 1]


@pytest.mark.parametrize("streams", [1, 2, 5, 50])
def test_little_more_is_read_than_is_shown(streams: int) -> None:
    """Of streams that have much, no more than a page and some of each."""
    posts = [[(n * 100 + of, f"p{of}", "x") for n in range(200)] for of in range(streams)]
    tables = Counted(posts)
    found = Merged(21)
    read_into(found, tables.opened(None, None))
    assert len(found.items()) == 21
    assert tables.read <= 21 + 2 * LEAST + 2 * streams


def test_a_stream_that_has_it_all() -> None:
    """It is read on, a little at a time, until no more of it is wanted."""
    tables = Counted(
        [[(1_000 + n, "a", "x") for n in range(50)], [(n, "b", "x") for n in range(50)]]
    )
    found = Merged(21)
    read_into(found, tables.opened(None, None))
    assert {item.producer for item in found.items()} == {"a"}
    assert tables.read <= 21 + 3 * LEAST
