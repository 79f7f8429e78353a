"""Reading: every record once, whole blocks within a budget, beside a writer and after a crash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from generated_cases import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from log_files import Clock, last_segment, lines_of, put, set_end

from millstream.errors import LogError
from millstream.log.blocks import HEADER_BYTES
from millstream.log.marks import SPACING, Marks
from millstream.log.reader import NOWHERE, LogReader
from millstream.log.segments import list_segments
from millstream.log.writer import Entry, LogWriter

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log will be."""
    return tmp_path / "log"


def test_a_log_that_does_not_exist_is_empty(path: Path) -> None:
    """A reader may come first, and sees the log when it is there and reloads."""
    reader = LogReader(path)
    assert (reader.start, reader.end) == (NOWHERE, NOWHERE)
    assert reader.take(NOWHERE, 10) == NOWHERE
    assert reader.ranges(NOWHERE, NOWHERE, 10) == []
    assert reader.stamp_at(NOWHERE) is None
    assert reader.find(0) == reader.find(9) == NOWHERE
    assert list(reader.blocks(0, 0)) == []
    writer = LogWriter(path, segment_bytes=100)
    for number in range(10):
        put(writer, b"%d" % number)
        assert reader.end[1] == number
        reader.reload()
        assert reader.end == writer.end
    assert [b.lines for b in reader.blocks(0, reader.end[0])] == [[b"%d" % n] for n in range(10)]


@settings(max_examples=examples(60))
@example(appends=[[]], budgets=[-1], target=0, segment_bytes=1)
@given(
    st.lists(st.lists(st.integers(0, 60), max_size=4), min_size=1, max_size=25),
    st.lists(st.integers(-5, 600), min_size=1, max_size=5),
    st.integers(-5, 700),
    st.integers(1, 600),
)
def test_every_record_is_taken_once(
    appends: list[list[int]], budgets: list[int], target: int, segment_bytes: int
) -> None:
    """For any blocks, segments, budgets and targets, each record is taken in order, once, within
    the budget."""
    folder = Path(tempfile.mkdtemp())
    writer = LogWriter(folder / "log", segment_bytes=segment_bytes, clock=Clock())
    expected, blocks = [], []
    for number, sizes in enumerate(appends):
        lines = [b"%d" % number * size for size in sizes]
        before = writer.end
        put(writer, *lines, tag=f"t{number}")
        blocks.append((before, writer.end))
        expected += lines
    reader = LogReader(folder / "log")
    assert reader.take(NOWHERE) == reader.end == writer.end
    position, got, turn = NOWHERE, [], 0
    while position != reader.end:
        budget = budgets[turn % len(budgets)]
        end = reader.take(position, budget)
        one = next(after for before, after in blocks if before == position)
        assert end in [after for _, after in blocks]
        assert reader.bytes_between(position, end) <= budget or end == one
        further = next((after for before, after in blocks if before == end), None)
        assert further is None or reader.bytes_between(position, further) > budget
        splits = reader.ranges(position, end, target)
        assert [a for a, _ in splits] == [position[0], *[b for _, b in splits[:-1]]]
        assert splits[-1][1] == end[0]
        assert all(b - a >= target for a, b in splits[:-1])
        records = position[1]
        for a, b in splits:
            for block in LogReader(folder / "log").blocks(a, b):
                assert (block.first, block.count) == (records, len(block.lines))
                records += block.count
                got += block.lines
        assert records == end[1]
        position, turn = end, turn + 1
    assert got == expected
    assert reader.take(position, 0) == position
    for before, after in blocks:
        assert reader.stamp_at(before) == 1_000_000
        for record in range(before[1], after[1]):
            assert reader.find(record) == LogReader(folder / "log").find(record) == before
    assert reader.find(len(expected)) == reader.end
    writer.close()
    shutil.rmtree(folder)


def test_tags_and_places_come_with_the_blocks(path: Path) -> None:
    """A block says where it lies, when it came, and which tags it holds."""
    clock = Clock(50)
    writer = LogWriter(path, clock=clock)
    writer.append([Entry.of([b"1"], "a", 7), Entry.of([b"2", b"3"], "b")])
    middle = writer.end[0]
    clock.now = 60
    put(writer, b"4")
    reader = LogReader(path)
    first, second = reader.blocks(0, reader.end[0])
    assert (first.offset, first.next_offset, first.stamp) == (0, middle, 50)
    assert first.tags == [("a", 0, 1, 7), ("b", 1, 2, 0)]
    assert second == (middle, writer.end[0], 3, 1, 60, [b"4"], [])
    assert reader.stamp_at([middle, 3]) == 60
    assert reader.stamp_at(reader.end) is None


