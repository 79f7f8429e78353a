"""Windows by the thousand that nobody had records for are one answer, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from windows.messages import Sent, a_job, an_app, as_json, events

import millstream as ms
from millstream.windows import Job
from millstream.windows.board import quiet_windows
from millstream.windows.panes.pane_maker import Maker, Making

YEAR = 525_600
"""Panes of a minute."""


def told(job: Job, node: str, steps: list[dict[str, Any]], over: bool) -> list[Sent]:
    """Returns the messages of a node that jumps ahead by a number of panes at each step and then
    reads some records. As with an agent, a run of panes without records is one message."""
    maker, making = Maker(job, node), Making(pane=0)
    said = [maker.begun(making)]
    for step in steps:
        pane = making.pane or 0
        if step["jump"]:
            said += maker.end(making, pane + step["jump"])
            pane += step["jump"]
        for _ in range(step.get("records", 1)):
            maker._combine(making, "x")
            making.records += 1
            making.bytes += 1
            making.read += 1
        for behind in step.get("late", ()):
            if behind <= pane:
                making.late[str(pane - behind)] = making.late.get(str(pane - behind), 0) + 1
                making.read += 1
        for ahead in step.get("claims", ()):
            maker.dead(making, 1, misdated=True, claims=pane + ahead)
    said += maker.end(making, (making.pane or 0) + 1)
    if over:
        said.append(replace(maker.begun(making), over=True))
    return [*map(as_json, said)]


def test_a_year_of_silence_is_one_answer() -> None:
    """A run of windows without records costs one answer, however many they are; it says how many,
    and what each of them says. The windows around it have their own."""
    job = a_job(range=1, bounds="count")
    sent = told(job, "a", [{"jump": 0}, {"jump": 90_000}, {"jump": 3}], over=True)
    run = ms.testing.run(an_app(job, nodes="a"), events(sent))
    found = [one.value for one in run.stream("counts.windows")]
    assert [(one["from"], one["to"], one.get("windows", 1)) for one in found] == [
        (0, 1, 1),
        (1, 2, 1),
        (2, 90_000, 89_998),
        *((pane, pane + 1, 1) for pane in range(90_000, 90_004)),
    ]
    quiet = found[2]
    assert (quiet["why"], quiet["records"], quiet["keys"]) == ("complete", 0, 0)
    assert (quiet["total"]["low"], quiet["total"]["high"]) == (0, 0)
    assert quiet["total"]["final"] is False
    assert len(run.slate("counts.root", "1/0")) < 50


def test_a_window_of_a_quiet_year_is_corrected_by_late_records() -> None:
    """A record that comes late for it gives it an answer of its own, whose bounds have it."""
    job = a_job(range=1, bounds="count", corrections=YEAR)
    steps = [{"jump": 0}, {"jump": 90_000, "late": [40_000]}, {"jump": 1, "late": [40_001]}]
    run = ms.testing.run(an_app(job, nodes="a"), events(told(job, "a", steps, over=True)))
    found = [one.value for one in run.stream("counts.windows") if one.value["from"] == 50_000]
    assert [one["correction"] for one in found] == [1, 2]
    totals = [one["total"] for one in found]
    assert [(one["low"], one.get("known", one)["high"]) for one in totals] == [(0, 1), (0, 2)]


def test_a_line_that_was_not_believed_is_in_no_quiet_range() -> None:
    """A record that claims to be of a window ahead may be of it: when the log jumps over it, the
    window has an answer of its own, which has room for the record."""
    job = a_job(range=1, bounds="count")
    steps = [{"jump": 0, "claims": [40_000]}, {"jump": 90_000}]
    run = ms.testing.run(an_app(job, nodes="a"), events(told(job, "a", steps, over=True)))
    answers = {one.value["from"]: one.value for one in run.stream("counts.windows")}
    assert (answers[40_000]["total"]["low"], answers[40_000]["total"]["high"]) == (0, 1)
    assert [one["windows"] for one in answers.values() if "windows" in one] == [39_998, 49_999]


def test_other_nodes_are_waited_for() -> None:
    """While another node may have records there, no window is called quiet."""
    job = a_job(range=1, bounds="count")
    sent = told(job, "a", [{"jump": 0}, {"jump": 2_000}], over=True)
    run = ms.testing.run(an_app(job, nodes="ab"), events(sent))
    assert run.stream("counts.windows") == []


step = st.fixed_dictionaries(
    {
        "jump": st.integers(0, 15),
        "records": st.integers(0, 2),
        "late": st.lists(st.integers(1, 20), max_size=2),
        "claims": st.lists(st.integers(1, 20), max_size=1),
    }
)


@given(
    nodes=st.lists(st.tuples(st.lists(step, max_size=5), st.booleans()), min_size=1, max_size=2),
    size=st.sampled_from([(1, 1), (3, 1), (4, 2)]),
    corrections=st.sampled_from([0, 6, 60]),
    interleaved=st.randoms(use_true_random=False),
)
@settings(max_examples=examples(150), deadline=None)
def test_every_window_says_the_same(
    nodes: list[tuple[list[dict[str, Any]], bool]],
    size: tuple[int, int],
    corrections: int,
    interleaved: Any,
) -> None:
    """Quiet windows may be closed one by one or together: the answers and their order are the same,
    and so are the accounts."""
    job = a_job(range=size[0], slide=size[1], bounds="count", corrections=corrections)
    names = "ab"[: len(nodes)]
    logs = [told(job, node, *of) for node, of in zip(names, nodes, strict=True)]
    sent: list[Sent] = []
    while any(logs):
        sent.append(interleaved.choice([log for log in logs if log]).pop(0))
    with pytest.MonkeyPatch.context() as patch:
        said = []
        for many in (1, 1_000_000):
            patch.setattr(quiet_windows, "MANY", many)
            run = ms.testing.Run(an_app(job, nodes=names))
            for at, message in enumerate(sent):
                run.feed(events([message], ts=1_000 + 100 * at))
            assert not run.dead_letters
            slate = run.slate("counts.root", "1/0")
            accounts = {entry: slate[entry] for entry in slate if entry.startswith("account|")}
            meta = {name: slate["meta"][name] for name in ("open", "closed", "first", "late")}
            said.append((_by_window(run, size[1], size[0]), accounts, meta))
    assert said[0] == said[1]


def _by_window(run: ms.testing.Run, slide: int, length: int) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for value in (one.value for one in run.stream("counts.windows")):
        for begin, one in _parted(value, slide, length):
            found.setdefault(begin, []).append(one)
    return found


def _parted(value: dict[str, Any], slide: int, length: int) -> Iterator[tuple[int, Any]]:
    """An answer for each window of a range."""
    count = value.pop("windows", 1)
    for begin in range(value["from"], value["from"] + count * slide, slide):
        yield begin, {**value, "from": begin, "to": begin + length}
