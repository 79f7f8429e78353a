"""Idempotency: what comes again under the same tag is appended once."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import Clock, lines_of, put

from millstream.log.blocks import Tag
from millstream.log.retention import DAY
from millstream.log.tags import Tags
from millstream.log.writer import Appended, Entry, LogWriter, Retention, TagMismatch

pytestmark = pytest.mark.timeout(60)


def test_a_tag_is_appended_once(path: Path) -> None:
    """A repeat gives what the first gave: in one call, in a later one, and after a restart."""
    writer = LogWriter(path)
    entry = Entry.of([b"a", b"b"], "t", 5)
    assert writer.append([Entry.of([b"x"]), entry, entry, Entry.of([b"y"])]) == [
        Appended(0, 1, False),
        Appended(1, 2, False),
        Appended(1, 2, True),
        Appended(3, 1, False),
    ]
    for _ in range(2):
        size = writer.end
        assert writer.append([entry]) == [Appended(1, 2, True)]
        assert writer.end == size
        assert writer.append([entry, Entry.of([b"z"])])[0] == Appended(1, 2, True)
        writer.close()
        writer = LogWriter(path)
    assert lines_of(path) == [b"x", b"a", b"b", b"y", b"z", b"z"]


def test_a_tag_for_something_else_is_refused(path: Path) -> None:
    """Another digest: that entry is not appended, and the others are."""
    writer = LogWriter(path)
    put(writer, b"a", tag="t", digest=1)
    one, two, three = writer.append(
        [Entry.of([b"b"], "t", 2), Entry.of([b"c"]), Entry.of([b"d"], "u", -1)]
    )
    assert isinstance(one, TagMismatch)
    assert "tag 't' was used for 1 other" in str(one)
    assert (two, three) == (Appended(1, 1, False), Appended(2, 1, False))
    assert lines_of(path) == [b"a", b"c", b"d"]


def test_a_tag_without_records_is_remembered(path: Path) -> None:
    """A batch that brought nothing can say so once; the block has no record."""
    writer = LogWriter(path)
    put(writer, b"1", tag="batch 1")
    assert put(writer, tag="batch 2") == Appended(1, 0, False)
    writer.close()
    writer = LogWriter(path)
    assert writer.last_tag == "batch 2"
    assert put(writer, tag="batch 2") == Appended(1, 0, True)
    assert put(writer, b"2") == Appended(1, 1, False)
    assert lines_of(path) == [b"1", b"2"]


@pytest.mark.parametrize("restart", [False, True])
def test_tags_are_remembered_for_a_day(path: Path, restart: bool) -> None:
    """By segments: those whose last block is older than 24 hours are forgotten, live or not."""
    clock = Clock()
    keep = Retention(max_age=None, max_bytes=None)

    def opened() -> LogWriter:
        return LogWriter(path, segment_bytes=1, retention=keep, clock=clock)

    writer = opened()
    put(writer, b"1", tag="a")
    clock.now += DAY // 2
    put(writer, b"2", tag="b")
    assert put(writer, b"1", tag="a").repeated
    clock.now += DAY // 2 + 1
    put(writer, b"3", tag="c")
    for first in (False, True):
        if restart:
            writer.close()
            writer = opened()
        assert put(writer, b"2", tag="b") == Appended(1, 1, True)
        assert put(writer, b"1", tag="a") == Appended(3, 1, first)


def test_the_newest_tags_are_kept() -> None:
    """Past the limit the oldest tags are forgotten. A repeated tag counts as new."""
    tags = Tags(limit=3)
    tags.add(Tag(name, number, 1, 0) for number, name in enumerate("abcad"))
    assert [name for name in "abcd" if tags.get(name)] == ["a", "c", "d"]
    tags.forget_before(3)
    assert [name for name in "abcd" if tags.get(name)] == ["a", "d"]
    assert len(tags) == 2


def test_a_log_may_do_without_tags(path: Path) -> None:
    """With tags=False a tag is written and not looked up, and a restart knows the last one."""
    clock = Clock()
    writer = LogWriter(path, tags=False, segment_bytes=1, clock=clock)
    assert writer.last_tag == ""
    for _ in range(2):
        assert not put(writer, b"1", tag="t").repeated
    writer.close()
    clock.now += 3 * DAY
    assert LogWriter(path, tags=False, clock=clock).last_tag == "t"


# The disk refuses
