"""Aggregates on the engine: combined before the shuffle, and the same as the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from engine.disturbed import Crashing, CrashingStore, Retried
from engine.in_process import InProcess
from engine.outcome import of_engine, of_reference
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from progress_counts import by_function

from millstream import App
from millstream.engine import combiner
from millstream.engine.horizon import Lane
from millstream.errors import FunctionError
from millstream.model.algebra import Algebra
from millstream.model.event import Event, emit
from millstream.stores.memory import MemoryStore
from millstream.testing import check_algebra

LANES: tuple[Lane, ...] = ("one-task", "shuffled")
lanes = st.sampled_from(LANES)
orders = st.sampled_from(("arrival", "event-time"))


def _number(event: Event) -> int:
    if event.value["n"] == 13:
        raise ValueError("13 is not counted")
    return int(event.value["n"])


def _numbers(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in zip(keys, values, strict=True):
        if value["n"] == 13:
            raise ValueError("13 is among them")
        found[key] = found.get(key, 0) + value["n"]
    return found


def _put(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    for name, count in b.items():
        a[name] = a.get(name, 0) + count
    return a


COUNT = Algebra(
    "count",
    lambda: 0,
    lambda event: 1,
    lambda a, b: a + b,
    gather=lambda keys, values: dict(Counter(keys)),
    needs_values=False,
)
COUNTED = replace(COUNT, name="counted", counted=int)
SUM = Algebra("sum", lambda: 0, _number, lambda a, b: a + b)
BULK = replace(SUM, name="bulk", gather=_numbers)
TALLY = Algebra(
    "tally",
    dict,
    lambda event: {str(_number(event)): 1},
    _put,
    write=lambda a: dict(sorted(a.items())),
    read=dict,
)
ALGEBRAS = (COUNT, COUNTED, SUM, BULK, TALLY)


@dataclass(frozen=True)
class Made:
    """An application of aggregates, ordinary updates and a map, and how to run it."""

    order: Any
    aggregates: tuple[tuple[Algebra, str, int | None], ...]
    """(algebra, stream, ttl) of each."""
    batches: tuple[tuple[Event, ...], ...]
    shards: int
    tasks: int

    def app(self, on_error: Any = "dead-letter") -> App:
        app = App("made", order=self.order, on_error=on_error)
        app.source("a", lateness="10us")
        app.source("b", lateness="10us")

        @app.map("a", publishes="mapped")
        def double(event: Event) -> Any:
            event.value["n"] += 1  # its own copy: no aggregate of `a` may see it
            yield emit(key="k" + event.key, value=event.value)
            yield emit(key="all", value=event.value)

        @app.update("a", "b", publishes="counted")
        def chain(event: Event, slate: dict[str, int]) -> Any:
            slate["n"] = slate.get("n", 0) * 7 % 1_000_003 + event.value["n"]
            yield emit(value={"n": slate["n"] % 14})

        for number, (algebra, stream, ttl) in enumerate(self.aggregates):
            app.aggregate(
                *stream.split(), algebra=algebra, name=f"agg{number}", ttl=ttl and f"{ttl}us"
            )
        return app

    @property
    def events(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]


streams = st.sampled_from(("a", "b", "a b", "mapped", "counted", "a counted"))
ttls = st.one_of(st.none(), st.sampled_from((1, 2, 3, 5, 12)))
events = st.builds(
    lambda stream, ts, key, n: Event(stream, ts, key, {"n": n}),
    st.sampled_from("ab"),
    st.integers(0, 30),
    st.sampled_from(("x", "x", "y", "é", "k" * 600)),
    st.sampled_from((0, 1, 2, 5, 12, 13)),
)


@st.composite
def made(draw: Any, order: str | None = None, ttl: Any = ttls) -> Made:
    aggregates = st.tuples(st.sampled_from(ALGEBRAS), streams, ttl)
    given = draw(st.lists(events, min_size=draw(st.sampled_from((0, 5, 15))), max_size=30))
    cuts = sorted(draw(st.lists(st.integers(0, 30), max_size=4)))
    edges = [0, *cuts, len(given)]
    return Made(
        order or draw(orders),
        tuple(draw(st.lists(aggregates, min_size=1, max_size=3))),
        tuple(tuple(given[a:b]) for a, b in pairwise(edges)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 3)),
    )


def finished(engine: InProcess, case: Made) -> InProcess:
    for batch in case.batches:
        engine.batch(batch)
    engine.settle(final=True)
    return engine


def run(case: Made, lane: Lane) -> InProcess:
    workflow = case.app().checked()
    return finished(InProcess(workflow, shards=case.shards, tasks=case.tasks, lane=lane), case)


def check(case: Made, engine: InProcess) -> None:
    """The reference's rows, streams and dead letters, and every delivery accounted for."""
    left = list(case.events)
    for event in engine.late:
        left.remove(event)
    assert of_engine(engine) == of_reference(case.app().checked(), left, engine.shards)
    progress = engine.progress
    for update in engine.workflow.updates:
        delivered = sum(len(engine.streams.get(stream, ())) for stream in update.subscribes)
        failed = progress.counts(update.name).failed
        assert progress.counts(update.name).processed + failed == delivered, update.name


