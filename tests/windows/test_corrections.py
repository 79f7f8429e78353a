"""Late panes and windows that slide: every answer is of exactly the panes that had come."""

from __future__ import annotations

from collections import Counter
from typing import Any

from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from windows.messages import NODES, a_job, an_app, events, told

import millstream as ms
from millstream.model.event import Event
from millstream.windows import Area, Job

PANES = 9
sizes = st.sampled_from([{"range": 2}, {"range": 4, "slide": 1}, {"range": 5, "slide": 2}])


def subtract(a: int, b: int) -> int:
    return a - b


@st.composite
def coming(draw: st.DrawFn) -> tuple[Job, list[Any]]:
    """A job that closes windows early, and panes in nearly any order."""
    uncombine = draw(st.sampled_from([None, subtract]))
    job = a_job(
        **draw(sizes),
        uncombine=uncombine,
        fidelity=Area(draw(st.sampled_from([0.2, 0.5, 0.9]))),
        corrections=draw(st.integers(0, 3)),
    )
    messages = [
        one
        for node in NODES
        for one in told(
            job, node, dict(enumerate(draw(st.lists(st.text("xy", max_size=2), min_size=PANES))))
        )
        if one["pane"] < PANES
    ]
    begun = [told(job, node, {0: ""}, begin=0)[0] for node in NODES]
    return job, [*begun, *draw(st.permutations(messages))]


@given(coming())
@settings(max_examples=examples(70), deadline=None)
def test_an_answer_is_of_what_had_come(given: tuple[Job, list[Any]]) -> None:
    """The first and every corrected one, merged anew or moved on; corrections are numbered."""
    job, messages = given
    run = ms.testing.run(an_app(job))
    had: list[Any] = []
    numbers = Counter[int]()
    seen = 0
    for event in events(messages):
        run.feed([event])
        had.append(event.value)
        windows = run.stream("counts.windows")[seen:]
        seen += len(windows)
        for one in windows:
            begin, end = one.value["from"], one.value["to"]
            inside = [message for message in had if begin <= message["pane"] < end]
            assert said(run, event, begin) == counted(inside)
            assert one.value.get("correction", 0) == numbers[begin]
            numbers[begin] += 1
            marked = sum(message["pane"] < message["until"] for message in inside)
            assert one.value["coverage"]["area"] == marked / (len(NODES) * (end - begin))
    if job.corrections == 0:
        assert set(numbers.values()) <= {1}


def said(run: ms.testing.Run, since: Event, begin: int) -> Counter[str]:
    """Returns the answers of a window for its keys after an event."""
    answers = [one for one in run.stream("counts") if one.ts > since.ts]
    return Counter({o.key: o.value["value"] for o in answers if o.value["from"] == begin})


def counted(messages: list[Any]) -> Counter[str]:
    found = Counter[str]()
    for message in messages:
        found.update(message["partials"])
    return found


def test_on_spark_a_window_of_time_has_until_its_end_and_its_latency() -> None:
    """Events say nothing of the wall clock there: it is looked at when the latency is over and,
    if the window has not ended, once more; those of an old log have just their latency."""
    second = 1_000_000
    app = ms.App("logs")
    for node in NODES:
        app.source(node)
    job = a_job(by="time", sequence=None, range="10s", pane="5s", latency="2s")
    app.add(job, name="counts", nodes=list(NODES))
    now = 1_000 * second
    run = ms.testing.run(app, clock=now)
    run.feed([Event("a", now, "", "x"), Event("a", now + 5 * second, "", "x")])
    run.feed([Event("b", 100 * second, "", "x"), Event("b", 105 * second, "", "x")])
    run.tick(by="2s")
    assert begins(run)[0] == 100 * second
    assert now not in begins(run)
    run.tick(by="9s")
    assert now not in begins(run)
    run.tick(by="1s")
    assert now in begins(run)


def begins(run: ms.testing.Run) -> list[int]:
    return [one.value["from"] for one in run.stream("counts.windows")]
