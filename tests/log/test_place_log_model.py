"""A log in a place against a list: interleaved writers, lost answers, crashes and pauses."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from interrupted_place import InterruptedPlace
from log_files import lines_of

from millstream.errors import LogError, PlaceError
from millstream.log import place_readers
from millstream.log.entries import Appended, Entry
from millstream.log.mirror import LogMirror
from millstream.log.place_readers import commit_in
from millstream.log.place_writer import PlaceLogWriter, log_pieces
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.places import piece_log
from millstream.places.elapsed import ClockReading
from millstream.places.memory_place import MemoryPlace
from millstream.places.piece_log import SETTLE_SECONDS

WRITERS = st.integers(0, 2)
KINDS = st.sampled_from(["fail", "lose", "before", "after", "lose-after"])
ACTS = st.lists(st.tuples(KINDS, st.sampled_from(["other", "sleep", "tidy", "long"])), max_size=5)
TAGS = st.sampled_from(["", "", "a", "b", "c"])


def thrice(attempt: Callable[[], Any], seconds: float) -> Any:
    """`persistent`, by a number of tries and not by the clock: a test must repeat itself."""
    for _ in range(2):
        try:
            return attempt()
        except PlaceError:
            pass
    return attempt()


class PlaceLogs(RuleBasedStateMachine):
    """Every acknowledged append is there once, in one order that all mirrors agree on."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        for module in (piece_log, place_readers):
            self.patch.setattr(module, "persistent", thrice)
        self.patch.setattr(piece_log, "JOIN_PIECES", 3)
        self.folder = Path(tempfile.mkdtemp())
        self.time = 1_000_000.0
        self.place = MemoryPlace(lambda: self.time)
        self.serial = 0
        self.lines: dict[int, bytes] = {}
        """Every record that was ever seen, by its number."""
        self.acknowledged: set[bytes] = set()
        self.tagged: dict[str, int] = {}
        self.faulty = [InterruptedPlace(self.place) for _ in range(3)]
        self.mirrors = [self.mirror(number) for number in range(2)]
        self.writers = [self.writer(number) for number in range(3)]

    def teardown(self) -> None:
        for mirror in self.mirrors:
            mirror.close()
        self.patch.undo()
        shutil.rmtree(self.folder)

    def now(self) -> ClockReading:
        return ClockReading(self.time, 0.0)

    def mirror(self, number: int) -> LogMirror:
        folder = self.folder / f"mirror{number}"
        return LogMirror(self.place, "s", folder, segment_bytes=300, now=self.now)

    def writer(self, number: int) -> PlaceLogWriter:
        """The first one has a mirror on its host."""
        return PlaceLogWriter(
            self.faulty[number],
            "s",
            mirror=self.folder / "mirror0" if number == 0 else None,
            retention=Retention(max_age=None, max_bytes=400),
            clock=lambda: int(self.time * 1e6),
            now=self.now,
        )

    def fresh(self, count: int) -> list[bytes]:
        self.serial += count
        return [b"line %d" % number for number in range(self.serial - count, self.serial)]

    def append(self, number: int, entry: Entry) -> None:
        try:
            (result,) = self.writers[number].append([entry])
        except LogError:
            return
        assert isinstance(result, Appended)
        if entry.tag:
            known = self.tagged.get(entry.tag, result.first)
            assert known == result.first or self.is_gone(known)
            self.tagged[entry.tag] = result.first
        else:
            self.acknowledged.update(entry.lines)

    def is_gone(self, record: int) -> bool:
        """True if retention has removed a record and its tag."""
        return log_pieces(self.place, "s").chain().start[1] > record

    def act(self, what: str, number: int) -> Callable[[], None]:
        """Something that happens while a request of this writer is under way."""
        other = (number + 1) % 3

        def acted() -> None:
            if what == "sleep":
                self.time += 40
            if what in ("other", "long", "sleep"):
                self.append(other, Entry.of(self.fresh(1)))
            if what in ("tidy", "long"):
                for _ in range(2):
                    self.time += SETTLE_SECONDS + 10 if what == "long" else 1
                    for _ in range(4):
                        self.append(other, Entry.of(self.fresh(1)))
                    self.tidied(other)

        return acted

    def tidied(self, number: int) -> None:
        try:
            self.writers[number].retain()
        except LogError:
            pass

    @rule(number=WRITERS, count=st.integers(1, 3), tag=TAGS, acts=ACTS)
    def appends(self, number: int, count: int, tag: str, acts: list[tuple[str, str]]) -> None:
        """An append, while other things happen. A tag is known to all writers for a day."""
        lines = [f"tag {tag}".encode()] if tag else self.fresh(count)
        self.faulty[number].plan = [(kind, self.act(what, number)) for kind, what in acts]
        self.append(number, Entry.of(lines, tag))
        self.faulty[number].plan = []

    @rule(number=WRITERS)
    def begins_anew(self, number: int) -> None:
        """A writer ends at any point, and another opens the log."""
        self.writers[number] = self.writer(number)

    @rule(number=WRITERS)
    def tidies(self, number: int) -> None:
        """Small pieces are joined, and what nobody needs is let go."""
        self.tidied(number)

    @rule(seconds=st.sampled_from([1, 40, 2_000]))
    def time_passes(self, seconds: int) -> None:
        """The writers are idle."""
        self.time += seconds

    @rule(number=st.integers(0, 1), again=st.booleans())
    def follows(self, number: int, again: bool) -> None:
        """A mirror takes in what is new, perhaps after it was closed and opened."""
        if again:
            self.mirrors[number].close()
            self.mirrors[number] = self.mirror(number)
        self.mirrors[number].follow()
        self.seen(self.mirrors[number])

    def seen(self, mirror: LogMirror) -> None:
        """Checks that a mirror has the records that others have seen there."""
        reader = LogReader(mirror.path)
        start = reader.start[1]
        reader.close()
        for record, line in enumerate(lines_of(mirror.path), start):
            assert self.lines.setdefault(record, line) == line

    @invariant()
    def is_complete(self) -> None:
        """A mirror that follows all the time has every acknowledged append, once."""
        mirror = self.mirrors[1]
        mirror.follow()
        self.seen(mirror)
        commit_in(self.place, "s", "archive", mirror.end)
        lines = [*self.lines.values()]
        assert [*self.lines] == [*range(len(lines))]
        plain = [line for line in lines if line.startswith(b"line ")]
        assert len({*plain}) == len(plain)
        assert self.acknowledged <= {*plain}
        for tag, first in self.tagged.items():
            assert self.lines[first] == f"tag {tag}".encode()


TestPlaceLogs = PlaceLogs.TestCase
TestPlaceLogs.settings = settings(
    max_examples=examples(100),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
