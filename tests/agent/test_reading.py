"""Lines become panes, the same ones as `pane_maker` makes of their records one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from file_limit import no_file_larger_than
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.agent.panes.dead_letters import DeadLetters
from millstream.agent.panes.pane_reader import PaneReader
from millstream.agent.panes.restart import Restart
from millstream.model.duration import SECOND, UNITS
from millstream.windows.panes.message import Message, Why
from millstream.windows.panes.pane_maker import Maker, Making
from millstream.windows.placed import PlacedJob

NOW = 1_000_000_000
AHEAD = UNITS["d"]
FAILS = "the map fails on this"


def words(record: Any) -> Iterator[tuple[Any, int]]:
    for word in record["line"].split():
        yield word, record["n"]
    if record["n"] == 13:
        raise ValueError(FAILS)


def add(a: int, b: int) -> int:
    return a + b


def placed(**options: Any) -> PlacedJob:
    given = {"map": words, "combine": add, "by": "records", "range": 8, "pane": 2, **options}
    logs = ms.windows.Logs(ts="ts", unit="us")
    return PlacedJob(ms.windows.Job(**given), "counts", ("web1",), logs)


class Read:
    """A reading of lines, and its results."""

    def __init__(
        self, folder: Path, job: PlacedJob, given_up: dict[int, Why] | None = None
    ) -> None:
        self.messages: list[Message] = []
        self.letters = DeadLetters(folder / "letters", [0, 0, 0])
        self.chosen = given_up or {}
        self.reading = PaneReader(
            job,
            "web1",
            "",
            Restart(),
            letters=self.letters,
            ended=lambda message, at: self.messages.append(message),
            choose=self.chosen.get,
        )

    def take(self, lines: list[bytes], slices: list[int]) -> None:
        at = 0
        for size in [*slices, len(lines)]:
            self.reading.take(lines[at : at + size], 0, ("log", 0), NOW)
            at += size


def one_by_one(job: PlacedJob, lines: list[bytes], given_up: dict[int, Why]) -> list[Message]:
    """Returns the messages that the maker makes of the same records."""
    maker, making, messages = Maker(job.job, "web1", live=True), Making(), list[Message]()
    for line in filter(None, lines):
        size = len(line) + 1
        try:
            record = json.loads(line)
            pane = job.job.span.pane_of(maker.position_of(making, record, record["ts"]))
        except Exception:
            maker.dead(making, size)
            continue
        if making.pane is None or pane > making.pane:
            messages += _moved(maker, making, pane, given_up)
        if pane == making.pane and making.given_up is None and record["n"] == 13:
            maker.dead(making, size)
        else:
            assert list(maker.take(making, record, record["ts"], size)) == []
    if making.pane is not None:
        messages += maker.end(making, making.pane + 1)
    return messages


def _moved(maker: Maker, making: Making, pane: int, given_up: dict[int, Why]) -> list[Message]:
    if making.pane is None:
        making.pane = pane
        messages = [maker.begun(making)]
    else:
        messages = list(maker.end(making, pane))
    if pane in given_up:
        maker.give_up(making, given_up[pane])
    return messages


LINE = st.one_of(
    st.sampled_from([b"", b"{", b"not json", b"[]"]),
    st.builds(
        lambda ts, n, line: json.dumps({"ts": ts, "n": n, "line": line}).encode(),
        st.integers(0, 30),
        st.integers(10, 14),
        st.sampled_from(["", "a", "a b", "b a b", "c"]),
    ),
)
AXES = {
    "records": {"by": "records", "range": 6, "pane": 3},
    "bytes": {"by": "bytes", "range": 200, "pane": 100},
    "sequence": {"by": "sequence", "sequence": "ts", "range": 6, "pane": 3},
    "kept": {"by": "sequence", "sequence": "ts", "range": 6, "pane": 3, "combine": None},
    "sum": {"by": "sequence", "sequence": "ts", "range": 6, "combine": ms.algebra.sum()},
    "count": {"by": "sequence", "sequence": "ts", "range": 6, "combine": ms.algebra.count()},
}


@pytest.mark.parametrize("axis", AXES)
@settings(max_examples=examples(120), deadline=None)
@given(
    lines=st.lists(LINE, max_size=30),
    slices=st.lists(st.integers(0, 8), max_size=5),
    up=st.sets(st.integers(0, 6)),
)
def test_panes_are_those_of_the_maker(
    tmp_path_factory: pytest.TempPathFactory,
    axis: str,
    lines: list[bytes],
    slices: list[int],
    up: set[int],
) -> None:
    """However the lines are cut into slices, with invalid and late lines and panes that are given
    up, the messages equal those of taking records one by one. Every record is in exactly one
    count."""
    job, given_up = placed(**AXES[axis]), dict.fromkeys(up, "shed")
    read = Read(tmp_path_factory.mktemp("read"), job, given_up)  # type: ignore[arg-type]
    read.take(lines, slices)
    making = read.reading.making
    if making.pane is not None:
        read.reading.end(making.pane + 1)
    if axis not in ("records", "bytes"):  # of those a pane that is given up is not read at all
        assert read.messages == one_by_one(job, lines, given_up)  # type: ignore[arg-type]
    counted = sum(
        told.records + told.shed + told.dead + sum(told.late.values())
        for message in read.messages
        for told in message.nodes.values()
    )
    left = making.records + making.shed + making.dead + sum(making.late.values())
    assert counted + left == making.read == len([line for line in lines if line])


def lines(*records: tuple[int, str]) -> list[bytes]:
    return [json.dumps({"ts": ts, "n": 1, "line": line}).encode() for ts, line in records]


def test_panes_of_a_skipped_count_are_not_parsed(tmp_path: Path) -> None:
    """If a pane is counted in records and given up, the contents of its lines do not matter."""
    read = Read(tmp_path, placed(range=2, pane=2), {0: "shed"})
    read.reading.begin(0)
    read.take([b"{", b"{", b"{", *lines((1, "a"))], [])
    read.reading.end(2)
    told = [message.nodes["web1"] for message in read.messages[1:]]
    assert [(one.mark, one.shed, one.dead, one.records) for one in told] == [
        ("lost", 2, 0, 0),
        ("data", 0, 1, 1),
    ]


def test_a_record_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """If map fails after it has given pairs, none of them is in the pane; the line is kept."""
    read = Read(tmp_path, placed())
    read.take([b'{"ts": 1, "n": 13, "line": "a b"}', *lines((1, "a"))], [])
    assert read.reading.making.partials == {"a": 1}
    letter = json.loads((tmp_path / "letters").read_text())
    assert letter["error"] == f"ValueError: {FAILS}"
    assert letter["line"] == '{"ts": 1, "n": 13, "line": "a b"}'
    assert (letter["file"], letter["offset"]) == ("log", 0)


def test_a_time_far_ahead_is_a_mistake(tmp_path: Path) -> None:
    """A single line with a time in the far future does not end all panes until then."""
    read = Read(tmp_path, placed(by="time", range="2s", pane="1s"))
    far = NOW + AHEAD // 2
    read.take(lines((NOW, "a"), (NOW + AHEAD + 1, "b"), (NOW, "c"), (far, "d"), (far, "e")), [])
    assert [message.until for message in read.messages] == [1000, 1001, 44200]
    assert read.messages[1].partials == {"a": 1, "c": 1}
    assert read.messages[1].nodes["web1"].dead == 1


HOUR = 3_600 * SECOND


def wrong_time(folder: Path, times: list[int], after: list[int] | None = None) -> tuple[int, int]:
    """Returns how many lines with these times are dead letters and how many are late. `after` lines
    follow in the chunk."""
    read = Read(folder, placed(by="time", range="2m", pane="1m"))
    given, more = lines(*((ts, "a") for ts in times)), lines(*((ts, "a") for ts in after or ()))
    read.reading.take(given, 0, ("log", 0), NOW + 400 * 24 * HOUR, more)
    making = read.reading.making
    told = [one.nodes["web1"] for one in read.messages]
    late = sum(sum(one.late.values()) for one in told) + sum(making.late.values())
    return sum(one.dead for one in told) + making.dead, late


def test_one_wrong_time_does_not_make_the_rest_late(tmp_path: Path) -> None:
    """A line that is a year ahead is a dead letter if the next lines are not; at the beginning of a
    log, in the middle, at the end of a slice, and several of them in a row."""
    plain = [NOW + second * SECOND for second in range(0, 600, 10)]
    wrong = NOW + 365 * 24 * HOUR
    assert wrong_time(tmp_path, [*plain[:30], wrong, *plain[30:]]) == (1, 0)
    assert wrong_time(tmp_path, [wrong, *plain]) == (1, 0)
    letter = json.loads((tmp_path / "letters").read_text())
    assert letter["error"] == "its time is more than 1h (logs: jump) after the lines after it"
    assert wrong_time(tmp_path, [*plain[:30], wrong, wrong + 1, wrong, *plain[30:]]) == (3, 0)
    assert wrong_time(tmp_path, [*plain[:30], wrong], after=plain[30:38]) == (1, 0)


def test_a_jump_that_the_next_lines_confirm_is_none(tmp_path: Path) -> None:
    """A log may be quiet for hours, also before and after a single line, and end after that."""
    quiet = [NOW, NOW + SECOND, NOW + 9 * HOUR, NOW + 20 * HOUR, NOW + 20 * HOUR + SECOND]
    assert wrong_time(tmp_path, quiet) == (0, 0)
    assert wrong_time(tmp_path, [NOW, NOW + 30 * 24 * HOUR]) == (0, 0)


def read_live(folder: Path, *minutes: int, every: int = 1, behind: int = 0) -> tuple[int, int]:
    """Returns how many lines are dead letters and how many are late, if each is read when it is
    written. There is a line every `every` minutes, with a time that is a number of minutes after
    the first. The clock is `behind` hours behind."""
    read = Read(folder, placed(by="time", range="2m", pane="1m"))
    for number, minute in enumerate(minutes):
        [line] = lines((NOW + minute * UNITS["m"], "a"))
        now = NOW + number * every * UNITS["m"] - behind * HOUR
        read.reading.take([line], 0, ("log", number * 100), now)
    making = read.reading.making
    told = [one.nodes["web1"] for one in read.messages]
    late = sum(sum(one.late.values()) for one in told) + sum(making.late.values())
    return sum(one.dead for one in told) + making.dead, late


def test_one_wrong_time_in_a_log_that_is_being_written(tmp_path: Path) -> None:
    """A line that is hours after the clock, and that no line follows yet, does not make those late
    that are written after it; if the next ones agree with it, only the first is set aside. A log
    that is ahead of the clock as a whole, as with a wrong zone, is read."""
    assert read_live(tmp_path, 0, 1, 1200, 3, 4) == (1, 0)
    assert read_live(tmp_path, 0, 1, 1200, 3, 1201, 5) == (2, 0)
    assert read_live(tmp_path, 0, 1, 1200, 1201, 1202, 1203) == (1, 0)
    assert read_live(tmp_path, 1200, 1, 2, 3) == (1, 0)
    assert read_live(tmp_path, 0, 1, 2, 200, 201, behind=5) == (1, 0)
    assert read_live(tmp_path, 0, 200, 400, 600, every=200, behind=5) == (1, 0)


@pytest.mark.parametrize("at", range(1, 12))
def test_one_time_far_behind_costs_no_other_line(tmp_path: Path, at: int) -> None:
    """A line of before the clock was set is late, and those before it are not taken for wrong: at
    the beginning of a log, in a log of a line now and then, and at its end."""
    old = NOW - 365 * 24 * HOUR
    for apart in (SECOND, 2 * HOUR):
        times = [NOW + number * apart for number in range(12)]
        assert wrong_time(tmp_path, [*times[:at], old, *times[at:]]) == (0, 1)


def test_disorder_is_not_taken_for_a_wrong_time(tmp_path: Path) -> None:
    """Lines that are in no order by less than the jump are as they were: on time, or late."""
    assert wrong_time(tmp_path, [NOW, NOW + HOUR // 2, NOW + SECOND]) == (0, 1)


def test_a_long_way_to_the_next_record(tmp_path: Path) -> None:
    """Any number of panes without records between two records makes one message."""
    read = Read(tmp_path, placed(by="time", range="1s", pane="1s"))
    far = 1_000_000_000
    read.reading.take(lines((0, "a"), (far * SECOND, "b")), 0, ("log", 0), far * SECOND)
    panes = [(one.pane, one.until) for one in read.messages]
    assert panes == [(0, 0), (0, 1), (1, far)]
    assert read.reading.making.pane == far
    assert read.reading.making.partials == {"b": 1}


def test_the_extent_ends_it(tmp_path: Path) -> None:
    """Records before the beginning are outside; the first one after the extent ends all panes."""
    read = Read(tmp_path, placed(by="sequence", sequence="ts", range=4, begin=4, extent=8))
    read.take(lines((3, "x"), (4, "a"), (5, "b")), [])
    assert not read.reading.over
    read.take(lines((99, "x"), (6, "y")), [])
    assert read.reading.over
    panes = [(one.pane, one.until, one.partials) for one in read.messages]
    assert panes == [(2, 2, {}), (2, 3, {"a": 1, "b": 1}), (3, 6, {})]
    assert read.reading.making.outside == 1


def test_dead_letters_are_bounded(tmp_path: Path) -> None:
    """Dead letters that do not fit into the file are only counted. After a restart the file has its
    contents of the restart point."""
    letters = DeadLetters(tmp_path / "letters", [0, 0, 0], most_bytes=200)
    letters.add("log", 0, b"x" * 50, "bad")
    at = letters.state
    for number in range(5):
        letters.add("log", number, b"x" * 50, "bad")
    assert letters.state[1:] == [2, 4]
    assert (tmp_path / "letters").stat().st_size <= 200
    again = DeadLetters(tmp_path / "letters", at, most_bytes=200)
    assert again.state == at
    assert len((tmp_path / "letters").read_text().splitlines()) == 1


def test_dead_letters_on_a_full_disk(tmp_path: Path) -> None:
    """A letter without room is counted, and leaves no part; and the next one is written whole."""
    path = tmp_path / "letters"
    letters = DeadLetters(path, [0, 0, 0])
    letters.add("log", 0, b"first", "bad")
    whole = path.read_bytes()
    with no_file_larger_than(len(whole) + 10):
        letters.add("log", 1, b"second", "bad")
    assert (path.read_bytes(), letters.state) == (whole, [len(whole), 1, 1])
    letters.add("log", 2, b"third", "bad")
    letters.close()
    assert [json.loads(line)["line"] for line in path.open()] == ["first", "third"]


def test_dead_letters_after_a_crash(tmp_path: Path) -> None:
    """Whatever part of a later letter is in the file, a restart goes back to the restart point."""
    path = tmp_path / "letters"
    letters = DeadLetters(path, [0, 0, 0])
    letters.add("log", 0, b"first", "bad")
    at, first = letters.state, path.read_bytes()
    letters.add("log", 1, b"second", "bad")
    letters.close()
    whole = path.read_bytes()
    for size in range(len(first), len(whole) + 1):
        path.write_bytes(whole[:size])
        again = DeadLetters(path, at)
        assert (path.read_bytes(), again.state) == (first, at)
        again.add("log", 1, b"second", "bad")
        again.close()
        assert path.read_bytes() == whole
