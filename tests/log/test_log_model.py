"""A log against a list, over random appends, restarts, crashes, full disks and retention."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from generated_cases import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from log_files import Clock, last_segment, set_end

from millstream.errors import LogError
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.log.writer import Entry, LogWriter, TagMismatch

LINE = st.sampled_from([b"", b"x", b'{"key":"k"}', b"y" * 150])
PLAIN = st.lists(LINE, max_size=3).map(Entry.of)
TAGGED = st.tuples(
    st.lists(LINE, min_size=1, max_size=3), st.sampled_from("abc"), st.integers(0, 1)
).map(lambda parts: Entry.of(*parts))
ENTRIES = st.lists(PLAIN | TAGGED, max_size=3)


class Logs(RuleBasedStateMachine):
    """A reader sees the records of the model, except those that retention may remove."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "log"
        self.clock = Clock()
        self.lines: list[bytes] = []
        self.tags: dict[str, tuple[int, int, int]] = {}
        """The result of each tag's first append, known as long as its segment exists."""
        self.last_tag = ""
        self.committed = 0
        self.reader = LogReader(self.path)
        self.reader.commit("reader", [0, 0])
        self.writer = self.opened()

    def opened(self) -> LogWriter:
        keep = Retention(max_age=None, max_bytes=500)
        return LogWriter(self.path, segment_bytes=300, retention=keep, clock=self.clock)

    def teardown(self) -> None:
        self.writer.close()
        self.reader.close()
        shutil.rmtree(self.folder)

    def append(self, entries: list[Entry]) -> list[tuple[int, int, bool] | None]:
        """Returns the result of an append in the model."""
        results: list[tuple[int, int, bool] | None] = []
        start = self.reader.start[1]
        self.tags = {tag: known for tag, known in self.tags.items() if known[0] >= start}
        for entry in entries:
            known = self.tags.get(entry.tag)
            if known is None:
                first = len(self.lines)
                self.lines += entry.lines
                if entry.tag:
                    self.tags[entry.tag] = (first, len(entry.lines), entry.digest)
                    self.last_tag = entry.tag
                results.append((first, len(entry.lines), False))
            else:
                results.append((*known[:2], True) if known[2] == entry.digest else None)
        return results

    @rule(entries=ENTRIES, later=st.integers(-5, 5))
    def appends(self, entries: list[Entry], later: int) -> None:
        """An append, at a time that may go back."""
        self.clock.now += later
        wanted = self.append(entries)
        results = self.writer.append(entries)
        assert [None if isinstance(r, TagMismatch) else tuple(r) for r in results] == wanted

    @rule(entries=ENTRIES, part=st.integers(0, 99))
    def is_refused(self, entries: list[Entry], part: int) -> None:
        """The disk is full in the middle of an append: nothing has happened."""
        before = self.writer.end

        def refuse(file: int, data: bytes, at: int) -> int:
            patch.undo()
            os.pwrite(file, bytes(data)[:part], at)
            raise OSError(errno.ENOSPC, "No space left on device")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "pwrite", refuse)
            try:
                self.writer.append(entries)
            except LogError:
                pass
        assert self.writer.end == before

    @rule()
    def restarts(self) -> None:
        """The writer closes the log and opens it again."""
        self.writer.close()
        self.writer = self.opened()
        assert self.writer.torn == 0

    @rule(entries=ENTRIES, cut=st.floats(0, 1, exclude_max=True), zeros=st.integers(0, 60))
    def crashes(self, entries: list[Entry], cut: float, zeros: int) -> None:
        """The machine stops in the middle of an append: a part of its block is there, or none."""
        before, segment = self.writer.end, last_segment(self.path)
        length = segment.stat().st_size
        self.writer.append(entries)
        self.writer.close()
        last = last_segment(self.path)
        length = length if last == segment else 0
        whole = last.read_bytes()
        kept = int((len(whole) - length) * cut)
        if not any(whole[length + kept :]):  # zeros after it would make the block whole
            kept = 0
        os.truncate(last, length + kept)
        os.truncate(last, length + kept + zeros)
        set_end(self.path, before)
        self.writer = self.opened()
        assert self.writer.end == before
        assert self.writer.torn == kept + zeros

    @rule(entries=ENTRIES)
    def dies_before_saying_so(self, entries: list[Entry]) -> None:
        """The process dies after its write and before `end`: the append counts."""
        before = self.writer.end
        self.append(entries)
        self.writer.append(entries)
        self.writer.close()
        set_end(self.path, before)
        self.writer = self.opened()

    @rule(budget=st.integers(0, 1_000))
    def reads_on(self, budget: int) -> None:
        """The reader takes a batch, checks it and commits it."""
        self.reader.reload()
        position = self.reader.find(self.committed)
        end = self.reader.take(position, budget)
        got = [line for block in self.reader.blocks(position[0], end[0]) for line in block.lines]
        assert got == self.lines[position[1] : end[1]]
        self.committed = end[1]
        self.reader.commit("reader", end)

    @rule()
    def retains(self) -> None:
        """Retention is asked for."""
        self.writer.retain()

    @invariant()
    def is_as_it_must_be(self) -> None:
        """All records from the start are there, the numbers fit, nothing needed is gone."""
        self.reader.reload()
        start, end = self.reader.start, self.reader.end
        assert end == self.writer.end
        assert end[1] == len(self.lines)
        assert start[1] <= self.committed
        got = [line for block in self.reader.blocks(start[0], end[0]) for line in block.lines]
        assert got == self.lines[start[1] :]
        last = self.tags.get(self.last_tag)
        if last and last[0] >= start[1]:
            assert self.writer.last_tag == self.last_tag


TestLogs = Logs.TestCase
TestLogs.settings = settings(
    max_examples=examples(60),
    stateful_step_count=25,
    deadline=None,  # an append waits for the disk
    suppress_health_check=[HealthCheck.too_slow],
)
