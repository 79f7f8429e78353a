"""A pane that has dead letters only does not count as received: what it held is not known."""

from __future__ import annotations

from typing import Any

import pytest
from windows.messages import a_job, an_app, events, told

import millstream as ms
from millstream.windows import Area, Error


def summaries(job: ms.windows.Job, **how: Any) -> list[dict[str, Any]]:
    sent = told(job, "a", how.pop("log"), begin=0, **how)
    run = ms.testing.run(an_app(job, nodes="a"), events(sent))
    assert run.dead_letters == []
    return [one.value for one in run.stream("counts.windows")]


def test_a_log_of_unreadable_lines_has_no_complete_window() -> None:
    """Its window has no record, and its bound allows for all of the lines."""
    job = a_job(range=1, bounds="count")
    (said,) = summaries(job, log={0: ""}, dead={0: 7}, over=True)
    assert (said["why"], said["coverage"]["area"]) == ("failure", 0.0)
    assert said["coverage"]["missing"] == {"unreadable": 1}
    assert (said["completeness"]["records"], said["completeness"]["unknown_panes"]) == (None, 1)
    assert (said["total"]["low"], said["total"]["high"]) == (0, 7)
    assert said["total"]["method"] == "worst case"
    assert said["accounts"]["a"]["dead"] == 7


def test_a_pane_with_a_record_is_received() -> None:
    """Single lines that cannot be read are dead letters of it."""
    job = a_job(range=2, bounds="count")
    (said,) = summaries(job, log={0: "x", 1: "x"}, dead={1: 3})
    assert (said["why"], said["coverage"]["area"]) == ("complete", 1.0)
    (said,) = summaries(job, log={0: "x", 1: ""}, dead={1: 3})
    assert (said["why"], said["coverage"]["area"]) == ("failure", 0.5)
    assert (said["total"]["low"], said["total"]["high"]) == (1, 4)


@pytest.mark.parametrize("fidelity", [Area(0.5, drawn=True), Error(0.2)])
def test_a_sample_may_have_such_a_pane(fidelity: Any) -> None:
    """It was not lost because of what was in it. The window closes, and its bound allows for the
    lines."""
    job = a_job(range=8, bounds="count", fidelity=fidelity)
    log = dict.fromkeys(range(8), "xxxx") | {3: ""}
    (said,) = summaries(job, log=log, dead={3: 2})
    assert said["total"]["low"] <= 28
    assert said["total"]["high"] >= 30
    assert said["total"]["method"] == "worst case"
