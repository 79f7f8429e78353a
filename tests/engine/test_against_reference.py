"""The engine gives what the reference gives, over generated applications and events."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from case_counter import count_case
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from in_process import InProcess
from outcome import Outcome, of_engine, of_reference
from workflows import Case, cases

from millstream.engine.horizon import Lane
from millstream.engine.layers import Task, run_whole
from millstream.stores import LmdbStore

LANES: tuple[Lane, ...] = ("one-task", "shuffled")
DEEP = 10 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 1


def examples(count: int) -> Any:
    """How many cases to make; ten times as many in the deep profile."""
    return settings(
        max_examples=count * DEEP,
        # A case is a whole application, made from some hundred draws: now and then one is slow
        # to make or outgrows Hypothesis's buffer, which says nothing about the engine.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def run(case: Case, lane: Lane, **given: Any) -> InProcess:
    """Run a case to its end: all batches, then all that waits."""
    return finish(
        InProcess(case.workflow(), **{"shards": case.shards, "tasks": case.tasks, **given, "lane": lane}),
        case,
    )


def finish(engine: InProcess, case: Case) -> InProcess:
    for batch in case.batches:
        engine.batch(batch)
    engine.settle(final=True)
    return engine


def less_late(case: Case, engine: InProcess) -> list[Any]:
    """The input without the events that the engine put onto the late stream."""
    left = list(case.events)
    for event in engine.late:
        left.remove(event)
    return left


def check_exact(case: Case, engine: InProcess) -> None:
    expected = of_reference(case.workflow(), less_late(case, engine), case.shards)
    assert of_engine(engine) == expected
    assert engine.progress.waiting == 0
    assert engine.progress.feedback == 0


@examples(400)
@given(case=cases())
def test_acyclic_in_event_time_is_exact(case: Case) -> None:
    """Without cycles, event-time order gives the reference's slates, streams and dead letters."""
    for lane in LANES:
        check_exact(case, run(case, lane))
    count_case("engine against reference")
