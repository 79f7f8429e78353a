"""An application with elements on the engine in memory, compared with the reference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from engine.in_process import InProcess
from engine.outcome import of_engine, of_reference
from hypothesis import strategies as st

from millstream import App
from millstream.engine.horizon import Lane
from millstream.model.event import Event

lanes: st.SearchStrategy[Lane] = st.sampled_from(["one-task", "shuffled"])
cuttings = st.lists(st.integers(0, 40), max_size=6)
"""Where the input is cut into batches."""


def check_engine_is_reference(
    app: App, events: Sequence[Event], cuts: Sequence[int], shards: int, lane: Lane
) -> InProcess:
    """Batches give the reference's slates, streams and dead letters, over all that was not late and
    what was, set aside."""
    engine = run_in_batches(app, events, cuts, shards, lane)
    left = list(events)
    for event in engine.late:
        left.remove(event)
    late = zip(engine.late, engine.missed, strict=True)
    assert of_engine(engine) == of_reference(engine.workflow, left, shards, late)
    return engine


def run_in_batches(
    app: App, events: Sequence[Event], cuts: Sequence[int], shards: int, lane: Lane
) -> InProcess:
    """The engine at the end of the events, in the order given, cut into batches."""
    engine = InProcess(app.workflow(), shards=shards, lane=lane)
    edges = [0, *sorted(cuts), max(len(events), *cuts, 0)]
    for first, last in pairwise(edges):
        engine.batch(events[first:last])
    engine.settle(final=True)
    return engine
