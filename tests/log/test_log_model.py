"""A log against a list, over random appends, restarts, crashes, full disks and retention."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from log_files import Clock, last_segment, set_end

from millstream.errors import LogError
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.log.segments import list_segments
from millstream.log.writer import Appended, Entry, LogWriter, TagMismatch

LINES = st.lists(st.sampled_from([b"", b"x", b'{"key":"k"}', b"y" * 150]), max_size=3)
ENTRIES = st.lists(
    st.builds(Entry, LINES, st.sampled_from(["", "", "a", "b", "c"]), st.integers(0, 1)),
    max_size=3,
)


class Logs(RuleBasedStateMachine):
    """What a reader sees is what the model has, but for what retention may remove."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "log"
        self.clock = Clock()
        self.lines: list[bytes] = []
        self.tags: dict[str, tuple[int, int, int]] = {}
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
        """What the model says that an append gives."""
        results: list[tuple[int, int, bool] | None] = []
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
        results = self.writer.append(entries)
        assert all(isinstance(result, Appended | TagMismatch) for result in results)
        assert [r if isinstance(r, Appended) else None for r in results] == self.append(entries)

    @rule(
        entries=ENTRIES, code=st.sampled_from([errno.ENOSPC, errno.EIO]), after=st.integers(0, 99)
    )
    def is_refused(self, entries: list[Entry], code: int, after: int) -> None:
        """The disk refuses in the middle of an append: nothing has happened."""

        def refuse(file: int, data: bytes, at: int) -> int:
            os.pwritev(file, [bytes(data)[:after]], at)
            raise OSError(code, os.strerror(code))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fdatasync", lambda file: refuse(file, b"", 0))
            try:
                results = self.writer.append(entries)
            except LogError:
                return
        assert not any(
            isinstance(result, Appended) and not result.repeated and result.count
            for result in results
        )

    @rule()
    def restarts(self) -> None:
        """The writer closes the log and opens it again."""
        self.writer.close()
        self.writer = self.opened()
        assert self.writer.torn == 0

    @rule(entries=ENTRIES, cut=st.floats(0, 1), zeros=st.integers(0, 60))
    def crashes(self, entries: list[Entry], cut: float, zeros: int) -> None:
        """The machine stops in the middle of an append: a part of its block is there, or none."""
        before = self.writer.end
        segment = last_segment(self.path)
        length = segment.stat().st_size
        self.writer.append(entries)
        self.writer.close()
        fresh = last_segment(self.path)
        length = 0 if fresh != segment else length
        added = fresh.stat().st_size - length
        kept = min(int(added * cut), max(0, added - 1))
        os.truncate(fresh, length + kept)
        os.truncate(fresh, length + kept + zeros)
        # The last bytes of a block may be zeros: then it is whole again, and may stay.
        set_end(self.path, before)
        self.writer = self.opened()
        if self.writer.end != before:
            self.append(entries)

    @rule(entries=ENTRIES)
    def dies_before_saying_so(self, entries: list[Entry]) -> None:
        """The process dies after its write and before `end`: the append counts."""
        before = self.writer.end
        self.writer.append(entries)
        self.append(entries)
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
        assert self.writer.last_tag == self.last_tag
        if self.committed == end[1]:
            segments = list_segments(self.path)
            assert len(segments) < 3 or self.writer.retain() >= 0


TestLogs = Logs.TestCase
TestLogs.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,  # an append waits for the disk
    suppress_health_check=[HealthCheck.too_slow],
)
