"""The result of a run, in a form in which two runs can be compared byte for byte.

The reference's outcome is written as the store would hold it: the rows of slates, of table entries
and of the index of timers, each in its shard. So a comparison also finds rows that were left behind
(waiting events, feedback, timers of slates that are gone) and slates in the wrong shard.

The reference keeps slates that have expired; the engine sweeps them when it comes to them. So two
outcomes are the same if they are but for slates that have expired by the later end of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from engine.in_process import InProcess

from millstream.codec import encode_value, shard_of
from millstream.model.event import Event
from millstream.model.slate import Table
from millstream.model.workflow import Workflow
from millstream.reference import Reference
from millstream.reference_final import end_event_time
from millstream.stores.contract import Store
from millstream.stores.layout import (
    pack_slate,
    slates_of,
    table_of,
    timer_row,
    timers_of,
    unpack_slate,
)

Rows = dict[tuple[int, bytes], bytes]
"""(shard, key) and value of every row of a store."""
Letter = tuple[str | None, str, int, str, bytes, str | None]
"""(function, stream, ts, key, value, timer) of a dead letter."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The rows of the store, every stream's events and the dead letters, sorted; and counts."""

    rows: Rows
    streams: dict[str, list[tuple[int, str, bytes]]]
    letters: list[Letter]
    counts: dict[str, dict[str, int]]
    """Events by stream and dead letters by function, as the engine counts."""
    ttls: dict[str, int]
    """The updates whose slates expire."""
    end: int | None
    """The event time that was reached."""

    def without_shards(self) -> Outcome:
        """The same, whatever the number of shards."""
        rows = {(0, row): value for (_, row), value in self.rows.items()}
        return replace(self, rows=rows, counts={})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcome):
            return NotImplemented
        end = max((o.end for o in (self, other) if o.end is not None), default=None)
        return self._as_of(end) == other._as_of(end)

    __hash__ = None  # type: ignore[assignment]

    def _as_of(self, end: int | None) -> tuple[Any, ...]:
        """Returns the part that must be equal: all but the slates that have expired by then."""
        return self.living(end), self.streams, self.letters, self.counts

    def living(self, end: int | None) -> Rows:
        """The rows without those of slates that have expired."""
        gone: list[tuple[int, bytes]] = []
        for name, ttl in self.ttls.items() if end is not None else ():
            assert end is not None
            prefix = slates_of(name)
            for (shard, row), value in self.rows.items():
                if row.startswith(prefix) and end - unpack_slate(value).last > ttl:
                    key = row[len(prefix) :].decode()
                    gone.append((shard, row))
                    for clock, at in unpack_slate(value).timers.values():
                        gone.append((shard, timer_row(timers_of(name, clock), at, key)))
                    table = table_of(name, key)
                    gone += [one for one in self.rows if one[1].startswith(table)]
        return {row: value for row, value in self.rows.items() if row not in set(gone)}


def of_reference(
    workflow: Workflow,
    events: Iterable[Event],
    shards: int,
    late: Iterable[tuple[Event, int]] = (),
) -> Outcome:
    """Returns the reference's outcome at the end of event time.

    `late` has late events, each with the horizon that it has missed.
    """
    reference = Reference(workflow)
    reference.feed(events)
    for event, missed in late:
        reference.set_aside(event, missed)
    end_event_time(reference)
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
        "emitted": {name: len(some) for name, some in streams.items()},
        "failed": dict(Counter(one.function or one.stream for one in reference.dead_letters)),
    }
    return Outcome(rows, streams, _sorted(letters), counts, _ttls(workflow), _end(reference))


def _end(reference: Reference) -> int | None:
    return reference.highest if reference.ended is None else reference.ended


def of_engine(run: InProcess) -> Outcome:
    """Returns the engine's outcome so far."""
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
    failed = {name: counts.failed for name, counts in progress.functions.items()}
    counted = {"emitted": progress.emitted, "failed": failed}
    counts = {name: {key: n for key, n in some.items() if n} for name, some in counted.items()}
    rows = stored(run.store, progress.batch)
    # The order of slates follows from them: tests/engine/test_room.py holds it.
    rows = {place: value for place, value in rows.items() if place[1][:1] != b"P"}
    slates = Counter(
        update.name
        for update in run.workflow.updates
        for _, row in rows
        if row.startswith(slates_of(update.name))
    )
    assert {name: n for name, n in progress.slates.items() if n} == slates
    end = max((t for t in (progress.horizon, progress.highest) if t is not None), default=None)
    ttls = _ttls(run.workflow)
    return Outcome(rows, _streams(run.streams), _sorted(letters), counts, ttls, end)


def _ttls(workflow: Workflow) -> dict[str, int]:
    return {update.name: update.ttl for update in workflow.updates if update.ttl is not None}


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
