"""Changes of slates: after every batch, all changes so far are exactly the slates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.disturbed import Crashing, CrashingStore, Retried
from engine.in_process import InProcess
from engine.outcome import stored
from engine.test_against_reference import LANES, finish, generated, less_late
from engine.workflow_case import Case
from engine.workflow_cases import cases
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.model.event import Event
from millstream.model.slate import Table
from millstream.model.stream import ChangeOutput
from millstream.model.workflow import Workflow
from millstream.reference import Reference
from millstream.reference_changes import Held, ReferenceChanges
from millstream.reference_final import end_event_time
from millstream.slate_changes import SlateChange
from millstream.stores.layout import slates_of, table_of, unpack_slate
from millstream.stores.memory import MemoryStore

lanes = st.sampled_from(LANES)


def with_changes(workflow: Workflow) -> Workflow:
    """The workflow, with the changes of every update as an output."""
    outputs = tuple(ChangeOutput(f"{u.name}.changes", u.name) for u in workflow.updates)
    return replace(workflow, changes=outputs)


def apply(held: Held, change: SlateChange) -> None:
    if change.slate is None:
        held.pop((change.key, change.entry), None)
    else:
        held[change.key, change.entry] = change.slate, change.ts


@dataclass
class Followed(InProcess):
    """Applies the changes of each batch, and compares them with the store."""

    held: dict[str, Held] = field(default_factory=dict)

    def batch(self, events: Sequence[Event], **given: Any) -> None:
        self.changes.clear()
        super().batch(events, **given)
        for output in self.workflow.changes:
            changes = self.changes.get(output.name, ())
            names = [(change.key, change.entry) for change in changes]
            assert len(names) == len(set(names)), "a batch has one change of a key"
            assert {change.batch for change in changes} <= {self.progress.batch}
            held = self.held.setdefault(output.update, {})
            for change in changes:
                apply(held, change)
            assert_is_stored(self, output.update, held, set(names))


@dataclass
class FollowedRetried(Followed, Retried):
    """With tasks that are tried again."""


@dataclass
class FollowedCrashing(Followed, Crashing):
    """With drivers that die."""


def assert_is_stored(engine: InProcess, name: str, held: Held, changed: set[Any]) -> None:
    """Checks that the applied changes equal the store as of the last batch."""
    assert engine.store is not None
    rows = stored(engine.store, engine.progress.batch)
    prefix = slates_of(name)
    slates = {
        row[len(prefix) :].decode(): unpack_slate(value)
        for (_, row), value in rows.items()
        if row.startswith(prefix)
    }
    if engine.workflow.update(name).slate is not Table:
        assert held == {(key, ""): (slate.data, slate.last) for key, slate in slates.items()}
        return
    entries = {
        (key, row[len(table) :].decode()): value
        for key in slates
        for table in [table_of(name, key)]
        for (_, row), value in rows.items()
        if row.startswith(table)
    }
    assert {one: value for one, (value, _) in held.items()} == entries
    assert all(held[key, entry][1] == slates[key].last for key, entry in changed & held.keys())


def assert_is_meant(engine: Followed, events: Sequence[Event]) -> None:
    """In the end the applied changes are the reference's, but for slates that have expired."""
    reference = Reference(engine.workflow)
    reference.feed(events)
    end_event_time(reference)
    progress = engine.progress
    times = (reference.ended, reference.highest, progress.horizon, progress.highest)
    end = max((time for time in times if time is not None), default=0)
    for output in engine.workflow.changes:
        meant: Held = {}
        for change in ReferenceChanges(reference, output.update).take():
            apply(meant, change)
        update = engine.workflow.update(output.update)
        living = {
            key
            for (name, key), slate in reference.slates.items()
            if name == update.name and (update.ttl is None or end - slate.last <= update.ttl)
        }
        found = engine.held.get(update.name, {})
        of_table = update.slate is Table  # an entry keeps the ts of the batch that changed it
        assert {k: v[:1] if of_table else v for k, v in found.items() if k[0] in living} == {
            k: v[:1] if of_table else v for k, v in meant.items() if k[0] in living
        }


@generated(40)
@given(cases(), lanes)
def test_changes_are_the_slates(case: Case, lane: Any) -> None:
    """After every batch the changes applied so far are the slates and entries of the store; in the
    end, those of the reference, whatever the batches, shards and lane."""
    workflow = with_changes(case.workflow())
    engine = Followed(workflow, lane=lane, shards=case.shards, tasks=case.tasks)
    finish(engine, case)
    assert_is_meant(engine, less_late(case, engine))


@generated(15)
@given(cases(order="arrival", cyclic=True), lanes, st.integers(0, 10))
def test_with_tasks_that_are_tried_again(case: Case, lane: Any, share: int) -> None:
    """An attempt of a task that did not count leaves no change behind, in arrival order and with
    cycles too."""
    workflow = with_changes(case.workflow())
    shape = {"lane": lane, "shards": case.shards, "tasks": case.tasks}
    finish(FollowedRetried(workflow, share=share, **shape), case)


@generated(15)
@given(cases(), lanes, st.integers(0, 3))
def test_with_drivers_that_die(case: Case, lane: Any, commits: int) -> None:
    """A batch that was not committed has no changes; the one in its place has them all."""
    store = CrashingStore(MemoryStore(case.shards))
    shape = {"lane": lane, "shards": case.shards, "tasks": case.tasks}
    finish(
        FollowedCrashing(with_changes(case.workflow()), store=store, commits=commits, **shape), case
    )


def room_app() -> ms.App:
    """Slates that go in every way there is."""
    app = ms.App("room", order="event-time")
    app.source("s", ts="ts")
    app.aggregate("s", algebra=ms.algebra.count(), name="counted")
    app.aggregate("s", algebra=ms.algebra.count(), name="expires", ttl="5us")

    @app.update("s", keep=3)
    def kept(event: Any, slate: dict[str, Any]) -> None:
        slate["n"] = slate.get("n", 0) + 1

    @app.update("s", ttl="5us")
    def swept(event: Any, slate: dict[str, Any]) -> None:
        slate["n"] = slate.get("n", 0) + 1

    @app.update("s", slate=ms.Table, keep=3)
    def tables(event: Any, slate: ms.Table) -> Any:
        slate[str(event.value)] = event.value
        slate.discard(str(event.value - 2))
        if event.value == 5:
            yield ms.forget()

    return app


_batches = st.lists(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abcdefgh"), st.integers(0, 6))),
    max_size=6,
)


@generated(30)
@given(_batches, lanes, st.integers(1, 3))
def test_slates_that_go(batches: list[list[Any]], lane: Any, shards: int) -> None:
    """Aggregates, and slates that are evicted, swept and forgotten: the same holds."""
    engine = Followed(with_changes(room_app().checked()), lane=lane, shards=shards)
    for number, batch in enumerate(batches):
        engine.batch([Event("s", 20 * number + ts, key, value) for ts, key, value in batch])
    engine.settle(final=True)
