"""Records of which only key and time were decoded come to the same as whole ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from progress_counts import by_function

from millstream import App, Event, algebra
from millstream.codec import encode_value
from millstream.columnar.picked_fields import Fields
from millstream.driver.batch_plan.next_beat import next_beat
from millstream.engine.intake import Intake
from millstream.engine.layers import Task, run_whole
from millstream.engine.plan import Plan
from millstream.model.duration import TIME_LIMIT
from millstream.sources.json_lines import decode_lines
from millstream.sources.picked import picker
from millstream.stores.memory import MemoryStore
from millstream.stores.progress import Progress

LATE = 100


@dataclass
class Number:
    """The values of events, and a slate."""

    n: int = 0


def an_app(key: Any, ts: Any, unit: Any, **more: Any) -> App:
    app = App("counted")
    app.source("a", key=key, ts=ts, unit=unit)
    app.aggregate("a", algebra=algebra.count(), name="hits", **more)
    return app


def keeping(key: Any, ts: Any, unit: Any) -> App:
    """An application that keeps the values as they are, and looks into them."""
    app = App("kept")
    app.source("a", key=key, ts=ts, unit=unit)

    @app.update("a")
    def keep(event: Event, slate: dict[str, Any]) -> None:
        slate.setdefault("values", []).append(event.value)

    app.output("a")
    return app


def outcome(
    app: App, lines: list[bytes], pick: bool, stamps: list[int] | None = None
) -> tuple[Any, ...] | None:
    """Returns the results of the lines; None if the fast path should have been taken and was
    not."""
    workflow = app.checked()
    plan, store = Plan(workflow, 2, frozenset(workflow.outputs)), MemoryStore(2)
    beat = next_beat(
        workflow, Progress(), epoch=1, batch=0, clock=7, started=0, final=False, lane="one-task"
    )
    with Task(plan, beat, store, range(2), 1) as task:
        intake = Intake(workflow.sources[0], task.router, beat.clock, LATE)
        if pick:
            assert intake.fields is not None
            picked = picker(intake.fields)(b"\n".join(lines))
            if picked is None or not intake.take_picked(picked, stamps):
                return None
        else:
            chunk = decode_lines(lines, 0, lambda: 0)
            intake.take(chunk.records, chunk.raw, "file", chunk.line_of, stamps)
        run_whole(task)
        report = task.finish([intake])
    rows = []
    for number in range(2):
        with store.shard(number).at(0) as view:
            rows.extend(view.scan(b""))
    told = (
        report.sources,
        report.highest,
        by_function(report.functions, "processed"),
        by_function(report.functions, "taken"),
    )
    outputs = {name: sorted(output) for name, output in report.rows.outputs.items()}
    letters = sorted(map(repr, report.rows.letters))
    return sorted(rows), told, report.emitted, report.late, letters, outputs


records = st.lists(
    st.builds(
        lambda key, ts: {"k": key, "t": ts, "n": [ts]},
        st.sampled_from(("x", "y", "é", "", "long" * 50)),
        st.sampled_from((LATE, LATE + 1, 101, 5_000, 10**15, TIME_LIMIT - 1, TIME_LIMIT, -5)),
    ),
    min_size=1,
    max_size=8,
)
shapes = st.sampled_from((("k", "t", "us"), ("k", "t", "ms"), (None, "t", "s"), ("k", None, None)))


@pytest.mark.parametrize("made", [an_app, keeping])
@given(records, shapes, st.one_of(st.none(), st.integers(-1_000, TIME_LIMIT // 2)))
@example([{"k": "x", "t": 101, "n": 1}], ("k", "t", "us"), None)
@example([{"k": "x", "t": 101, "n": 1}], ("k", None, None), 200)
def test_picked_records_come_to_the_same(
    made: Callable[..., App], given: list[Any], shape: tuple[Any, ...], arrived: int | None
) -> None:
    """The same slates, outputs and counts, in any unit; what cannot be picked is not counted."""
    lines = [encode_value(record) for record in given]
    stamps = None if arrived is None else [arrived + number for number in range(len(lines))]
    picked = outcome(made(*shape), lines, True, stamps)
    if picked is not None:
        assert picked == outcome(made(*shape), lines, False, stamps)


def test_plain_records_are_picked() -> None:
    """The fast way is taken where it can be, and left for a late event."""
    app, good = an_app("k", "t", "us"), {"k": "x", "t": 101}
    assert outcome(app, [encode_value(good)], pick=True) is not None
    assert outcome(app, [encode_value({**good, "t": LATE})], pick=True) is None


def test_values_are_read_if_anyone_needs_them() -> None:
    """Another kind of reader, or a field that is not plain, and records are decoded whole."""

    def fields(app: App, *, many: bool = False) -> Any:
        workflow = app.checked()
        plan = Plan(workflow, 1, frozenset(workflow.outputs))
        beat = next_beat(
            workflow, Progress(), epoch=1, batch=0, clock=7, started=0, final=False, lane="one-task"
        )
        with Task(plan, beat, MemoryStore(1), range(1), 1) as task:
            return Intake(workflow.sources[0], task.router, 7, None, many=many).fields

    assert fields(an_app("k", "t", "us")) == Fields("k", "t")
    assert fields(an_app(None, "t", "us", ttl="1s")) == Fields(None, "t")
    summed = an_app("k", "t", "us")
    summed.aggregate("a", algebra=algebra.sum("n"), name="total")
    kept = an_app("k", "t", "us")
    kept.output("a")
    tabled = App("tabled")
    tabled.source("a", key="k", ts="t", unit="us")
    across = {"batch": True, "across_keys": True, "slate": Number, "values": Number}
    tabled.update("a", name="add", **across)(lambda events, slates: {})
    assert fields(tabled) == Fields("k", "t", lines=True, numbers=True)
    mapped = keeping("k", "t", "us")
    mapped.map("a", name="seen")(lambda event: None)
    assert fields(summed) == Fields("k", "t", lines=True, numbers=True, only_laid=True)
    deeper = an_app("k", "t", "us")
    deeper.aggregate("a", algebra=algebra.sum("n.m"), name="total")
    assert [fields(app) for app in (deeper, mapped)] == [None, None]
    assert [fields(app) for app in (kept, keeping("k", "t", "us"))] == [
        Fields("k", "t", lines=True)
    ] * 2
    assert fields(keeping("k", "t", "us"), many=True) == Fields("k", "t", lines=True)
    fed = App("fed")
    fed.source("a", key="k", ts="t", unit="us")
    fed.update("a", name="keep", slate=dict)(lambda event, slate: None)
    assert fields(fed) == Fields("k", "t", lines=True)
    assert fields(fed, many=True) == Fields("k", "t", lines=True, whole=True)
    waiting = App("waiting", order="event-time")
    waiting.source("a", key="k", ts="t", unit="us")
    waiting.update("a", name="keep", slate=dict)(lambda event, slate: None)
    assert fields(waiting, many=True) == Fields("k", "t", lines=True)
    for key, ts, unit in (("k.l", "t", "us"), ("k", "t", None), ("t", "t", "us"), (str, "t", "us")):
        assert fields(an_app(key, ts, unit)) is None