def test_iterations_do_not_disturb_each_other(path: Path) -> None:
    """Two of them, and questions between, over segments that are opened and closed."""
    writer = LogWriter(path, segment_bytes=100)
    for number in range(9):
        put(writer, b"%d" % number)
    reader = LogReader(path)
    one, two = reader.blocks(0, reader.end[0]), reader.blocks(49, reader.end[0])
    for number in range(8):
        assert next(one).lines == [b"%d" % number]
        assert next(two).lines == [b"%d" % (number + 1)]
        assert reader.find(8 - number)[1] == 8 - number
    reader.close()
    assert next(one).lines == [b"8"]
    assert next(one, None) is None
    assert reader.take(NOWHERE, 49) == [49, 1]


def test_positions_that_the_log_does_not_have(path: Path) -> None:
    """Past the end, with another number of records, or not at a block: each a clear error."""
    writer = LogWriter(path)
    put(writer, b"1")
    put(writer, b"2")
    reader = LogReader(path)
    for position in ([99, 2], [98, 1], [49, 2], [1 << 40, 5]):
        for ask in (
            lambda p=position: reader.take(p, 10),
            lambda p=position: reader.ranges(NOWHERE, p, 10),
            lambda p=position: reader.stamp_at(p),
        ):
            with pytest.raises(LogError, match="was the log replaced"):
                ask()
    with pytest.raises(LogError, match="was the log replaced"):
        list(reader.blocks(0, 99))
    with pytest.raises(LogError, match=r"damaged at byte 10 .*no block's offset"):
        reader.take([10, 0], 10)
    with pytest.raises(LogError, match="damaged at byte 10 "):
        list(reader.blocks(10, 98))
    with pytest.raises(LogError, match="damaged at byte 49 "):
        list(reader.blocks(0, 97))


def test_a_log_that_was_replaced_is_noticed(path: Path) -> None:
    """If the log was deleted, or deleted and created again, a reader that has seen more says so."""
    writer = LogWriter(path)
    put(writer, b"1")
    put(writer, b"2")
    reader = LogReader(path)
    writer.close()
    shutil.rmtree(path)
    with pytest.raises(LogError, match="was the log replaced"):
        reader.reload()
    with pytest.raises(LogError, match="was the log replaced"):
        list(reader.blocks(0, 98))
    writer = LogWriter(path)
    put(writer, b"1")
    with pytest.raises(LogError, match="was the log replaced"):
        reader.reload()


def test_an_old_end_hides_nothing(path: Path) -> None:
    """After a power cut `end` may be older than the blocks: without a writer the blocks tell, and
    beside one, which may take back what it has not announced, `end` does."""
    writer = LogWriter(path)
    put(writer, b"1")
    before = writer.end
    put(writer, b"2")
    end = writer.end
    set_end(path, before)
    assert LogReader(path).end == before
    writer.close()
    set_end(path, before)
    reader = LogReader(path)
    assert reader.end == end
    reader.reload()
    assert reader.end == end
    assert len(lines_of(path)) == 2


@pytest.mark.parametrize("content", [None, b"", b"short", b"x" * 20, b"x" * 40])
@pytest.mark.parametrize("tail", [b"", b"MSB\xff torn"])
def test_without_an_end_the_blocks_tell(path: Path, content: bytes | None, tail: bytes) -> None:
    """Missing or damaged: a reader sees every whole block, not a torn one, and what comes later."""
    writer = LogWriter(path, segment_bytes=120)
    for number in range(5):
        put(writer, b"%d" % number)
    end = writer.end
    writer.close()
    (path / "end").unlink()
    if content is not None:
        (path / "end").write_bytes(content)
    with last_segment(path).open("ab") as file:
        file.write(tail)
    reader = LogReader(path)
    assert reader.end == end
    reader.reload()
    assert reader.end == end
    assert len(lines_of(path)) == 5
    writer = LogWriter(path, segment_bytes=120)
    put(writer, b"5")
    (path / "end").unlink()
    reader.reload()
    assert reader.end == writer.end


def test_an_old_end_does_not_hide_what_was_read_before(path: Path) -> None:
    """After a power cut `end` may be old, and a committed position behind it is still good."""
    writer = LogWriter(path, segment_bytes=120)
    ends = [writer.end]
    for number in range(5):
        put(writer, b"%d" % number)
        ends.append(writer.end)
    writer.close()
    for old in range(5):
        set_end(path, ends[old])
        for known in range(old, 6):
            reader = LogReader(path)
            assert reader.take(ends[known]) == reader.end == ends[5]
            assert sum(block.count for block in reader.blocks(0, ends[known][0])) == known


