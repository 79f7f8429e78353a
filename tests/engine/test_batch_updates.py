"""Updates over many events at once: the engine gives what calling them event by event gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engine.in_process import InProcess
from engine.outcome import of_engine, of_reference
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream import App
from millstream.engine.horizon import Lane
from millstream.errors import FunctionError
from millstream.model.event import Event, emit
from millstream.testing import run as run_reference

LANES: tuple[Lane, ...] = ("one-task", "shuffled")
LIMIT = 4_200
"""A slate limit that is just high enough for slates not to be checked after each event."""


@dataclass
class Balance:
    """A dataclass slate whose value depends on the order of its events."""

    total: int = 0
    last: str = ""


def chain(events: list[Event], slate: dict[str, Any]) -> None:
    """Depends on the order of the events; fails at 13, after it has changed values and slate."""
    for event in events:
        number = event.value.pop("n")
        slate["n"] = slate.get("n", 0) * 7 % 1_000_003 + number
        slate["streams"] = [*slate.get("streams", []), event.stream][-5:]
        if number == 13:
            raise ValueError("13 is not counted")


def balance(events: list[Event], slate: Balance) -> None:
    """The same with a dataclass; the list is its own to change."""
    while events:
        event = events.pop(0)
        slate.total = slate.total * 3 % 1_009 + event.value["n"]
        slate.last = f"{event.key} {event.ts}"
        if event.value["n"] == 13:
            raise SystemExit


def unfit(events: list[Event], slate: dict[str, Any]) -> None:
    """Keeps what JSON would change (a tuple), cannot carry (an object), or is too large."""
    for event in events:
        number = event.value["n"]
        slate["seen"] = (*slate.get("seen", ()), type(slate.get("seen")).__name__)
        slate.setdefault("held", []).append({13: object(), 12: "x" * LIMIT}.get(number, number))


def returning(events: list[Event], slate: dict[str, Any]) -> Any:
    """Returns something for 5, which it must not."""
    slate["count"] = slate.get("count", 0) + len(events)
    return [5] if any(event.value["n"] == 5 for event in events) else None


@dataclass
class Row:
    """The slate of an update across keys."""

    n: int = 0
    count: int = 0
    mean: float = 0
    note: str | None = None


@dataclass
class Value:
    """The columns of the events' values."""

    n: int
    half: float | None = None


def totals(events: pa.Table, slates: pa.Table) -> dict[str, Any]:
    """A sum and a mean with NumPy; `note` stays as it is. A 13 fails for all keys."""
    rows, numbers, size = events["row"].to_numpy(), events["n"].to_numpy(), len(slates)
    assert list(rows) == sorted(rows)
    if (numbers == 13).any():
        raise ValueError("13 is not counted")
    count = slates["count"].to_numpy() + np.bincount(rows, minlength=size)
    total = slates["n"].to_numpy() + np.bincount(rows, numbers, size).astype(np.int64)
    return {"n": total, "count": count, "mean": total / count}


def rowwise(events: pa.Table, slates: pa.Table) -> pa.Table:
    """Depends on the order of the events. Its slates are not numbers for 5, too large for 12, and
    too few for 13, and stay so."""
    held = slates.to_pylist()
    for event in events.to_pylist():
        slate, number = held[event["row"]], event["n"]
        assert slate["key"] == event["key"]
        slate["n"] = slate["n"] * 7 % 1_000_003 + number
        slate["mean"] += math.nan if number == 5 else event["half"] or 0
        long = "x" * LIMIT if number == 12 else ""
        slate["note"] = (slate["note"] or "")[:9_999] + event["stream"] + long
        if number == 13:
            held.pop()
            break
    return pa.Table.from_pylist(held)


BATCH: dict[str, Any] = {"batch": True}
TABLES = {"batch": True, "across_keys": True, "slate": Row, "values": Value}
UPDATES: tuple[tuple[Any, dict[str, Any]], ...] = (
    (chain, BATCH),
    (balance, BATCH | {"slate": Balance}),
    (unfit, BATCH),
    (returning, BATCH),
    (totals, TABLES),
    (rowwise, TABLES),
)


@dataclass(frozen=True)
class BatchCase:
    """An application of updates over many events at once, and how to run it."""

    order: Any
    updates: tuple[tuple[tuple[Any, dict[str, Any]], str, int | None], ...]
    """((function, options), stream, ttl) of each."""
    batches: tuple[tuple[Event, ...], ...]
    shards: int
    tasks: int

    def app(self, on_error: Any = "dead-letter") -> App:
        app = App("made", order=self.order, on_error=on_error, slate_limit=LIMIT)
        app.source("a", lateness="10us")
        app.source("b", lateness="10us")

        @app.map("a", publishes="mapped")
        def double(event: Event) -> Any:
            yield emit(key="k" + event.key, value={"n": event.value["n"] + 1})
            yield emit(key="all")

        @app.update("a", "b", publishes="counted")
        def before(event: Event, slate: dict[str, int]) -> Any:
            slate["n"] = slate.get("n", 0) * 7 % 1_000_003 + event.value["n"]
            yield emit(value={"n": slate["n"] % 14})

        for number, ((function, options), stream, ttl) in enumerate(self.updates):
            lives = None if ttl is None else f"{ttl}us"
            app.update(*stream.split(), name=f"batch{number}", ttl=lives, **options)(function)
        return app

    @property
    def events(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]


