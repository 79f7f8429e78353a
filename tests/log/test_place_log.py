"""Logs in a place: several writers, mirrors that begin late, joined pieces and retention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interrupted_place import InterruptedPlace
from log_files import lines_of, put

from millstream.errors import LogError
from millstream.log.entries import Appended, Entry, TagMismatch
from millstream.log.mirror import LogMirror, read_log_mirror
from millstream.log.place_readers import commit_in, knows_in, release_in
from millstream.log.place_writer import PlaceLogWriter, log_pieces
from millstream.log.placed_blocks import LogObjects, placed_blocks
from millstream.log.reader import LogReader
from millstream.log.retention import DAY, Retention
from millstream.log.stream_logs import AT_THE_END, PlaceLogs
from millstream.places import piece_log
from millstream.places.directory_place import DirectoryPlace
from millstream.places.elapsed import ClockReading
from millstream.places.memory_place import MemoryPlace
from millstream.places.piece_log import SETTLE_SECONDS
from millstream.places.place import Place


class Time:
    """A time that stands until it is moved, for the place and for all hosts."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def writer(self, place: Place, **given: Any) -> PlaceLogWriter:
        return PlaceLogWriter(
            place,
            "clicks",
            clock=lambda: int(self.seconds * 1e6),
            now=lambda: ClockReading(self.seconds, 0.0),
            **{"patience": 0.0, **given},
        )

    def mirror(self, place: Place, folder: Path, **given: Any) -> LogMirror:
        now: Callable[[], ClockReading] = lambda: ClockReading(self.seconds, 0.0)  # noqa: E731
        return LogMirror(place, "clicks", folder, patience=0.0, now=now, **given)