def test_nothing_behind_the_end_is_read(path: Path) -> None:
    """A whole block that `end` does not tell of yet may not be on disk: it is not there."""
    writer = LogWriter(path)
    put(writer, b"1")
    end = writer.end
    put(writer, b"2")
    set_end(path, end)
    reader = LogReader(path)
    assert reader.end == end
    assert reader.take(NOWHERE) == end
    assert reader.find(1) == end
    assert lines_of(path) == [b"1"]


def test_damage_in_the_middle_is_found(path: Path) -> None:
    """A flipped bit anywhere: reading says file and place; headers alone tell header damage."""
    writer = LogWriter(path, segment_bytes=160)
    for number in range(9):
        put(writer, b"%d" % number)
    second = Path(list_segments(path)[1].path)
    whole = second.read_bytes()
    for at in range(49, 98):
        changed = bytearray(whole)
        changed[at] ^= 1
        second.write_bytes(changed)
        reader = LogReader(path)
        with pytest.raises(LogError, match=rf"{second.name}: damaged at byte 49 .*restore"):
            list(reader.blocks(0, reader.end[0]))
        if at < 49 + HEADER_BYTES:
            with pytest.raises(LogError, match=rf"{second.name}: damaged at byte 49 "):
                reader.ranges(NOWHERE, reader.end, 1)
        reader.close()
    second.unlink()
    with pytest.raises(LogError, match="the file is gone"):
        list(LogReader(path).blocks(0, writer.end[0]))


def test_searches_begin_near_their_goal(path: Path) -> None:
    """The marks are sparse, whatever the number of blocks, and any boundary is found from them."""
    marks = Marks(1000, 10)
    for number in range(20_000):
        marks.add(1000 + 49 * number, 10 + number)
    assert len(marks) <= 1 + 49 * 20_000 // SPACING
    for number in (0, 1, 333, 334, 335, 9_999, 19_999):
        for offset, records in (
            marks.below_offset(1000 + 49 * number),
            marks.below_record(10 + number),
        ):
            assert (offset - 1000) // 49 == records - 10 <= number
            assert 49 * (number - (records - 10)) < SPACING + 49
    writer = LogWriter(path)
    for number in range(30):
        put(writer, b"%d" % number * 5_000)
    reader = LogReader(path)
    for record in (29, 3, 17, 29, 0, 18):
        assert reader.find(record)[1] == record
    for budget in range(0, writer.end[0], 7_000):
        assert reader.take(NOWHERE, budget) == LogReader(path).take(NOWHERE, budget)


def test_a_log_that_may_not_be_read_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the system becomes a LogError with its reason."""
    writer = LogWriter(path)
    put(writer, b"1")
    reader = LogReader(path)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    for name, ask in (
        ("open", reader.reload),
        ("open", lambda: reader.take(NOWHERE, 1)),
        ("pread", lambda: reader.take(NOWHERE, 1)),
        ("pread", lambda: list(reader.blocks(0, 49))),
        ("listdir", lambda: reader.find(0)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refuse)
            with pytest.raises(LogError, match="cannot be read: Permission denied; give the right"):
                ask()
    assert reader.take(NOWHERE, 1) == reader.end


WRITER = """
import sys
from millstream.log.retention import Retention
from millstream.log.writer import Entry, LogWriter
writer = LogWriter(sys.argv[1], segment_bytes=30_000, retention=Retention(max_bytes=60_000))
number = 0
for turn in range(1_500):
    count = turn % 23
    writer.append([Entry.of([b'%d' % n for n in range(number, number + count)], f"t{turn}")])
    number += count
print(number)
"""


def test_a_reader_beside_a_writer(path: Path) -> None:
    """The reader follows record by record while another process appends, rolls and removes."""
    reader = LogReader(path)
    reader.commit("follower", NOWHERE)
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    position, number, turn, ended = NOWHERE, 0, 0, False
    deadline = time.monotonic() + 50
    while not ended:
        assert time.monotonic() < deadline
        ended = child.poll() is not None
        before = reader.end
        reader.reload()
        assert reader.end >= before
        while position != reader.end:
            end = reader.take(position, 100 * (turn % 40))
            for a, b in reader.ranges(position, end, 500):
                for block in reader.blocks(a, b):
                    wanted = [b"%d" % n for n in range(number, number + block.count)]
                    assert block.lines == wanted
                    number += block.count
            position, turn = end, turn + 1
            reader.commit("follower", position)
    assert child.communicate()[0] == b"%d\n" % number
    assert number == reader.end[1] > 16_000
    assert 0 < reader.start[1] < number
