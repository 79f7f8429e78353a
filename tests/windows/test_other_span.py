"""A node whose job has other windows than the root's reports them, and is refused, since its pane
numbers have another meaning."""

from __future__ import annotations

from typing import Any

import pytest
from windows.messages import a_job, an_app, answers, events, told, windows

import millstream as ms

OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"range": 4, "pane": 2}, "panes of 2 of sequence"),
    ({"by": "records", "sequence": None}, "panes of 1 of records"),
    ({"range": 4}, "windows of 4 every 4 of sequence"),
    ({"slide": 1}, "windows of 2 every 1 of sequence"),
]
LOG = dict.fromkeys(range(4), "x")


@pytest.mark.parametrize(("other", "said"), OTHERS, ids=[said for _, said in OTHERS])
def test_a_message_of_other_windows_is_refused(other: dict[str, Any], said: str) -> None:
    """Each is a dead letter that says both and what to do; the windows are those of the others."""
    job, wrong = a_job(), told(a_job(**other), "a", LOG)
    good = [one for node in "abc" for one in told(job, node, LOG)]
    run = ms.testing.run(an_app(job), events([*wrong, *good]))
    assert len(run.dead_letters) == len(wrong)
    for one in run.dead_letters:
        assert said in one.error
        assert "start the agent with the application's file" in one.error
    assert windows(run) == [(0, "complete"), (2, "complete")]
    assert answers(run) == {0: {"x": 6}, 2: {"x": 6}}


def test_times_are_said_as_durations() -> None:
    """Sizes of panes of time are shown as durations, as in the application's file."""
    job = a_job(by="time", sequence=None, range="10s", pane=None)
    wrong = told(a_job(by="time", sequence=None, range="5s", pane=None), "a", {0: "x"})
    run = ms.testing.run(an_app(job), events(wrong))
    [letter] = run.dead_letters
    assert "the agent's job has panes of 5s of time, the root's of 10s" in letter.error


def test_a_message_without_its_span_is_refused() -> None:
    """Nobody can know which panes it is of."""
    [message] = told(a_job(), "a", {0: "x"})
    bare = {key: value for key, value in message.items() if key != "span"}
    run = ms.testing.run(an_app(a_job()), events([bare]))
    [letter] = run.dead_letters
    assert "a message must have span" in letter.error