@settings(max_examples=examples(200))
@given(case=made("event-time"))
def test_in_event_time_aggregates_are_exact(case: Made) -> None:
    """Event-time order gives the reference's slates, whatever the batches, shards and lanes."""
    for lane in LANES:
        check(case, run(case, lane))


@settings(max_examples=examples(150))
@given(case=made("arrival"))
def test_one_batch_in_order_of_arrival_is_exact(case: Made) -> None:
    """In order of arrival one batch is the reference's, ttl and failing lifts included."""
    whole = replace(case, batches=(tuple(case.events),))
    for lane in LANES:
        check(whole, run(whole, lane))


@settings(max_examples=examples(150))
@given(case=made("arrival", st.none()))
def test_batches_do_not_show_without_a_ttl(case: Made) -> None:
    """Without a ttl an aggregate of a source is the same in order of arrival, in any batches."""
    case = replace(case, aggregates=tuple((a, "a b", None) for a, _, _ in case.aggregates))
    for lane in LANES:
        engine = run(case, lane)
        wanted = of_reference(case.app().checked(), case.events, case.shards).rows
        names = [f"Sagg{number}\0".encode() for number in range(len(case.aggregates))]
        found = of_engine(engine).rows
        for name in names:
            assert {r: v for r, v in found.items() if r[1].startswith(name)} == {
                r: v for r, v in wanted.items() if r[1].startswith(name)
            }


@settings(max_examples=examples(80))
@given(case=made("event-time"), lane=lanes, share=st.integers(0, 10))
def test_a_task_tried_again_makes_no_difference(case: Made, lane: Lane, share: int) -> None:
    """Attempts that saw a part of the input, committed before or after, leave no trace."""
    engine = Retried(
        case.app().checked(), shards=case.shards, tasks=case.tasks, lane=lane, share=share
    )
    check(case, finished(engine, case))


@settings(max_examples=examples(60))
@given(case=made("event-time"), lane=lanes, commits=st.integers(0, 6))
def test_a_crash_makes_no_difference(case: Made, lane: Lane, commits: int) -> None:
    """A driver that dies in every batch, some shards committed, comes to the same result."""
    engine = Crashing(
        case.app().checked(),
        shards=case.shards,
        tasks=case.tasks,
        lane=lane,
        store=CrashingStore(MemoryStore(case.shards)),
        commits=commits,
    )
    check(case, finished(engine, case))


