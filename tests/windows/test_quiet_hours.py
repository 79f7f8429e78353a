"""Quiet hours are no sample: a drawn area is met by the panes that were drawn, and by no others."""

from __future__ import annotations

from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.model.event import Event
from millstream.windows import Area, Job
from millstream.windows.panes.shedder import is_drawn

SECOND = 1_000_000
PANES = 20


def each(record: Any) -> list[tuple[str, int]]:
    return [("all", 1)]


def an_app(seed: int = 0, slide: str | None = None) -> tuple[ms.App, Job]:
    app = ms.App("quiet")
    app.source("a")
    app.source("b")
    job = Job(
        map=each,
        combine=ms.algebra.count(),
        range="20s",
        slide=slide,
        pane="1s",
        fidelity=Area(0.5, drawn=True),
        seed=seed,
    )
    app.add(job, name="counts", nodes=["a", "b"])
    return app, job


def records(node: str, panes: dict[int, int]) -> list[Event]:
    """Returns a number of records in each pane, in order."""
    return [
        Event(node, pane * SECOND + 10 * number, "", {})
        for pane, count in panes.items()
        for number in range(count)
    ]


def at(event: Event) -> int:
    return event.ts


def test_a_window_is_not_closed_on_its_quiet_panes() -> None:
    """Three quarters of it are quiet, and come as empty, drawn or not. That is over half of the
    panes, and next to no records: the drawn panes of the busy quarter are waited for."""
    app, job = an_app()
    busy = {0: 1, **dict.fromkeys(range(15, 20), 40), 20: 1}
    logs = dict.fromkeys("ab", busy)
    sent = sorted([one for node in "ab" for one in records(node, logs[node])], key=at)
    run = ms.testing.run(app, sent)
    (window,) = run.stream("counts.windows")
    drawn = sum(
        count
        for node in "ab"
        for pane, count in busy.items()
        if pane < 20 and is_drawn(job, node, pane)
    )
    assert drawn > 100
    assert (window.value["why"], window.value["records"]) == ("fidelity", drawn)
    total = window.value["total"]
    assert total["low"] <= 402 <= total["high"]
    missing = window.value["coverage"]["missing"]
    assert sum(missing.values()) == round(40 * (1 - window.value["coverage"]["area"]))


@given(
    st.integers(0, 50),
    st.sampled_from([None, "5s"]),
    st.lists(st.sampled_from([0, 0, 0, 3, 9]), min_size=39, max_size=39),
)
@settings(max_examples=examples(40), deadline=None)
def test_whatever_was_drawn_is_in_the_answer(
    seed: int, slide: str | None, counts: list[int]
) -> None:
    """A window that is closed by its fidelity has every drawn pane, wherever the quiet ones are,
    also if windows slide."""
    app, job = an_app(seed, slide)
    panes = {0: 1, **{1 + at: count for at, count in enumerate(counts)}, 40: 1}
    run = ms.testing.run(app, [one for node in "ab" for one in records(node, panes)])
    for window in run.stream("counts.windows"):
        begin = window.value["from"] // SECOND
        drawn = sum(
            panes[pane]
            for node in "ab"
            for pane in range(begin, begin + PANES)
            if is_drawn(job, node, pane)
        )
        if window.value["why"] == "fidelity":
            assert window.value["records"] == drawn


@pytest.mark.parametrize("lost", ["a", "b"])
def test_a_drawn_pane_that_is_missing_is_no_fidelity(lost: str) -> None:
    """A node that says nothing has drawn panes too; the window waits for them."""
    app, _ = an_app()
    busy = dict.fromkeys(range(21), 2)
    run = ms.testing.run(app, records("b" if lost == "a" else "a", busy))
    assert run.stream("counts.windows") == []
