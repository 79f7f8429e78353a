"""Bytes of a log that are gone: a pane that has such a gap is never taken to be whole."""

from __future__ import annotations

from typing import Any

import pytest
from windows.messages import NODES, Sent, a_job, an_app, answers, events, told, windows

import millstream as ms
from millstream.windows import Area, Job, Temporal

LOG = {0: "xx", 1: "xy"}


def counting(**job: Any) -> Job:
    return a_job(combine=ms.algebra.count(), **job)


def with_gap(job: Job, gap: int, **how: Any) -> list[Sent]:
    """Returns the messages of three nodes about two panes. Node b has a gap in its first."""
    messages = [one for node in NODES for one in told(job, node, LOG, **how)]
    for message in messages:
        if "b" in message["nodes"] and message["pane"] == 0 and message["until"] == 1:
            message["nodes"]["b"]["gap"] = gap
    return messages


def run_of(job: Job, gap: int, **how: Any) -> ms.testing.Run:
    run = ms.testing.run(an_app(job), events(with_gap(job, gap, **how)))
    assert run.dead_letters == []
    return run


@pytest.mark.parametrize("gap", [40, -1])
def test_bounds_are_not_exact(gap: int) -> None:
    """The records that came are the lower bound. There is no upper bound."""
    run = run_of(counting(), gap)
    assert windows(run) == [(0, "failure")]
    (window,) = run.stream("counts.windows")
    total = window.value["total"]
    assert (total["method"], total["low"], total["value"], total["high"]) == (
        *("worst case", 12, 12),
        None,
    )
    assert total["panes"]["unknown"] == 1
    assert window.value["unseen"]["high"] is None
    assert all(one.value["bounds"]["high"] is None for one in run.stream("counts"))


def test_without_a_gap_they_are() -> None:
    """The same messages, but for the gap."""
    run = run_of(counting(), 0)
    (window,) = run.stream("counts.windows")
    assert (window.value["total"]["method"], window.value["total"]["high"]) == ("on time", 12)
    assert window.value["completeness"]["unknown_panes"] == 0


def test_a_gap_spoils_a_sample() -> None:
    """A pane that has only a part of its records is no member of a sample."""
    job = counting(fidelity=Area(0.5, drawn=True), range=2)
    run = run_of(job, -1)
    for window in run.stream("counts.windows"):
        assert window.value["total"]["high"] is None


def test_a_pane_with_a_gap_was_not_received() -> None:
    """The window is not complete, and names the missing pane and its node. The rest of the pane is
    in its values. The account of the node counts the pane."""
    run = run_of(a_job(), -1)
    (window,) = run.stream("counts.windows")
    assert (window.value["why"], window.value["completeness"]["unknown_panes"]) == ("failure", 1)
    assert window.value["coverage"]["area"] == pytest.approx(5 / 6)
    assert window.value["coverage"]["missing"] == {"gap": 1}
    assert window.value["missing"] == {"gap": {"panes": 1, "nodes": ["b"], "more": 0}}
    assert answers(run) == {0: {"x": 9, "y": 3}}
    assert window.value["accounts"]["b"]["gaps"] == 1
    assert "gaps" not in window.value["accounts"]["a"]
    assert run.slate("counts.root", "1/0")["account|b"]["gaps"] == 1


@pytest.mark.parametrize(("fidelity", "why"), [(Area(0.8), "fidelity"), (Temporal(1.0), "failure")])
def test_a_gap_counts_against_what_is_asked(fidelity: Any, why: str) -> None:
    """Five panes of six are enough for the one; no pane may be lost for the other."""
    job = a_job(fidelity=fidelity)
    sent = with_gap(job, 7)
    run = ms.testing.run(an_app(job), events(sorted(sent, key=lambda one: "b" in one["nodes"])))
    assert windows(run) == [(0, why)]


@pytest.mark.parametrize("gap", [-2, "5", 1.5, None])
def test_a_gap_must_be_a_number_of_bytes(gap: Any) -> None:
    """Or -1; what is not is refused."""
    run = ms.testing.run(an_app(a_job()), events(with_gap(a_job(), gap)))
    [letter] = run.dead_letters
    assert "gap must be a number of bytes, or -1 if it is not known" in letter.error
