"""Invalid messages from outside become dead letters, and affect no window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
from windows.messages import a_job, an_app, answers, events, told, windows

import millstream as ms
from millstream.windows import Job

Change = Callable[[dict[str, Any]], object]


def of_a(**fields: Any) -> Change:
    """Other fields in the manifest of node a."""
    return lambda message: message["nodes"]["a"].update(fields)


def as_a_whole(**fields: Any) -> Change:
    return lambda message: message.update(fields)


WRONG: list[tuple[Change, str]] = [
    (as_a_whole(pane="0"), "pane must be the number of a pane"),
    (as_a_whole(pane=1, until=0), "from a pane to a later one"),
    (as_a_whole(over=True), "over must be true or false, and true only if pane is until"),
    (as_a_whole(over=1), "over must be true or false"),
    (as_a_whole(pane=10**30, until=10**30 + 1), "panes must be between"),
    (as_a_whole(nodes=[1]), "nodes must be an object"),
    (as_a_whole(nodes={}), "at least one node"),
    (as_a_whole(nodes={"a": "x"}), "manifest of node 'a' must be an object"),
    (as_a_whole(partials=["x"]), "partials must be an object"),
    (lambda message: message["nodes"]["a"].pop("total"), "must have total"),
    (of_a(total="7"), "total must be a whole number"),
    (of_a(records=-2), "records must be a whole number, 0 or more"),
    (of_a(bytes=None), "bytes must be a whole number"),
    (of_a(dead=1.5), "dead must be a whole number"),
    (of_a(mark="here"), "mark must be one of data, empty, lost"),
    (of_a(mark="lost"), "mark must be data if there are records"),
    (of_a(why=["x"]), "why must be one of shed"),
    (of_a(first="noon"), "first must be a time"),
    (of_a(late=[1]), "late must be whole numbers"),
    (of_a(late={"soon": 1}), "late must be whole numbers"),
    (of_a(late={"0": "1"}), "late must be whole numbers"),
    (of_a(late={"9" * 20: 1}), "late and claimed must have"),
    (of_a(gap=-2), "gap must be a number of bytes"),
    (of_a(misdated=1), "misdated must be a whole number, 0 or more, and no more than dead, 0"),
]


def run_with(job: Job, change: Change) -> ms.testing.Run:
    """A message that was changed, and then those that it should have been."""
    good = [one for node in "abc" for one in told(job, node, dict.fromkeys(range(4), "xy"))]
    bad = deepcopy(dict(good[0]))
    change(bad)
    return ms.testing.run(an_app(job), events([bad, *good]))


@pytest.mark.parametrize(("change", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_wrong_message_is_refused_and_leaves_nothing(change: Change, said: str) -> None:
    """The error says what is wrong. The valid message is accepted afterwards, and every window is
    closed."""
    run = run_with(a_job(), change)
    (letter,) = run.dead_letters
    assert said in letter.error
    assert windows(run) == [(0, "complete"), (2, "complete")]
    assert answers(run) == {0: {"x": 6, "y": 6}, 2: {"x": 6, "y": 6}}


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"combine": ms.algebra.sum()}, None),
        ({"combine": ms.algebra.sum()}, {"sum": "q"}),
        ({"combine": ms.algebra.max()}, 7),
        ({"bounds": "count"}, "q"),
        ({"bounds": "mean"}, 7),
    ],
)
def test_a_value_that_the_job_cannot_merge_is_refused(options: dict[str, Any], value: Any) -> None:
    """An agent of another version is detected as far as the job declares its values."""
    job = a_job(**options)
    bad = {**told(job, "a", {0: "x"})[0], "partials": {"x": value}}
    run = ms.testing.run(an_app(job), events([bad]))
    (letter,) = run.dead_letters
    assert "'x'" in letter.error
    assert run.slate("counts.root", "1/0") is None


def picky(key: str, values: Sequence[Any]) -> Any:
    """A reduce that fails on one key, and returns invalid JSON for another."""
    if key == "y":
        raise ZeroDivisionError("nothing to divide by")
    return object() if key == "z" else sum(values)


def test_a_window_is_closed_though_reduce_fails() -> None:
    """The key says why it has no value; the others, and windows that share its panes, have theirs;
    no pane is lost with it, and none stays for good."""
    job = a_job(reduce=picky, range=3, slide=1)
    logs = {pane: "xyz" if pane == 3 else "x" for pane in range(8)}
    panes = [told(job, node, logs) for node in "abc"]
    run = ms.testing.run(
        an_app(job), events([one for of in zip(*panes, strict=True) for one in of])
    )
    assert run.dead_letters == []
    assert [begin for begin, _ in windows(run)] == [0, 1, 2, 3, 4, 5]
    said = answers(run)
    assert said[0] == {"x": 9}
    assert said[1] == said[2] == said[3] == {"x": 9, "y": None, "z": None}
    errors = {one.key: one.value["error"] for one in run.stream("counts") if "error" in one.value}
    assert "nothing to divide by" in errors["y"]
    assert "object" in errors["z"]
    failed = [one.value.get("failed", 0) for one in run.stream("counts.windows")]
    assert failed == [0, 2, 2, 2, 0, 0]


def less(a: int, b: int) -> int:
    return a - b


@pytest.mark.parametrize("uncombine", [None, less])
def test_a_window_is_closed_though_combine_fails(uncombine: Any) -> None:
    """Also where windows are moved on: the key has no value for as long as the pane is in them."""
    job = a_job(range=4, slide=1, uncombine=uncombine)
    panes = told(job, "a", dict.fromkeys(range(9), "xy"))
    panes[3] = {**panes[3], "partials": {"x": 1, "y": None}}
    run = ms.testing.run(an_app(job, nodes=["a"]), events(panes))
    assert run.dead_letters == []
    broken = {0: None, 1: None, 2: None, 3: None}
    assert answers(run) == {begin: {"x": 4, "y": broken.get(begin, 4)} for begin in range(6)}