class CountingPlace(InterruptedPlace):
    """Counts requests."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.requests = 0

    def _done(self, request: Callable[[], object]) -> object:
        self.requests += 1
        return super()._done(request)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=["memory", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path, time: Time) -> Place:
    if request.param == "memory":
        return MemoryPlace(lambda: time.seconds)
    return DirectoryPlace(tmp_path / "place")


@pytest.fixture
def memory(time: Time) -> MemoryPlace:
    return MemoryPlace(lambda: time.seconds)


def names(place: Place) -> list[str]:
    return [listed.name for listed in place.list("logs/clicks/")]


def mirrored(time: Time, place: Place, folder: Path, **given: Any) -> list[bytes]:
    time.mirror(place, folder, **given).close()
    return lines_of(folder)


def test_writers_take_turns(place: Place, time: Time, tmp_path: Path) -> None:
    """The appends of several writers have one order and one sequence of numbers."""
    writers = [time.writer(place) for _ in range(3)]
    firsts = [put(writers[number % 3], b"%d" % number).first for number in range(9)]
    assert firsts == [*range(9)]
    assert mirrored(time, place, tmp_path / "mirror") == [b"%d" % number for number in range(9)]


def test_a_tag_counts_once_whichever_writer_gets_it(place: Place, time: Time) -> None:
    """This holds for a writer that opens the log later, too. Other records under the same tag are
    refused."""
    first, second = time.writer(place), time.writer(place)
    assert put(first, b"1", b"2", tag="a", digest=1) == Appended(0, 2, False)
    put(first, b"3")
    assert put(second, b"1", b"2", tag="a", digest=1) == Appended(0, 2, True)
    third = time.writer(place)
    assert put(third, b"1", b"2", tag="a", digest=1) == Appended(0, 2, True)
    (refused,) = third.append([Entry.of([b"other"], "a", 2)])
    assert isinstance(refused, TagMismatch)
    assert third.last_tag == "a"


def test_a_writer_knows_the_tags_of_a_mirror(
    memory: MemoryPlace, time: Time, tmp_path: Path
) -> None:
    """With a mirror beside it, a writer reads from the place only what the mirror does not have."""
    writer = time.writer(memory)
    for number in range(40):
        put(writer, b"x", tag=f"t{number}")
    time.mirror(memory, tmp_path / "mirror").close()
    put(writer, b"y", tag="new")
    counted = CountingPlace(memory)
    late = time.writer(counted, mirror=tmp_path / "mirror")
    assert counted.requests == 2
    assert put(late, b"x", tag="t3").repeated
    assert put(late, b"y", tag="new").repeated


@pytest.mark.parametrize("kind", ["fail", "lose"])
def test_an_append_without_an_answer_may_be_there(
    kind: str, memory: MemoryPlace, time: Time
) -> None:
    """If the place cannot be asked, it is a LogError. With its tag the append can be repeated."""
    place = InterruptedPlace(memory)
    writer = time.writer(place)
    place.plan = [(kind, lambda: None), ("fail", lambda: None)]
    with pytest.raises(LogError, match="logs/clicks: cannot be appended to"):
        put(writer, b"1", tag="a")
    again = put(writer, b"1", tag="a")
    assert again == Appended(0, 1, kind == "lose")
    assert len(names(memory)) == 1


def test_nothing_new_costs_one_request(memory: MemoryPlace, time: Time, tmp_path: Path) -> None:
    """A mirror asks for the next piece; so does a writer that others do not disturb."""
    place = CountingPlace(memory)
    mirror, writer = time.mirror(place, tmp_path / "mirror"), time.writer(place)
    place.requests = 0
    assert not mirror.follow()
    assert place.requests == 1
    put(writer, b"1")
    assert place.requests == 2
    assert mirror.follow()
    mirror.close()


def test_a_mirror_may_begin_late(place: Place, time: Time, tmp_path: Path) -> None:
    """At a position, or with the piece of a record; numbers and positions are those of the log."""
    writer = time.writer(place)
    ends = []
    for number in range(10):
        put(writer, b"%d" % number)
        ends.append(writer.end)
    assert mirrored(time, place, tmp_path / "position", since=ends[3]) == [
        b"4",
        b"5",
        b"6",
        b"7",
        b"8",
        b"9",
    ]
    assert mirrored(time, place, tmp_path / "record", record=8) == [b"8", b"9"]
    assert mirrored(time, place, tmp_path / "end", record=AT_THE_END) == [b"9"]
    reader = LogReader(tmp_path / "record")
    assert reader.find(9) == ends[8]
    assert reader.end == writer.end
    reader.close()
    assert len(mirrored(time, place, tmp_path / "record")) == 10, "all is wanted, and is fetched"


def test_a_mirror_goes_on_where_it_was(memory: MemoryPlace, time: Time, tmp_path: Path) -> None:
    """It continues after it was closed. A damaged mirror is made again."""
    writer = time.writer(memory)
    put(writer, b"1")
    time.mirror(memory, tmp_path / "mirror").close()
    before = read_log_mirror(tmp_path / "mirror")
    put(writer, b"2")
    assert mirrored(time, memory, tmp_path / "mirror") == [b"1", b"2"]
    assert read_log_mirror(tmp_path / "mirror") == before
    (segment,) = (tmp_path / "mirror").glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-1])
    assert mirrored(time, memory, tmp_path / "mirror") == [b"1", b"2"]
    assert read_log_mirror(tmp_path / "mirror") != before


def test_small_pieces_are_joined(memory: MemoryPlace, time: Time, tmp_path: Path) -> None:
    """Pieces are joined so that a new reader needs few requests. The log is the same."""
    writer = time.writer(memory, retention=Retention(None, None))
    early = time.mirror(memory, tmp_path / "early")
    lines = []
    for number in range(1_000):
        lines.append(b"%d" % number)
        put(writer, lines[-1], tag=f"t{number}")
        time.seconds += 10
        if number % 50 == 49:
            writer.retain()
    time.seconds += SETTLE_SECONDS
    put(writer, b"last")
    writer.retain()
    assert len(names(memory)) < 120
    assert mirrored(time, memory, tmp_path / "late") == [*lines, b"last"]
    assert early.follow()
    early.close()
    assert lines_of(tmp_path / "early") == [*lines, b"last"]
    assert put(time.writer(memory), b"0", tag="t0").repeated


def test_what_is_let_go_is_gone_everywhere(memory: MemoryPlace, time: Time, tmp_path: Path) -> None:
    """Retention waits for readers. Then the log begins later, and earlier pieces are deleted after
    a while, except for the piece with the last tag."""
    keep = Retention(max_age=DAY, max_bytes=None)
    writer = time.writer(memory, retention=keep)
    commit_in(memory, "clicks", "app", [0, 0])
    for number in range(5):
        put(writer, b"%d" % number)
        time.seconds += 10
    end = writer.end
    time.seconds += 2 * 86_400
    assert writer.retain() == 0
    commit_in(memory, "clicks", "app", end)
    assert knows_in(memory, "clicks", "app")
    assert writer.retain() > 0
    mirror = time.mirror(memory, tmp_path / "mirror")
    assert lines_of(tmp_path / "mirror") == [b"4"]
    writer.retain()
    assert len(names(memory)) == 2, "the last piece, and the mark of the start"
    assert put(writer, b"5").first == 5
    assert mirror.follow()
    mirror.close()
    assert lines_of(tmp_path / "mirror") == [b"4", b"5"]
    release_in(memory, "clicks", "app")
    assert not knows_in(memory, "clicks", "app")


def test_a_mirror_that_slept_too_long_begins_anew(
    memory: MemoryPlace, time: Time, tmp_path: Path
) -> None:
    """Its missing records are gone, so it continues where the log begins now."""
    writer = time.writer(memory, retention=Retention(max_age=DAY, max_bytes=None))
    put(writer, b"0")
    mirror = time.mirror(memory, tmp_path / "mirror")
    for number in range(1, 5):
        put(writer, b"%d" % number)
    time.seconds += 2 * 86_400
    put(writer, b"5")
    for _ in range(2):
        writer.retain()
        time.seconds += 2 * SETTLE_SECONDS
    assert mirror.follow()
    assert lines_of(tmp_path / "mirror") == [b"5"]
    mirror.close()


def test_a_gap_is_damage(memory: MemoryPlace, time: Time, tmp_path: Path) -> None:
    """A piece that is missing, or damaged, is said; nothing is skipped."""
    writer = time.writer(memory)
    for number in range(3):
        put(writer, b"%d" % number)
    name = names(memory)[1]
    data = memory.get(name)
    assert data is not None
    memory.put(name, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(LogError, match="do not fit its checksum"):
        time.mirror(memory, tmp_path / "damaged")
    memory.delete([name])
    with pytest.raises(LogError, match="no object begins there"):
        time.mirror(memory, tmp_path / "mirror")


@pytest.mark.parametrize("how", ["mirror", "place", "joined"])
def test_a_part_is_read_on_any_host(
    memory: MemoryPlace, time: Time, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the mirror of the host that planned it, from the objects, or from what they became."""
    monkeypatch.setattr(piece_log, "JOIN_PIECES", 3)
    writer = time.writer(memory, retention=Retention(None, None))
    ends = []
    for number in range(8):
        put(writer, b"%d" % number)
        ends.append(writer.end)
    mirror = time.mirror(memory, tmp_path / "mirror")
    start, stop = ends[1][0], ends[5][0]
    folder = str(tmp_path / "mirror") if how == "mirror" else str(tmp_path / "elsewhere")
    where = LogObjects("clicks", folder, mirror.token, tuple(mirror.objects_between(start, stop)))
    assert len(where.objects) == 4
    if how == "joined":
        time.seconds += 2 * SETTLE_SECONDS
        for _ in range(2):
            put(writer, b"more")
            writer.retain()
        assert names(memory)[1] != where.objects[0][1]
    found = [*placed_blocks(where, start, stop, lambda: memory)]
    assert [line for block in found for line in block.lines] == [b"2", b"3", b"4", b"5"]
    assert found[0].first == 2
    mirror.close()


