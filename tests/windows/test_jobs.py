"""Jobs: windows over the logs of nodes, against a plain definition, and the engine against both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.windows import Area, Job

NODES = ("a", "b")
logs = st.lists(
    st.tuples(st.sampled_from(NODES), st.integers(0, 60), st.text("xyz", max_size=3)), max_size=25
)
sizes = st.sampled_from([(10, 10, None), (20, 10, 5), (15, 5, None), (12, 3, 1), (9, 6, None)])
"""Range, slide and pane in milliseconds, as the times of the logs are."""


def letters(record: Any) -> Iterator[tuple[str, int]]:
    """A pair for each letter."""
    for letter in record["text"]:
        yield letter, 1


def an_app(order: Any = "event-time", nodes: Any = NODES, **job: Any) -> ms.App:
    app = ms.App("logs", order=order)
    for node in NODES:
        app.source(node)
    job.setdefault("combine", ms.algebra.sum())
    app.add(Job(map=letters, **job), name="counts", nodes=nodes)
    return app


def events_of(given: list[tuple[str, int, str]]) -> list[Event]:
    return [Event(node, ts * 1_000, "", {"text": text}) for node, ts, text in given]


def plain(
    given: list[tuple[str, int, str]], length: int, slide: int
) -> dict[tuple[int, int], Counter[str]]:
    """The letters of every window that begins with the first record's pane or later."""
    found = {}
    for begin in range(0, 61, slide):
        inside = [text for _, ts, text in given if begin <= ts < begin + length]
        found[begin, begin + length] = Counter("".join(inside))
    return found


