"""Times of records that bring none: given once, and the same after a start."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from file_limit import no_file_larger_than

from millstream.agent.log import first_seen_times
from millstream.agent.log.first_seen_times import FirstSeenTimes
from millstream.agent.log.log_files import Mark


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stamps.jsonl"


def test_a_place_keeps_its_time(path: Path) -> None:
    """A record keeps the time at which it was first seen, also when the journal is opened again."""
    stamps = FirstSeenTimes(path)
    assert stamps.stamp("f", 0, 10, 30, now=100) == 100
    assert stamps.stamp("f", 10, 20, 30, now=200) == 100  # it was there when first looked at
    assert stamps.stamp("f", 30, 5, 35, now=300) == 300
    assert stamps.stamp("g", 0, 5, 5, now=400) == 400
    again = FirstSeenTimes(path)
    assert [again.stamp("f", at, 1, 35, now=999) for at in (0, 29, 30, 34)] == [100, 100, 300, 300]
    assert again.stamp("g", 4, 1, 5, now=999) == 400
    assert again.until("f", 5) == 30


def test_times_do_not_go_back(path: Path) -> None:
    """A clock that is set back does not make a record earlier than one that was read before."""
    stamps = FirstSeenTimes(path)
    stamps.stamp("f", 0, 10, 10, now=500)
    assert stamps.stamp("f", 10, 10, 20, now=300) == 500
    assert FirstSeenTimes(path).stamp("f", 20, 10, 30, now=300) == 500


def test_a_file_that_begins_again(path: Path) -> None:
    """Records of a file after its truncation get times of their own."""
    stamps = FirstSeenTimes(path)
    stamps.stamp("f", 0, 10, 10, now=100)
    stamps.begin_again("f")
    assert FirstSeenTimes(path).stamp("f", 0, 10, 10, now=200) == 200


def test_a_copy_has_the_times_of_its_original(path: Path) -> None:
    """Records that were seen before a file was copied and truncated keep their time in the copy."""
    stamps = FirstSeenTimes(path)
    stamps.stamp("f", 0, 10, 10, now=100)
    stamps.also("f", "copy")
    assert FirstSeenTimes(path).stamp("copy", 5, 5, 10, now=200) == 100


def test_an_entry_that_was_cut_off(path: Path) -> None:
    """A crash at any byte of an entry leaves the others, and the next one is written whole."""
    stamps = FirstSeenTimes(path)
    stamps.stamp("f", 0, 10, 10, now=100)
    first = path.read_bytes()
    stamps.stamp("f", 10, 10, 20, now=200)
    whole = path.read_bytes()
    for size in range(len(first), len(whole)):
        path.write_bytes(whole[:size])
        again = FirstSeenTimes(path)
        assert path.read_bytes() == first
        assert again.stamp("f", 10, 10, 20, now=300) == 300
        last = FirstSeenTimes(path)
        assert [last.stamp("f", at, 10, 20, now=999) for at in (0, 10)] == [100, 300]
        for opened in (again, last):
            opened.close()


def test_a_full_disk(path: Path) -> None:
    """No record gets a time that is not on disk; with room again, it has the first one it got."""
    stamps = FirstSeenTimes(path)
    stamps.stamp("f", 0, 10, 10, now=100)
    first = path.read_bytes()
    with no_file_larger_than(len(first) + 7):
        for now in (200, 250):
            with pytest.raises(OSError, match="File too large"):
                stamps.stamp("f", 10, 10, 20, now=now)
    assert path.read_bytes() == first
    assert stamps.stamp("f", 10, 10, 20, now=300) == 200
    assert FirstSeenTimes(path).stamp("f", 10, 10, 20, now=999) == 200


def test_many_entries_take_little_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pane of a day has four a second, and none of them can be forgotten before it ends."""
    monkeypatch.setattr(os, "fdatasync", lambda handle: None)
    stamps = FirstSeenTimes(path)
    tracemalloc.start()
    try:
        for at in range(10_000):
            stamps.stamp("f", 100 * at, 100, 100 * at + 100, now=1_700_000_000_000_000 + at)
        assert tracemalloc.get_traced_memory()[0] < 40 * 10_000
        again = FirstSeenTimes(path)
        assert tracemalloc.get_traced_memory()[1] < 3 * 40 * 10_000
    finally:
        tracemalloc.stop()
    assert again.stamp("f", 150, 1, 10**6, now=0) == 1_700_000_000_000_001


def test_it_does_not_grow_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries before the restart point are removed, and needed ones stay."""
    monkeypatch.setattr(first_seen_times, "MOST", 10)
    stamps = FirstSeenTimes(path)
    for number in range(20):
        stamps.stamp("1:2:abc", number * 10, 10, 0, now=number)
    stamps.stamp("1:3:abc", 0, 10, 0, now=50)
    before = path.stat().st_size
    stamps.forget([Mark("1:2", "app.log", "", 180, "", 180, False)])
    assert path.stat().st_size < before / 5
    assert stamps.stamp("1:2:abc", 190, 10, 0, now=99) == 19
    assert FirstSeenTimes(path).stamp("1:2:abc", 180, 10, 0, now=99) == 18
    assert stamps.stamp("1:2:abc", 200, 10, 0, now=99) == 99
    assert FirstSeenTimes(path).stamp("1:2:abc", 200, 10, 0, now=150) == 99
