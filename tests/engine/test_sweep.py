"""Sweeping expired slates in the background: they go, and nothing that can be seen changes."""

from __future__ import annotations

from typing import Any

import pytest
from case_counter import count_case
from engine.in_process import InProcess
from engine.outcome import of_engine, of_reference, stored
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from progress_counts import by_function

import millstream as ms
from millstream.engine.cells import sweep
from millstream.engine.cells.sweep import Sweeps, sweep_until, vacuum_until
from millstream.stores.contract import Fence, View
from millstream.stores.layout import pack_slate, slates_of
from millstream.stores.memory import MemoryStore
from millstream.stores.progress import PendingWork, Progress, SourceProgress

TTL = 10


def an_app(order: Any = "event-time", slate: Any = dict, clock: Any = "event") -> ms.App:
    """Counts that expire, with a timer each; what they have come to is emitted."""
    app = ms.App("swept", order=order)
    app.source("clicks")
    app.output("out")

    @app.update("clicks", publishes="out", slate=slate, ttl=f"{TTL}us")
    def count(event: ms.Event, slate: Any) -> Any:
        slate["n"] = slate.get("n", 0) + 1
        yield ms.timer(after=f"{event.value}us", clock=clock)
        yield ms.emit(value=slate["n"])

    @count.on_timer
    def ring(timer: ms.Timer, slate: Any) -> Any:
        yield ms.emit(value=["rang", slate["n"]])

    return app


def click(ts: int, key: str = "a", after: int = 3) -> ms.Event:
    return ms.Event("clicks", ts, key, after)


def slates(engine: InProcess) -> set[str]:
    """The keys that have a slate."""
    assert engine.store is not None
    prefix = slates_of("count")
    rows = stored(engine.store, engine.progress.batch)
    return {row[len(prefix) :].decode() for _, row in rows if row.startswith(prefix)}


@pytest.mark.parametrize("order", ["event-time", "arrival"])
@pytest.mark.parametrize("slate", [dict, ms.Table])
def test_expired_slates_go(order: str, slate: type) -> None:
    """With time past its ttl a slate goes, its entries and timers with it, and is counted."""
    engine = InProcess(an_app(order, slate).checked())
    engine.batch([click(1, "old", after=1000), click(2, "young")])
    for ts in (40, 41, 42):
        engine.batch([click(ts, "young")])
    assert slates(engine) == {"young"}
    assert by_function(engine.progress.functions, "slates") == {"count": 1}
    assert by_function(engine.progress.functions, "swept") == {"count": 1}
    assert engine.store is not None
    left = [row for _, row in stored(engine.store, engine.progress.batch) if b"old" in row]
    assert left == []


def test_runs_in_one_process_sweep_apart() -> None:
    """A run whose time is far ahead does not let another one with the same names rest."""
    ahead, behind = InProcess(an_app().checked()), InProcess(an_app().checked())
    for engine, start in ((ahead, 1_000_000), (behind, 0)):
        engine.batch([click(start, "old", after=1000), click(start + 1, "young")])
        for ts in (40, 41, 42):
            engine.batch([click(start + ts, "young" if ts % 2 else "other")])
        assert slates(engine) == {"young", "other"}


def test_slates_that_come_and_go_do_not_pile_up() -> None:
    """Where each batch makes hundreds of slates, expired ones are never many more than live."""
    engine, made = InProcess(an_app("arrival").checked(), shards=1), 600
    for batch in range(20):
        first = batch * made
        engine.batch([click(10 * TTL * batch, f"k{n}") for n in range(first, first + made)])
    assert len(slates(engine)) <= 4 * made


def test_arrival_order_waits_for_another_ttl() -> None:
    """An event that is out of order by less than the ttl finds the slate that it would have."""
    engine = InProcess(an_app("arrival").checked())
    engine.batch([click(1, "a", after=1000)])
    engine.batch([click(TTL + 5, "b")])
    engine.batch([click(TTL + 6, "b")])
    engine.batch([click(4, "a")])
    assert [event.value for event in engine.streams["out"] if event.ts == 5] == [2]


def test_a_source_that_lags_holds_sweeping_back() -> None:
    """In arrival order the least of the sources' times counts; events that wait stop it."""
    workflow = an_app("arrival").checked()
    sources = {"a": SourceProgress(highest=1_000), "b": SourceProgress(highest=7)}
    progress = Progress(sources=sources)
    assert sweep_until(workflow, progress, 1_000, None) == 7
    progress.pending.held = 1
    assert sweep_until(workflow, progress, 1_000, None) is None
    assert sweep_until(an_app().checked(), progress, 1_000, None) == 1_000


def test_feedback_holds_a_vacuum_back() -> None:
    """Events on their way round are older than the horizon; a slate that they may find stays."""
    progress = Progress(horizon=100, highest=120, pending=PendingWork(feedback=1))
    assert vacuum_until("event-time", progress, 60) == 60
    assert vacuum_until("arrival", Progress(horizon=100, highest=120), None) == 120


@settings(max_examples=examples(150))
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 25), st.sampled_from("abc"), st.integers(1, 40), st.booleans()),
        max_size=25,
    ),
    lane=st.sampled_from(["one-task", "shuffled"]),
    table=st.booleans(),
)
def test_sweeping_changes_nothing(
    steps: list[tuple[int, str, int, bool]], lane: Any, table: bool
) -> None:
    """Streams and living slates are the reference's, however often slates are swept between."""
    app = an_app(slate=ms.Table if table else dict)
    engine = InProcess(app.checked(), lane=lane)
    events, batch, ts = [], [], 0
    for step, key, after, ends in steps:
        ts += step
        events.append(click(ts, key, after))
        batch.append(events[-1])
        if ends:
            engine.batch(batch)
            batch = []
            ts += 1  # so that nothing is late
    engine.batch(batch)
    engine.settle(final=True)
    assert not engine.late
    assert of_engine(engine) == of_reference(app.checked(), events, engine.shards)
    count_case("sweeping against reference")


def test_a_round_goes_on_where_it_was_and_then_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows a batch, all of them in a round; then none until one can have expired."""
    monkeypatch.setattr(sweep, "ROWS", 4)
    store = MemoryStore(1)
    rows = {slates_of("u") + b"%02d" % n: pack_slate(100 + n, b"{}", {}) for n in range(10)}
    store.shard(0).commit(Fence(1, 0, 0), {"u": rows})
    looked: list[bytes] = []

    class Watched:
        """A view that notes what is read."""

        def __init__(self, view: View) -> None:
            self._view = view

        def scan(self, start: bytes, stop: bytes | None) -> Any:
            for row, value in self._view.scan(start, stop):
                looked.append(row)
                yield row, value

    sweeps = Sweeps()
    with store.shard(0).at(0) as view:
        watched: Any = Watched(view)
        found = [sweeps.expired(watched, "u", 0, 102, {"00"}) for _ in range(3)]
        assert [[key for key, _ in some] for some in found] == [["01"], [], []]
        assert len(looked) == 10
        assert sweeps.expired(watched, "u", 0, 102, ()) == []
        assert len(looked) == 10, "nothing can have expired since"
        assert [key for key, _ in sweeps.expired(watched, "u", 0, 103, ())] == ["00", "01", "02"]
