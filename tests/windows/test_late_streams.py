"""Late events of streams in event-time order count against what a job's answers claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from engine.in_process import InProcess
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.windows import Job
from millstream.windows.job_view import shown
from millstream.windows.placed import job_parts

SECOND = 1_000_000
NODES = ("a", "b")
Values = list[dict[str, Any]]


def lines(record: Any) -> Iterator[tuple[str, int]]:
    yield "lines", 1


def an_app(nodes: Any = ("a",), **job: Any) -> ms.App:
    app = ms.App("logs", order="event-time")
    for node in nodes.values() if isinstance(nodes, dict) else nodes:
        app.source(node)
    given: dict[str, Any] = {"range": "1s", "bounds": "count", "combine": ms.algebra.count()}
    app.add(Job(map=lines, **{**given, **job}), name="counts", nodes=nodes)
    return app


def at(seconds: float, count: int = 1, node: str = "a") -> list[Event]:
    """Events of a second, a millisecond apart."""
    start = round(seconds * SECOND)
    return [Event(node, start + 1_000 * number, "", {"n": number}) for number in range(count)]


def run(app: ms.App, batches: Sequence[Sequence[Event]]) -> InProcess:
    engine = InProcess(app.workflow())
    for batch in batches:
        engine.batch(batch)
    engine.settle(final=True)
    assert engine.letters == []
    return engine


def summaries(engine: InProcess, second: int | None = None) -> Values:
    """Returns the summaries of all windows, or of one, in order."""
    found = [event.value for event in sorted(engine.streams["counts.windows"], key=lambda e: e.ts)]
    return [one for one in found if second is None or one["from"] == second * SECOND]


def test_a_stream_that_is_mostly_late() -> None:
    """Each batch has ten records of a second and a hundred of the second before, which are late.
    Answers after the first of them leave the upper bound open, and say how much was late."""
    batches = [[*at(second + 0.9, 10), *at(second - 1, 100)] for second in range(1, 11)]
    engine = run(an_app(), batches)
    assert len(engine.late) == 900
    last = summaries(engine)[-1]
    assert last["total"]["high"] is None
    assert last["total"]["low"] == 10
    assert last["completeness"]["late"] == pytest.approx(900 / 1_100, abs=0.01)
    for answer in summaries(engine)[2:]:
        assert answer["total"]["high"] is None
        assert answer["completeness"]["late"] > 0.5


def test_windows_are_corrected() -> None:
    """While a window is corrected, its answer is given again with bounds that hold its late
    records."""
    batches = [at(0, 10), at(5, 1), at(0.5, 7), at(9, 1)]
    engine = run(an_app(corrections=100), batches)
    first, *_, last = summaries(engine, 0)
    assert (first["total"]["low"], first["total"]["high"], first["total"]["final"]) == (
        10,
        10,
        False,
    )
    assert (last["total"]["low"], last["total"]["known"]["high"]) == (10, 17)
    assert last["accounts"]["a"]["late"] == 7
    assert (first["completeness"]["records"], last["completeness"]["records"]) == (1.0, None)


def test_a_node_whose_events_are_all_late() -> None:
    """It was idle, and its clock is hours behind that of the other node. It has no record in any
    window, and its late ones are known."""
    batches = [
        [*at(7_200 + second, 5), *(at(second, 5, "b") if second >= 15 else [])]
        for second in range(35)
    ]
    engine = run(an_app(NODES), batches)
    assert len(engine.late) == 100
    last = summaries(engine)[-1]
    assert last["total"]["high"] is None
    assert last["completeness"]["late"] > 0.3


def test_streams_that_functions_publish() -> None:
    """A late event of their source may have been meant for any of them."""
    app = ms.App("logs", order="event-time")
    app.source("all")
    app.map("all", publishes=["a", "b"], name="split")(
        lambda event: [ms.emit(event.value["node"], value=event.value)]
    )
    job = Job(map=lines, range="1s", bounds="count", combine=ms.algebra.count())
    app.add(job, name="counts", nodes=["a", "b"])
    batches = [
        [Event("all", round(second * SECOND), "", {"node": node}) for second in seconds]
        for seconds, node in (([0, 1, 2], "a"), ([3, 4], "b"), ([0.5, 1.5], "a"), ([6, 8], "b"))
    ]
    engine = run(app, batches)
    assert len(engine.late) == 2
    assert summaries(engine)[-1]["total"]["high"] is None
    assert summaries(engine)[-1]["completeness"]["late"] > 0


def test_late_events_in_tests_of_an_application() -> None:
    """`feed_late` gives events that came too late; in order of arrival there are none."""
    test = ms.testing.run(an_app(), [*at(0, 10), *at(5)])
    test.feed_late(at(0, 30)).feed(at(9))
    (*_, last) = test.stream("counts.windows")
    assert last.value["completeness"]["late"] == pytest.approx(30 / 41)
    assert last.value["total"]["high"] is None
    by_arrival = ms.App("logs")
    by_arrival.source("a")
    by_arrival.output("a")
    with pytest.raises(ms.DefinitionError, match="order must be 'event-time'"):
        ms.testing.run(by_arrival).feed_late(at(0))


def test_jobs_warn_of_late_streams() -> None:
    """The accounts and the warning that `jobs` and the page show have the late events."""
    app = an_app()
    test = ms.testing.run(app, [*at(0, 50), *at(7_205)]).feed_late(at(5, 60)).feed(at(7_209))
    parts = job_parts({name: part.described() for name, part in app.parts.items()})
    view = shown("counts", parts["counts"], test.slates("counts.root"), 1)
    assert (view.accounts["a"].read, view.accounts["a"].late) == (111, 60)
    assert view.accounts["a"].residual == 0
    assert view.warnings == [
        "a: 54% of 111 records came late, up to 2h behind: is its log in another time zone (zone)?"
    ]


moments = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(0, 3)), max_size=30
)
sizes = st.sampled_from(
    [
        {"range": "10ms"},
        {"range": "20ms", "slide": "10ms", "pane": "5ms"},
        {"range": 6, "slide": 2, "by": "records"},
        {"range": 30, "by": "bytes"},
        {"range": 4, "by": "sequence", "sequence": "n"},
    ]
)


def events_of(moments: Sequence[tuple[str, int, int]]) -> list[Event]:
    return [Event(node, ts * 1_000, "", {"n": number}) for node, ts, number in moments]


@given(moments, sizes, cuttings, st.integers(1, 3), lanes, st.sampled_from([0, 3, 100]))
@settings(max_examples=examples(100), deadline=None)
def test_the_engine_is_the_reference_with_late_events(
    moments: list[tuple[str, int, int]],
    size: dict[str, Any],
    cuts: list[int],
    shards: int,
    lane: Lane,
    corrections: int,
) -> None:
    """Over the events that are not late, with those that are set aside."""
    app = an_app(NODES, **size, corrections=corrections, reducers=2)
    check_engine_is_reference(app, events_of(moments), cuts, shards, lane)


@given(moments, cuttings, st.sampled_from(["10ms", "20ms"]))
@settings(max_examples=examples(150), deadline=None)
def test_bounds_hold_the_truth(
    moments: list[tuple[str, int, int]], cuts: list[int], length: str
) -> None:
    """The last answer of a window has all records within its bounds, the late ones included, or
    says what it knows of. None that a record may break later has a confidence of 1."""
    app = an_app(NODES, range=length, corrections=1_000)
    events, size = events_of(moments), int(length[:2]) * 1_000
    engine = check_engine_is_reference(app, events, cuts, 1, "one-task")
    said: dict[int, Values] = {}
    for answer in summaries(engine) if "counts.windows" in engine.streams else []:
        said.setdefault(answer["from"] // size, []).append(answer)
    for window, answers in said.items():
        total = answers[-1]["total"]
        truth = sum(event.ts // size == window for event in events)
        assert not any(answer["total"]["final"] for answer in answers)
        assert total["low"] <= truth
        assert total["high"] is None or truth <= total["high"]
        for answer in answers:
            bound = answer["total"]
            if bound["confidence"] == 1.0:
                assert bound["low"] <= truth
                assert bound["high"] is None or truth <= bound["high"]


@given(moments, cuttings, sizes)
@settings(max_examples=examples(60), deadline=None)
def test_every_late_record_is_accounted_for(
    moments: list[tuple[str, int, int]], cuts: list[int], size: dict[str, Any]
) -> None:
    """Each record that a node has read is either on time or late."""
    engine = check_engine_is_reference(
        an_app(NODES, **size), events_of(moments), cuts, 1, "one-task"
    )
    for answer in summaries(engine) if "counts.windows" in engine.streams else []:
        assert all(account["residual"] == 0 for account in answer["accounts"].values())