events = st.builds(
    lambda stream, ts, key, n: Event(stream, ts, key, n if n is None else {"n": n, "half": 0.5}),
    st.sampled_from("ab"),
    st.integers(0, 30),
    st.sampled_from(("x", "x", "y", "é", "k" * 600)),
    st.sampled_from((0, 1, 1, 2, 2, 2, 5, 12, 13, 1.5, "no", None, 1 << 63)),
)


@st.composite
def cases(draw: Any) -> BatchCase:
    updates = st.tuples(
        st.sampled_from(UPDATES),
        st.sampled_from(("a", "a b", "mapped", "counted", "a counted")),
        st.sampled_from((None, None, 1, 3, 12)),
    )
    fed = draw(st.lists(events, min_size=draw(st.sampled_from((0, 5, 15))), max_size=30))
    edges = [0, *sorted(draw(st.lists(st.integers(0, 30), max_size=4))), len(fed)]
    return BatchCase(
        draw(st.sampled_from(("arrival", "event-time"))),
        tuple(draw(st.lists(updates, min_size=1, max_size=3))),
        tuple(tuple(fed[a:b]) for a, b in pairwise(edges)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 3)),
    )


def run(case: BatchCase, lane: Lane) -> InProcess:
    workflow = case.app().checked()
    engine = InProcess(workflow, shards=case.shards, tasks=case.tasks, lane=lane)
    for batch in case.batches:
        engine.batch(batch)
    engine.settle(final=True)
    return engine


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=examples(300))
@given(case=cases())
def test_a_batch_is_one_event_after_the_other(case: BatchCase) -> None:
    """Slates and dead letters are the reference's: expiry, failures and unfit slates included."""
    if case.order == "arrival":  # which is the reference's order within one batch only
        case = replace(case, batches=(tuple(case.events),))
    for lane in LANES:
        engine = run(case, lane)
        left = list(case.events)
        for event in engine.late:
            left.remove(event)
        assert of_engine(engine) == of_reference(case.app().checked(), left, case.shards)


def sums(on_error: Any = "dead-letter") -> tuple[App, list[int]]:
    """An application that sums up, and the sizes of the calls of its update."""
    app, calls = App("sums", on_error=on_error), []
    app.source("numbers")

    @app.update("numbers", batch=True)
    def total(events: list[Event], slate: dict[str, int]) -> None:
        calls.append(len(events))
        slate["sum"] = slate.get("sum", 0) + sum(event.value for event in events)

    return app, calls


def test_the_events_of_a_key_come_in_one_call() -> None:
    """The engine calls the function once for a key, with its events in order."""
    app, calls = sums()
    engine = InProcess(app.checked())
    engine.batch([Event("numbers", ts, "k", ts) for ts in range(100)])
    assert calls == [100]
    assert engine.progress.counts("total").processed == 100


def test_a_bad_event_spoils_no_other() -> None:
    """Only the event that fails alone is a dead letter, with the same error as in the reference."""
    app, calls = sums()
    given = [Event("numbers", ts, "k", "no" if ts == 50 else ts) for ts in range(100)]
    engine = InProcess(app.checked())
    engine.batch([*given, Event("numbers", 1, "other", 1)])
    assert calls == [100, *[1] * 100, 1]
    (letter,) = engine.letters
    meant = run_reference(app, given)
    assert (letter["ts"], letter["error"]) == (50, meant.dead_letters[0].error)
    assert meant.slate("total", "k") == {"sum": sum(range(100)) - 50}


def test_on_error_fail_names_the_update_and_the_key() -> None:
    """With on_error="fail" the first event that fails alone ends the run."""
    app, _ = sums("fail")
    with pytest.raises(FunctionError, match=r"update 'total' \(.*\), key 'k': TypeError"):
        InProcess(app.checked()).batch([Event("numbers", 1, "k", 1), Event("numbers", 2, "k", "")])


def across_keys(on_error: Any = "dead-letter") -> tuple[App, list[tuple[int, int]]]:
    """An application that sums up across keys, and the (events, keys) of its calls."""
    app, calls = App("sums", on_error=on_error), []
    app.source("numbers")

    @app.update("numbers", slate=Row, batch=True, across_keys=True, values=Value)
    def total(events: pa.Table, slates: pa.Table) -> Any:
        calls.append((len(events), len(slates)))
        return totals(events, slates)

    return app, calls


def test_many_keys_come_in_one_call() -> None:
    """The engine calls the function once for all keys of a shard; the slates go on in batch 2."""
    app, calls = across_keys()
    engine = InProcess(app.checked(), shards=1)
    given = [Event("numbers", ts, f"k{ts % 10}", {"n": ts % 12}) for ts in range(200)]
    engine.batch(given[:100])
    engine.batch(given[100:])
    assert calls == [(100, 10), (100, 10)]
    assert of_engine(engine) == of_reference(app.checked(), given, 1)


def test_a_bad_event_costs_few_calls() -> None:
    """The keys of a call that failed are halved until the bad one is found; a value that does not
    fit its columns takes no part in the call."""
    app, calls = across_keys()
    engine = InProcess(app.checked(), shards=1)
    given = [Event("numbers", ts, f"k{ts % 64}", {"n": ts % 12}) for ts in range(640)]
    given += [Event("numbers", 700, "k7", {"n": 13}), Event("numbers", 701, "k9", {"n": "no"})]
    engine.batch(given)
    sizes = [keys for _, keys in calls]
    assert sizes[0] == 63
    assert len([size for size in sizes if size > 1]) < 2 * 6
    assert sorted(letter["ts"] for letter in engine.letters) == [700, 701]
    assert of_engine(engine) == of_reference(app.checked(), given, 1)
