"""The driver's state after a batch."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from engine.in_process import InProcess
from hypothesis import given
from hypothesis import strategies as st
from progress_counts import by_function, functions

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.engine.progress import Report, SourceReport, advanced, greatest, least
from millstream.engine.sink_rows import SinkRows, letter_row, sink_row
from millstream.model.rules import DeadLetter
from millstream.stores.progress import PendingWork, Progress, SourceProgress


def after(before: Progress, *reports: Report, clock: int = 50) -> Progress:
    return advanced(before, list(reports), before.batch + 1, clock, {})


def test_counts_add_up_over_tasks_and_batches() -> None:
    """Events, late events, dead letters and deliveries are sums over all tasks so far."""
    one = Report(
        sources={"a": SourceReport(2)},
        late=1,
        dead_letters=1,
        functions=functions(processed={"f": 2}),
        waiting=3,
    )
    two = Report(
        sources={"a": SourceReport(1), "b": SourceReport(5)},
        functions=functions(processed={"f": 1, "g": 4}),
        waiting=-1,
    )
    progress = after(after(Progress(), one, two), two)
    assert (progress.events, progress.late, progress.dead_letters) == (14, 1, 1)
    assert by_function(progress.functions, "processed") == {"f": 4, "g": 8}
    assert progress.waiting == 1
    assert progress.batch == 1


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_the_time_of_storing_is_counted_by_function(lane: Lane) -> None:
    """A function whose slates are many has most of it; it adds up over batches."""
    app = ms.App("storing", order="arrival")
    app.source("s")
    app.source("t")

    @app.update("s")
    def many(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["at"] = event.ts

    @app.update("t")
    def few(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["at"] = event.ts

    engine, known = InProcess(app.workflow(), shards=2, lane=lane), dict[str, int]()
    for batch in range(2):
        events = [ms.Event("s", 1_000 * batch + n, str(n), None) for n in range(500)]
        engine.batch([*events, ms.Event("t", 1_000 * batch, "k", None)])
        now = by_function(engine.progress.functions, "stored")
        assert now["many"] > known.get("many", 0)
        assert now["many"] > 5 * now["few"]
        known = now


def test_a_source_is_heard_of_only_when_it_brings_records() -> None:
    """A source's clock is that of the last batch that brought any of its records."""
    before = Progress(sources={"a": SourceProgress(9, 10, "here", 4)})
    assert after(before, Report(sources={"a": SourceReport(0)})).sources["a"] == SourceProgress(
        9, 10, "here", 4
    )
    moved = after(
        before, Report(sources={"a": SourceReport(2, 7)}), Report(sources={"a": SourceReport(0, 5)})
    )
    assert moved.sources["a"] == SourceProgress(9, 50, "here", 6)


def test_positions_are_kept_until_there_are_newer_ones() -> None:
    """A source that is not named keeps its position."""
    before = Progress(sources={"a": SourceProgress(position=1), "b": SourceProgress(position=2)})
    progress = advanced(before, [], 0, 50, {"b": 3, "c": 4})
    assert {name: source.position for name, source in progress.sources.items()} == {
        "a": 1,
        "b": 3,
        "c": 4,
    }


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=6)
)
def test_time_never_goes_back(reports: list[tuple[int | None, int | None]]) -> None:
    """Neither the horizon nor the highest time falls, whatever a batch reports."""
    progress = Progress()
    for horizon, highest in reports:
        now = after(progress, Report(horizon=horizon, highest=highest))
        assert now.horizon == greatest(progress.horizon, horizon)
        assert now.highest == greatest(progress.highest, highest)
        progress = now


def test_what_is_to_come_is_known_afresh() -> None:
    """Waiting events, timers and feedback to come are those that this batch's tasks report."""
    before = Progress(pending=PendingWork(1, 1, 1, 3, 1))
    progress = after(
        before,
        Report(pending=PendingWork(7, 8, 9, 1, 4)),
        Report(pending=PendingWork(6, None, None, 1, 5)),
    )
    assert progress.pending == PendingWork(6, 8, 9, 2, 4)
    assert after(progress, Report()).pending == PendingWork()


def test_least_and_greatest_leave_out_what_is_not_there() -> None:
    """None is no time; zero is one."""
    assert (least(None, 3, 0), greatest(None, -3, None)) == (0, -3)
    assert (least(), greatest(None)) == (None, None)


def test_progress_survives_being_written() -> None:
    """The record that commits a batch reads back as it was."""
    progress = after(
        Progress(query="q"), Report(sources={"a": SourceReport(highest=5)}, horizon=3), clock=9
    )
    assert msgspec.json.decode(msgspec.json.encode(progress), type=Progress) == progress


@pytest.mark.parametrize("value", [{"n": 1 << 80}, b"\x00\xff", None, [1.5, "é"]])
def test_any_value_travels_in_a_dead_letter(value: object) -> None:
    """A report carries dead letters with whatever value an event can have."""
    letter = DeadLetter("f", "s", 1, "k", value, "ValueError: no", batch=2)
    report = Report(rows=SinkRows(letters=[letter_row(letter)]))
    (found,) = msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=Report).rows.letters
    assert DeadLetter(**sink_row(found)) == letter