def said(run: ms.testing.Run, unit: int = 1_000) -> dict[tuple[int, int], Counter[str]]:
    """Returns the summaries of the closed windows, with their times in milliseconds."""
    found: dict[tuple[int, int], Counter[str]] = {
        (one.value["from"] // unit, one.value["to"] // unit): Counter()
        for one in run.stream("counts.windows")
    }
    for one in run.stream("counts"):
        window = one.value["from"] // unit, one.value["to"] // unit
        found[window][one.key] = one.value["value"]["sum"]
    return found


@given(logs, sizes, st.integers(1, 3))
@settings(max_examples=examples(100))
def test_windows_are_as_defined(
    given: list[tuple[str, int, str]], size: tuple[int, int, int | None], reducers: int
) -> None:
    """Every window that is over has exactly its records; those that slide are moved on, too."""
    length, slide, pane = size
    job: dict[str, Any] = {"range": f"{length}ms", "slide": f"{slide}ms", "reducers": reducers}
    run = ms.testing.run(
        an_app(**job, pane=None if pane is None else f"{pane}ms"), events_of(given)
    )
    assert run.dead_letters == []
    found, wanted = said(run), plain(given, length, slide)
    for window, counts in found.items():
        assert counts == wanted[window]
    times = [ts for _, ts, _ in given]
    if times:
        step = pane or (slide if length % slide == 0 else 3)
        first = min(times) // step * step
        over = {one for one in wanted if one[0] >= first and one[1] < max(times)}
        assert over <= found.keys()


@given(logs, sizes, cuttings, st.integers(1, 3), lanes)
@settings(max_examples=examples(60))
def test_the_engine_gives_the_reference_windows(
    given: list[tuple[str, int, str]],
    size: tuple[int, int, int | None],
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """This holds for any batches, shards and lanes."""
    length, slide, pane = size
    job: dict[str, Any] = {"range": f"{length}ms", "slide": f"{slide}ms", "reducers": 2}
    app = an_app(**job, pane=None if pane is None else f"{pane}ms")
    check_engine_is_reference(app, events_of(given), cuts, shards, lane)


@given(logs, st.sampled_from([(6, 6), (6, 2), (4, 1)]))
def test_windows_of_records(given: list[tuple[str, int, str]], size: tuple[int, int]) -> None:
    """By count, each node's own records are counted; a window ends when all nodes are past it."""
    length, slide = size
    run = ms.testing.run(an_app(by="records", range=length, slide=slide), events_of(given))
    read = {
        node: [text for one, _, text in sorted(given, key=_content) if one == node]
        for node in NODES
    }
    past = min(map(len, read.values()))
    wanted = {
        (begin, begin + length): Counter(
            "".join(text for node in NODES for text in read[node][begin : begin + length])
        )
        for begin in range(0, past, slide)
        if begin + length < past
    }
    assert said(run, unit=1) == wanted


def _content(one: tuple[str, int, str]) -> tuple[int, str, str]:
    node, ts, text = one
    return ts, node, text


@given(logs)
def test_every_record_is_accounted_for(given: list[tuple[str, int, str]]) -> None:
    """A record that a node has read is in a pane, in the pane that it is making, late, or outside
    the job."""
    job = {"range": "10ms", "begin": 15_000, "extent": "30ms"}
    run = ms.testing.run(an_app(**job), events_of(given))
    sent = Counter[str]()
    for one in run.stream("counts.panes"):
        for node, manifest in one.value["nodes"].items():
            sent[node] += manifest["records"] + sum(manifest["late"].values())
    for node, making in run.slates("counts.nodes").items():
        here = making.records + sum(making.late.values())
        assert making.read == sent[node] + here
        assert making.read + making.outside == sum(one == node for one, _, _ in given)
        assert making.outside == sum(not 15 <= ts < 45 for one, ts, _ in given if one == node)


def test_a_reduce_function_takes_a_key_and_its_values() -> None:
    """As a MapReduce job has it: all values without combine, one with it."""
    events = events_of([("a", 1, "xyx"), ("b", 2, "x"), ("a", 50, ""), ("b", 50, "")])

    def most(key: str, values: Any) -> Any:
        return [key, sorted(values)]

    for combine, values in ((None, [1, 1, 1]), (lambda a, b: a + b, [3])):
        run = ms.testing.run(an_app(range="10ms", combine=combine, reduce=most), events)
        first = [one for one in run.stream("counts") if one.value["from"] == 0 and one.key == "x"]
        assert [one.value["value"] for one in first] == [["x", values]]


def test_a_window_is_closed_when_its_fidelity_is_met() -> None:
    """In order of arrival half of the panes are enough, and the answer says how much it has."""
    app = an_app("arrival", by="records", range=2, fidelity=Area(0.5))
    run = ms.testing.run(app, events_of([("a", 1, "x"), ("a", 2, "x"), ("a", 3, "y")]))
    (window,) = run.stream("counts.windows")
    assert window.value["why"] == "fidelity"
    missing = {"absent": 1}
    assert window.value["coverage"] == {"area": 0.5, "time": 1.0, "space": 0.5, "missing": missing}


def test_a_window_is_closed_when_its_latency_is_over() -> None:
    """Counted from when the first node has reached it; what comes after is counted as late."""
    app = an_app("arrival", by="records", range=2, latency="5s")
    run = ms.testing.run(app, events_of([("a", 1, "x"), ("a", 2, "x"), ("a", 3, "y")]))
    assert run.stream("counts.windows") == []
    run.tick(by="4s")
    assert run.stream("counts.windows") == []
    run.tick(by="2s")
    first, second = run.stream("counts.windows")
    assert (first.value["why"], first.value["coverage"]["area"]) == ("latency", 0.5)
    assert (second.value["why"], second.value["coverage"]["area"]) == ("latency", 0)
    run.feed(events_of([("b", 10, "x"), ("b", 11, "x"), ("b", 12, "x")]))
    assert run.slate("counts.root", "1/0")["account|b"]["late"] == 2


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"range": 10, "by": "sequence"}, "sequence must name the field"),
        ({"range": "1s", "reducers": 0}, "reducers must be a whole number"),
        ({"range": "1s", "fidelity": 0.5}, "fidelity must be one of Area"),
        ({"range": "1s", "uncombine": lambda a, b: a}, "uncombine must be left out"),
        ({"range": "1s", "reduce": lambda key: key}, r"reduce.* must take \(key, values\)"),
        ({"range": "1s", "nodes": "a"}, "nodes must name the nodes"),
    ],
)
def test_jobs_that_are_refused(job: dict[str, Any], said: str) -> None:
    """The error is raised when the application is built."""
    with pytest.raises(ms.DefinitionError, match=said):
        an_app(**job)
