"""What a run came to, in a form that two runs can be compared in, byte for byte.

The reference's outcome is written as the store would hold it: the rows of slates, of table entries
and of the index of timers, each in its shard. So a comparison also finds rows that were left behind
(waiting events, feedback, timers of slates that are gone) and slates in the wrong shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.in_process import InProcess

from millstream.codec import encode_value, shard_of
from millstream.model.event import Event
from millstream.model.slate import Table
from millstream.model.workflow import Workflow
from millstream.reference import Reference
from millstream.stores.contract import Store
from millstream.stores.layout import pack_slate, slates_of, table_of, timer_row, timers_of

Rows = dict[tuple[int, bytes], bytes]
"""(shard, key) and value of every row of a store."""
Letter = tuple[str | None, str, int, str, bytes, str | None]
"""(function, stream, ts, key, value, timer) of a dead letter."""


@dataclass(frozen=True)
class Outcome:
    """The rows of the store, every stream's events and the dead letters, sorted; and counts."""

    rows: Rows
    streams: dict[str, list[tuple[int, str, bytes]]]
    letters: list[Letter]
    counts: dict[str, dict[str, int]]
    """Slates by update, events by stream and dead letters by function, as the engine counts."""

    def without_shards(self) -> tuple[dict[bytes, bytes], Any, Any]:
        """The same, whatever the number of shards."""
        return {row: value for (_, row), value in self.rows.items()}, self.streams, self.letters


def of_reference(workflow: Workflow, events: Iterable[Event], shards: int) -> Outcome:
    """What the reference makes of the events."""
    reference = Reference(workflow)
    reference.feed(events)
    reference.drain()
    rows: Rows = {}
    for (name, key), slate in reference.slates.items():
        shard = shard_of(name, key, shards)
        row = pack_slate(slate.last, slate.data, slate.timers)
        rows[shard, slates_of(name) + key.encode()] = row
        if workflow.update(name).slate is Table:
            for entry, value in slate.entries.items():
                rows[shard, table_of(name, key) + entry.encode()] = value
        for clock, at in slate.timers.values():
            rows[shard, timer_row(timers_of(name, clock), at, key)] = b""
    letters = [
        (one.function, one.stream, one.ts, one.key, encode_value(one.value), one.timer)
        for one in reference.dead_letters
    ]
    streams = _streams(reference.streams)
    counts = {
        "slates": dict(Counter(name for name, _ in reference.slates)),
        "emitted": {name: len(some) for name, some in streams.items()},
        "failed": dict(Counter(one.function or one.stream for one in reference.dead_letters)),
    }
    return Outcome(rows, streams, _sorted(letters), counts)


def of_engine(run: InProcess) -> Outcome:
    """What the engine has come to so far."""
    assert run.store is not None
    letters = [
        (
            one["function"],
            one["stream"],
            one["ts"],
            one["key"],
            encode_value(one["value"]),
            one["timer"],
        )
        for one in run.letters
    ]
    progress = run.progress
    counted = {name: getattr(progress, name) for name in ("slates", "emitted", "failed")}
    counts = {name: {key: n for key, n in some.items() if n} for name, some in counted.items()}
    rows = stored(run.store, progress.batch)
    return Outcome(rows, _streams(run.streams), _sorted(letters), counts)


def stored(store: Store, committed: int) -> Rows:
    """Every row of a store as of a committed batch."""
    rows: Rows = {}
    for number in range(store.shards):
        with store.shard(number).at(committed) as view:
            rows.update(((number, row), value) for row, value in view.scan(b""))
    return rows


def _streams(streams: dict[str, list[Event]]) -> dict[str, list[tuple[int, str, bytes]]]:
    return {
        name: sorted((event.ts, event.key, encode_value(event.value)) for event in events)
        for name, events in streams.items()
        if events
    }


def _sorted(letters: list[Letter]) -> list[Letter]:
    return sorted(letters, key=lambda letter: tuple(map(str, letter)))
