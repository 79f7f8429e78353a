"""The engine gives what the reference gives, over generated applications and events."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from case_counter import count_case
from engine.disturbed import Crashing, CrashingStore, Retried
from engine.in_process import InProcess
from engine.outcome import of_engine, of_reference
from engine.workflow_case import Case
from engine.workflow_cases import cases
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.engine import columns
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.stores.lmdb import LmdbStore
from millstream.stores.memory import MemoryStore

LANES: tuple[Lane, ...] = ("one-task", "shuffled")
lanes = st.sampled_from(LANES)


def generated(count: int) -> settings:
    """Settings for a number of cases in a full run. Hypothesis may take long to make a case."""
    return settings(
        max_examples=examples(count),
        # A case is a whole application, made from some hundred draws: now and then one is slow
        # to make or outgrows Hypothesis's buffer, which says nothing about the engine.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def run(case: Case, lane: Lane, **given: Any) -> InProcess:
    """Run a case to its end: all batches, then all that waits.

    Half of the cases are handled as if they had many events (`columns.FEW`).
    """
    how = {"shards": case.shards, "tasks": case.tasks, **given}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns, "FEW", columns.FEW * (len(case.events) % 2))
        return finish(InProcess(case.workflow(), lane=lane, **how), case)


def finish(engine: InProcess, case: Case) -> InProcess:
    for batch in case.batches:
        engine.batch(batch)
    engine.settle(final=True)
    return engine


def less_late(case: Case, engine: InProcess) -> list[Event]:
    """The input without the events that the engine put onto the late stream."""
    left = list(case.events)
    for event in engine.late:
        left.remove(event)
    return left


def check_exact(case: Case, engine: InProcess) -> None:
    """The engine has come to what the reference gives, and nothing is left over."""
    assert of_engine(engine) == of_reference(
        case.workflow(), less_late(case, engine), engine.shards
    )
    check_conserved(case, engine)


def check_conserved(case: Case, engine: InProcess) -> None:
    """Every event was delivered once to each function that subscribes to its stream, and every
    delivery is accounted for."""
    for function in engine.workflow.functions:
        owed = engine.progress.counts(function.name)
        assert owed.residual == 0, (function.name, owed)
        delivered = sum(len(engine.streams.get(stream, ())) for stream in function.subscribes)
        assert owed.processed + owed.dead_letters == delivered, function.name
    for source in engine.workflow.sources:
        taken = [event for event in less_late(case, engine) if event.stream == source.name]
        assert len(engine.streams.get(source.name, ())) == len(taken)
    assert engine.progress.waiting == 0
    assert engine.progress.pending.feedback == 0
    assert engine.progress.late == len(engine.late)
    assert engine.progress.dead_letters == len(engine.letters)


def counted() -> None:
    count_case("engine against reference")


@generated(400)
@given(case=cases())
def test_acyclic_in_event_time_is_exact(case: Case) -> None:
    """Without cycles, event-time order gives the reference's slates, streams and dead letters."""
    for lane in LANES:
        check_exact(case, run(case, lane))
    counted()


@generated(100)
@given(case=cases(late=False), cuts=st.lists(st.integers(0, 20), max_size=6))
def test_batch_boundaries_do_not_matter(case: Case, cuts: list[int]) -> None:
    """Where nothing is late, the input cut into other batches gives the same."""
    edges = [0, *sorted(cuts), len(case.events)]
    batches = tuple(tuple(case.events[a:b]) for a, b in pairwise(edges))
    other = replace(case, batches=batches)
    one, two = run(case, "one-task"), run(other, "shuffled")
    assert of_engine(one) == of_engine(two)
    check_exact(case, one)
    counted()


@generated(150)
@given(case=cases(cyclic=True, delays="feedback"))
def test_cycles_with_delays_are_exact(case: Case) -> None:
    """Cycles whose every feedback stream has a delay give the reference's result too."""
    for lane in LANES:
        check_exact(case, run(case, lane))
    counted()


