"""Numbers that travel as columns come to the same as those in values that are decoded."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from progress_counts import by_function

from millstream import App, Event, algebra, emit
from millstream.driver.batch_plan.next_beat import next_beat
from millstream.engine.columns import Columns
from millstream.engine.frames import frame_of, of_frame
from millstream.engine.intake import Intake
from millstream.engine.laid_values import LaidValues
from millstream.engine.layers import Task
from millstream.engine.plan import Plan
from millstream.engine.progress import Report
from millstream.sources.json_lines import decode_lines
from millstream.sources.picked import picker
from millstream.stores.memory import MemoryStore
from millstream.stores.progress import Progress

SHARDS = 2
Block = list[bytes]
Read = Callable[[Intake, Block], None]


@dataclass
class Total:
    """The slate of a key, with what shows the order of its events."""

    total: int = 0
    last: int | None = None


@dataclass
class Mean:
    """A slate of numbers only."""

    total: int = 0
    half: float = 0.0


@dataclass
class Number:
    """The values of events."""

    n: int
    m: float | None = None


@dataclass
class Whole:
    """Values that have to be there."""

    n: int


def source(name: str) -> App:
    app = App(name)
    app.source("a", key="k", ts="t", unit="ms")
    return app


def tabled() -> App:
    """Keeps the last number, and fails for a 13."""
    app = source("tabled")

    @app.update("a", slate=Total, batch=True, across_keys=True, values=Number)
    def add(events: Any, slates: Any) -> dict[str, Any]:
        if 13 in events["n"].to_pylist():
            raise ValueError("13")
        totals, last = slates["total"].to_pylist(), slates["last"].to_pylist()
        numbers = zip(*(events[name].to_pylist() for name in ("row", "n", "m")), strict=True)
        for row, n, m in numbers:
            totals[row] += n % 1_000 + int(m or 0)
            last[row] = n
        return {"total": totals, "last": last}

    return app


def averaged() -> App:
    """Two updates of the same source, both across keys."""
    app = source("averaged")

    def add(events: Any, slates: Any) -> dict[str, Any]:
        totals = slates["total"].to_pylist()
        for row, n in zip(events["row"].to_pylist(), events["n"].to_pylist(), strict=True):
            totals[row] += n % 1_000
        return {"total": totals, "half": [total / 2 for total in totals]}

    app.update("a", name="x", slate=Mean, batch=True, across_keys=True, values=Whole)(add)
    app.update("a", name="y", slate=Mean, batch=True, across_keys=True, values=Number)(add)
    return app


def summed() -> App:
    """Every aggregate that a column of numbers is enough for."""
    app = source("summed")
    app.aggregate("a", algebra=algebra.sum("n"), name="sums")
    app.aggregate("a", algebra=algebra.mean("n"), name="means")
    app.aggregate("a", algebra=algebra.sum("n"), name="expiring", ttl="5ms")
    app.aggregate("a", algebra=algebra.count(), name="counts")
    return app


def counted() -> App:
    """Counts alone, of which no values are read."""
    app = source("counted")
    app.aggregate("a", algebra=algebra.count(), name="counts")
    app.aggregate("a", algebra=algebra.count(), name="expiring", ttl="5ms")
    return app


def limited() -> App:
    """Sums whose slates may have only a few bytes."""
    app = App("limited", slate_limit=12)
    app.source("a", key="k", ts="t", unit="ms")
    app.aggregate("a", algebra=algebra.sum("n"), name="sums")
    return app


def mixed() -> App:
    """A sum beside an update that gets each event."""
    app = source("mixed")
    app.aggregate("a", algebra=algebra.sum("n"), name="sums")

    @app.update("a")
    def keep(event: Event, slate: dict[str, Any]) -> None:
        slate["last"] = event.value

    return app


def fed() -> App:
    """An update that shows what it gets and in which order, changes it, passes it on, and fails."""
    app = source("fed")

    @app.update("a", publishes="b")
    def keep(event: Event, slate: dict[str, Any]) -> Any:
        seen = slate.setdefault("seen", [])
        seen.append([event.ts, dict(event.value)])
        del seen[:-3]
        number = event.value.pop("n")
        if number == 13:
            raise ValueError("13")
        if number == 5:
            yield emit()

    app.output("b")
    return app


def fed_together() -> App:
    """Updates that get all events of a key, or as many as they may have; each changes its own."""
    app = source("fed_together")

    @app.update("a", batch=True)
    def keep(events: list[Event], slate: dict[str, Any]) -> None:
        slate["last"] = [event.value for event in events][-2:]
        slate["events"] = slate.get("events", 0) + len(events)
        for event in events:
            event.value["n"] = None

    @app.update("a", limit=7, overload="throttle")
    def throttled(event: Event, slate: dict[str, Any]) -> None:
        slate["last"] = event.value

    return app


def quickly(intake: Intake, block: Block) -> None:
    """Reads a block as a task does."""
    picked = None if intake.fields is None else picker(intake.fields)(b"\n".join(block))
    if picked is None or not intake.take_picked(picked):
        whole(intake, block)


def whole(intake: Intake, block: Block) -> None:
    """Decodes a block completely."""
    chunk = decode_lines(block, 0, lambda: 0)
    intake.take(chunk.records, chunk.raw, "file", chunk.line_of, chunk.stamps)


def outcome(
    app: App, batches: Sequence[Sequence[Block]], read: Read, *, framed: bool = True
) -> list[Any]:
    """Runs batches with a task that reads each block, and one that feeds; returns the results.

    `framed`: the events pass between them as bytes.
    """
    workflow = app.checked()
    plan, store = Plan(workflow, SHARDS, frozenset(workflow.outputs)), MemoryStore(SHARDS)
    results: list[Any] = []
    for number, blocks in enumerate(batches):
        beat = next_beat(
            workflow,
            Progress(),
            epoch=1,
            batch=number,
            clock=7,
            started=0,
            final=False,
            lane="shuffled",
        )
        reports: list[Report] = []
        inboxes: dict[tuple[int, int], Columns] = {}
        for task_number, block in enumerate(blocks):
            with Task(plan, beat, store, range(0), task_number) as task:
                intake = Intake(workflow.sources[0], task.router, beat.clock, None, many=True)
                for half in (block[::2], block[1::2]) if len(block) % 3 else (block,):
                    if half:
                        read(intake, half)
                for place, events in task.router.take().items():
                    passed = of_frame(frame_of(events)) if framed else events
                    inboxes.setdefault(place, Columns()).extend(passed)
                reports.append(task.finish([intake]))
        with Task(plan, beat, store, range(SHARDS), len(blocks)) as task:
            task.run_layer(0, inboxes, beat)
            task.commit()
            reports.append(task.finish())
        results.append([told(report) for report in reports])
    for shard in range(SHARDS):
        with store.shard(shard).at(len(batches) - 1) as view:
            results.append(sorted(view.scan(b"")))
    return results


def told(report: Report) -> tuple[Any, ...]:
    return (
        report.sources,
        report.highest,
        [by_function(report.functions, name) for name in ("processed", "taken", "failed")],
        sum(counts.slates for counts in report.functions.values()),
        report.dead_letters,
        sorted(map(repr, report.rows.letters)),
        report.rows.outputs,
    )


numbers = st.sampled_from((1, -2, 5, 0, 7, -100, 10**15, 10**17, -(10**18) + 1))
odd = st.sampled_from((13, 2.5, -0.0, "7", None, True, [1], 10**18, 2**63, -(2**63), 2**70))


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    """Lines of one layout, a few or many; in some blocks, one of them has an odd number."""
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from(("x", "y", "zz", "w")), st.integers(1, 9), numbers),
            min_size=1,
            max_size=12,
        )
    )
    rows *= draw(st.sampled_from((1, 1, 7, 20)))
    more = draw(st.sampled_from(({}, {}, {"m": 4}, {"text": "t"}, {"m": 0.5})))
    values = [{"k": key, "t": ts, "n": n} | more for key, ts, n in rows]
    if draw(st.integers(0, 3)) == 0:
        values[draw(st.integers(0, len(values) - 1))]["n"] = draw(odd)
    if draw(st.integers(0, 9)) == 0:
        del values[0]["n"]
    return [json.dumps(value, separators=(",", ":")).encode() for value in values]


@pytest.mark.parametrize(
    "made", [tabled, averaged, summed, counted, limited, mixed, fed, fed_together]
)
@settings(max_examples=examples(60))
@given(st.lists(st.lists(blocks(), min_size=1, max_size=4), min_size=1, max_size=3), st.booleans())
def test_numbers_as_columns_come_to_the_same(
    made: Callable[[], App], batches: list[list[Block]], framed: bool
) -> None:
    """The same slates, dead letters and counts, in any mixture of lines that are read as columns
    and lines that are decoded, over several batches."""
    app = made()
    assert outcome(app, batches, quickly, framed=framed) == outcome(app, batches, whole)


@pytest.mark.parametrize("made", [tabled, averaged, summed, fed, fed_together])
def test_numbers_travel_as_columns(made: Callable[[], App]) -> None:
    """Lines of one layout are not decoded, and of the values only the numbers are sent."""
    block = [b'{"k":"x%d","t":%d,"n":%d}' % (n % 100, n, n) for n in range(1_000)]
    workflow = made().checked()
    plan = Plan(workflow, SHARDS, frozenset())
    beat = next_beat(
        workflow, Progress(), epoch=1, batch=0, clock=7, started=0, final=False, lane="shuffled"
    )
    with Task(plan, beat, MemoryStore(SHARDS), range(0), 1) as task:
        intake = Intake(workflow.sources[0], task.router, beat.clock, None, many=True)
        assert intake.fields is not None
        picked = picker(intake.fields)(b"\n".join(block))
        assert picked is not None
        assert picked.lines is None
        assert intake.take_picked(picked)
        placed = task.router.take()
        laid = {plan.functions[function].name for (function, _), c in placed.items() if c.laid}
    assert laid == {update.name for update in workflow.updates} - {"means", "expiring"}


def test_no_lines_are_made_for_updates_that_emit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for those with timers nor for others: making the lines takes as long as the call."""
    app = source("silent")

    @app.update("a")
    def plain(event: Event, slate: dict[str, Any]) -> None:
        slate["last"] = event.value

    @app.update("a", on_timer=lambda timer, slate: None)
    def timed(event: Event, slate: dict[str, Any]) -> None:
        slate["last"] = event.value

    block = [b'{"k":"x%d","t":%d,"n":%d}' % (n % 100, n, n) for n in range(1_000)]
    expected = outcome(app, [[block]], whole)
    monkeypatch.delattr(LaidValues, "values")
    assert outcome(app, [[block]], quickly) == expected
