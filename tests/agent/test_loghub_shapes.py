"""Logs of the shapes that real ones have: every answer's bounds hold a plain count of the lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_runs import add, messages, once
from taking_root import Root

import millstream as ms
from bench.log_shapes import FORMS, SHAPES, Shape
from millstream.model.duration import UNITS
from millstream.windows.placed import PlacedJob

MINUTE = UNITS["m"]


def lines(record: Any) -> Iterator[tuple[str, int]]:
    yield "lines", 1


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.form)
def test_the_last_answers_hold_the_truth(tmp_path: Path, root: Root, shape: Shape) -> None:
    """An agent reads the log to its end; the last answer of each window with lines has as many
    between its bounds as a plain program counts; a window without an answer has only lines that
    were set aside; and no line is lost without being counted."""
    log = [*shape.lines()]
    (tmp_path / "app.log").write_bytes(b"\n".join(log) + b"\n")
    form = FORMS[shape.form]
    truth = Counter(at // MINUTE * MINUTE for at in map(form.time_of, log) if at is not None)
    options: dict[str, Any] = {"bounds": "count", "range": "1m", "corrections": 2_000_000}
    job = ms.windows.Job(map=lines, combine=add, **options)
    logs = ms.windows.Logs(**form.logs)
    status = once(tmp_path, root, PlacedJob(job, "lines", ("web1",), logs))
    posted = messages(root)
    app = ms.App("shapes")
    app.add(job, name="lines", nodes=["web1"], logs=logs)
    run = ms.testing.run(app, {"lines.panes": posted})
    assert not run.dead_letters
    said = [event.value for event in run.stream("lines.windows")]
    answers = {one["from"]: one for one in said if "windows" not in one}
    for quiet in (one for one in said if "windows" in one):
        for at in truth:
            if quiet["from"] <= at < quiet["to"]:
                answers.setdefault(at, quiet)
    lacking = {at for at in truth if at not in answers}
    assert sum(truth[at] for at in lacking) <= status["dead"]  # their times were not believed
    assert not {at for at in answers if not _holds(answers[at]["total"], truth[at])}
    assert status["read"] == len(log)
    assert status["residual"] == 0


def _holds(bound: dict[str, Any], truth: int) -> bool:
    low, high = bound["low"], bound["high"]
    return (low is None or low <= truth) and (high is None or truth <= high)