@generated(150)
@given(case=cases(cyclic=True))
def test_cycles_without_delays_lose_nothing(case: Case) -> None:
    """In cycles without delays every delivery is processed once, and the lanes agree."""
    one, two = run(case, "one-task"), run(case, "shuffled", shards=3)
    check_conserved(case, one)
    check_conserved(case, two)
    assert of_engine(one).without_shards() == of_engine(two).without_shards()
    counted()


@generated(60)
@given(case=cases(cyclic=True, delays="some"), lane=lanes)
def test_cycles_with_some_delays_lose_nothing(case: Case, lane: Lane) -> None:
    """Where only some of the feedback is delayed every delivery is still processed once."""
    check_conserved(case, run(case, lane))
    counted()


@generated(120)
@given(case=cases(order="arrival", timers=False))
def test_one_batch_in_order_of_arrival_is_exact(case: Case) -> None:
    """In order of arrival, one batch of an acyclic workflow without timers is the reference's."""
    whole = replace(case, batches=(tuple(case.events),))
    for lane in LANES:
        check_exact(whole, run(whole, lane))
    counted()


@generated(120)
@given(case=cases(order="arrival", wall=True), shards=st.integers(1, 7), tasks=st.integers(1, 3))
def test_arrival_does_not_depend_on_the_plan(case: Case, shards: int, tasks: int) -> None:
    """In order of arrival, lanes, shards and tasks make no difference."""
    one, two = run(case, "one-task"), run(case, "shuffled", shards=shards, tasks=tasks)
    assert of_engine(one).without_shards() == of_engine(two).without_shards()
    check_conserved(case, one)
    check_conserved(case, two)
    counted()


@generated(60)
@given(case=cases(order="arrival", cyclic=True, wall=True), shards=st.integers(1, 7))
def test_arrival_with_cycles_does_not_depend_on_the_plan(case: Case, shards: int) -> None:
    """In order of arrival, cycles included, lanes and shards make no difference."""
    one, two = run(case, "one-task"), run(case, "shuffled", shards=shards)
    assert of_engine(one).without_shards() == of_engine(two).without_shards()
    check_conserved(case, one)
    check_conserved(case, two)
    counted()


@generated(100)
@given(
    case=st.one_of(cases(), cases(cyclic=True, delays="feedback")),
    lane=lanes,
    share=st.integers(0, 10),
)
def test_a_task_tried_again_makes_no_difference(case: Case, lane: Lane, share: int) -> None:
    """Attempts that saw a part of the input, committed before or after, leave no trace."""
    engine = Retried(case.workflow(), shards=case.shards, tasks=case.tasks, lane=lane, share=share)
    check_exact(case, finish(engine, case))
    counted()


@generated(100)
@given(
    case=st.one_of(cases(), cases(cyclic=True, delays="feedback")),
    lane=lanes,
    commits=st.integers(0, 9),
)
def test_a_crash_makes_no_difference(case: Case, lane: Lane, commits: int) -> None:
    """A driver that dies in every batch, some shards committed, comes to the same result."""
    engine = Crashing(
        case.workflow(),
        shards=case.shards,
        tasks=case.tasks,
        lane=lane,
        store=CrashingStore(MemoryStore(case.shards)),
        commits=commits,
    )
    check_exact(case, finish(engine, case))
    counted()


@generated(20)
@given(case=cases(), lane=lanes, commits=st.integers(0, 9))
def test_the_embedded_store_gives_the_same(case: Case, lane: Lane, commits: int) -> None:
    """LMDB holds byte for byte what memory holds, crashes included."""
    with TemporaryDirectory() as folder:
        store = LmdbStore(Path(folder) / "store", case.shards)
        engine = Crashing(
            case.workflow(),
            shards=case.shards,
            tasks=case.tasks,
            lane=lane,
            store=CrashingStore(store),
            commits=commits,
        )
        check_exact(case, finish(engine, case))
        store.close()
    counted()
