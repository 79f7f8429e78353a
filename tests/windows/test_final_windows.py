"""Jobs over streams when event time ends: the last windows come out, and none after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from elements.both import check_engine_is_reference, cuttings, lanes
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.windows import Job

NODES = ("a", "b")
logs = st.lists(
    st.tuples(st.sampled_from(NODES), st.integers(0, 60), st.text("xyz", max_size=3)),
    min_size=1,
    max_size=25,
)
sizes = st.sampled_from([(10, 10, None), (20, 10, 5), (15, 5, None), (12, 3, 1), (9, 6, None)])
"""Range, slide and pane in milliseconds, as the times of the logs are."""


def letters(record: Any) -> Iterator[tuple[str, int]]:
    """A pair for each letter."""
    for letter in record["text"]:
        yield letter, 1


def an_app(size: tuple[int, int, int | None], reducers: int = 1) -> ms.App:
    app = ms.App("logs", order="event-time")
    for node in NODES:
        app.source(node)
    length, slide, pane = size
    job = Job(
        map=letters,
        combine=ms.algebra.sum(),
        range=f"{length}ms",
        slide=f"{slide}ms",
        pane=None if pane is None else f"{pane}ms",
        reducers=reducers,
    )
    app.add(job, name="counts", nodes=NODES)
    return app


def events_of(log: list[tuple[str, int, str]]) -> list[Event]:
    return [Event(node, ts * 1_000, "", {"text": text}) for node, ts, text in log]


@given(logs, sizes, st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_the_last_windows_come_out(
    log: list[tuple[str, int, str]], size: tuple[int, int, int | None], reducers: int
) -> None:
    """Every window that begins no earlier than the first record's pane and no later than the last
    record comes out once, with all of its records; no other does."""
    length, slide, pane = size
    run = ms.testing.run(an_app(size, reducers), events_of(log), final=True)
    assert run.dead_letters == []
    found: dict[int, Counter[str]] = {}
    for event in run.stream("counts.windows"):
        begin = event.value["from"] // 1_000
        if event.key and begin not in found:
            found[begin] = Counter()
    for event in run.stream("counts"):
        found[event.value["from"] // 1_000][event.key] += event.value["value"]["sum"]
    step = pane or next(n for n in range(slide, 0, -1) if not (slide % n or length % n))
    first = min(ts for _, ts, _ in log) // step * step
    last = max(ts for _, ts, _ in log)
    begins = [begin for begin in range(0, last + 1, slide) if begin >= first]
    assert sorted(found) == begins
    for begin in begins:
        inside = [text for _, ts, text in log if begin <= ts < begin + length]
        assert found[begin] == Counter("".join(inside))


@given(logs, sizes, st.integers(1, 3), cuttings, st.integers(1, 4), lanes)
@settings(max_examples=40, deadline=None)
def test_the_engine_gives_the_same(
    log: list[tuple[str, int, str]],
    size: tuple[int, int, int | None],
    reducers: int,
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """However the records are cut into batches, and in whichever lane and shards."""
    check_engine_is_reference(an_app(size, reducers), events_of(log), cuts, shards, lane)