@settings(max_examples=examples(60))
@given(case=made(), lane=lanes, size=st.integers(1, 5))
def test_small_buffers_give_the_same(case: Made, lane: Lane, size: int) -> None:
    """The number of events that are merged at a time makes no difference."""
    whole = replace(case, batches=(tuple(case.events),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combiner, "BUFFERED", size)
        patch.setattr(combiner, "BUFFERED_KEYS", size)
        check(whole, run(whole, lane))


def _app(algebra: Algebra, **options: Any) -> App:
    app = App("one", **options)
    app.source("a")
    app.aggregate("a", algebra=algebra, name="hits")
    return app


def _events(*numbers: int, key: str = "x") -> list[Event]:
    return [Event("a", at, key, {"n": n}) for at, n in enumerate(numbers, 1)]


def test_a_hot_key_is_one_partial() -> None:
    """However many events a key has, a task sends one partial for it."""
    engine = InProcess(_app(COUNT).checked(), shards=2, lane="shuffled")
    sent: list[int] = []
    layer_task = engine._layer_task

    def counting(beat: Any, layer: int, owned: Any, inboxes: Any) -> Any:
        sent.extend(map(len, inboxes.values()))
        return layer_task(beat, layer, owned, inboxes)

    engine._layer_task = counting  # type: ignore[method-assign]
    engine.batch(_events(*range(500)))
    assert sum(sent) == 1
    assert by_function(engine.progress.functions, "processed") == {"hits": 500}


def test_on_error_fail_stops_at_a_lift() -> None:
    """With on_error="fail" a lift that raises stops the run, and the error says where."""
    engine = InProcess(_app(SUM, on_error="fail").checked())
    with pytest.raises(FunctionError, match="aggregate 'hits', key 'x': ValueError: 13"):
        engine.batch(_events(1, 13))


def _picky(a: int, b: int) -> int:
    if a + b >= 10:
        raise OverflowError("10 is the most")
    return a + b


@pytest.mark.parametrize("lane", LANES)
def test_a_merge_that_raises_is_a_dead_letter_for_its_events(lane: Lane) -> None:
    """A partial that cannot be merged with the slate counts as many events as it stands for. It
    belongs to no stream, and cannot be retried."""
    engine = InProcess(_app(replace(SUM, merge=_picky)).checked(), lane=lane)
    engine.batch(_events(4, 3))
    engine.batch(_events(1, 2, 1, 1))
    (letter,) = engine.letters
    assert (letter["function"], letter["stream"], letter["key"]) == ("hits", "", "x")
    assert letter["value"] == 5
    assert "10 is the most" in letter["error"]
    assert by_function(engine.progress.functions, "processed") == {"hits": 2}
    assert by_function(engine.progress.functions, "failed") == {"hits": 4}
    assert engine.progress.dead_letters == 4


def test_an_algebra_without_values_must_not_fail() -> None:
    """An algebra that declares that it needs no values must not fail: if it does, the run stops and
    says so."""

    def broken(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
        raise ValueError("no")

    engine = InProcess(_app(replace(COUNT, gather=broken)).checked())
    with pytest.raises(FunctionError, match="needs no values must not fail"):
        engine.batch(_events(1))


def test_a_slate_over_the_limit_is_a_dead_letter() -> None:
    """Events that would make the slate too large do not, and are counted as failed."""
    engine = InProcess(_app(TALLY, slate_limit="20").checked())
    engine.batch(_events(1, 2))
    engine.batch(_events(3, 4, 5))
    assert by_function(engine.progress.functions, "failed") == {"hits": 3}
    assert by_function(engine.progress.functions, "processed") == {"hits": 2}


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda algebra: algebra.name)
def test_the_laws_hold_for_the_algebras_here(algebra: Algebra) -> None:
    """`check_algebra` finds nothing wrong with sound algebras."""
    check_algebra(algebra, _events(1, 2, 3, 5, 8))


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (replace(SUM, merge=lambda a, b: a - b), "merge"),
        (replace(SUM, zero=lambda: 1), "zero"),
        (replace(SUM, write=str, read=str), "read"),
        (replace(BULK, gather=lambda keys, values: dict.fromkeys(keys, 0)), "gather"),
        (replace(SUM, unmerge=lambda a, b: a), "unmerge"),
        (replace(SUM, write=lambda a: object()), "write"),
    ],
)
def test_a_broken_law_is_found(broken: Algebra, law: str) -> None:
    """`check_algebra` names the law that does not hold."""
    with pytest.raises(AssertionError, match=law):
        check_algebra(broken, _events(1, 2, 3))


def test_a_ttl_that_is_taken_away_leaves_no_event_waiting() -> None:
    """Events that waited under a ttl are counted when they are due, though new ones do not wait."""

    def app(ttl: str | None) -> App:
        app = App("one", order="event-time")
        app.source("a", lateness="1s")
        app.aggregate("a", algebra=COUNT, name="hits", ttl=ttl)
        return app

    before = InProcess(app("1h").checked())
    before.batch(_events(1, 2, 3))
    assert before.progress.waiting == 3
    after = InProcess(app(None).checked(), store=before.store, progress=before.progress)
    after.clock = before.clock
    after.batch(_events(4))
    assert after.progress.waiting == 3
    after.settle(final=True)
    assert after.progress.waiting == 0
    assert by_function(after.progress.functions, "processed") == {"hits": 4}
    (row,) = of_engine(after).rows.values()
    assert row.endswith(b"4")