def test_what_is_appended_here_is_in_the_mirror_at_once(
    memory: MemoryPlace, tmp_path: Path
) -> None:
    """A driver's actions read what its publisher appends without a request."""
    place = CountingPlace(memory)
    logs = PlaceLogs(place, tmp_path)
    reader = logs.reader("clicks")
    writer = logs.writer("clicks", Retention())
    place.requests = 0
    writer.append([Entry.of([b"1"], "a")])
    reader.reload()
    assert (reader.end[1], place.requests) == (1, 1)
    PlaceLogWriter(memory, "clicks").append([Entry.of([b"2"], "b")])
    writer.append([Entry.of([b"3"], "c")])
    assert lines_of(tmp_path / "clicks") == [b"1", b"2", b"3"]
    reader.close()
    logs.close()


def test_a_writer_that_slept_does_not_write_into_the_past(memory: MemoryPlace, time: Time) -> None:
    """Its position was taken, joined and deleted: its append goes to the end."""
    sleeper, writer = time.writer(memory), time.writer(memory, retention=Retention(max_age=DAY))
    put(sleeper, b"0")
    for number in range(40):
        put(writer, b"%d" % number)
    for _ in range(3):
        time.seconds += 2 * SETTLE_SECONDS
        put(writer, b"more")
        writer.retain()
    assert log_pieces(memory, "clicks").piece_at(sleeper.end) is None
    assert put(sleeper, b"late").first == writer.end[1]
