"""The expected slates and rows of an update with limited room, computed from all of its slates.

The oracle of a batch is the same batch without the limits, over a copy of the store: from what that
leaves, the slates to keep are found by sorting them all, and the rows to store by writing them all.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.in_process import InProcess
from engine.outcome import Rows, stored
from progress_counts import by_function

from millstream.codec import decode_value, encode_value, slate_codec
from millstream.engine.cells.priority import mark_of
from millstream.model.event import Event
from millstream.model.function import Update
from millstream.model.slate import Table
from millstream.model.workflow import Workflow
from millstream.stores.layout import slates_of, table_of, timer_row, timers_of, unpack_slate
from millstream.stores.memory import MemoryStore
from millstream.stores.ranks import sortable

Place = tuple[int, str]
"""(shard, key) of a slate."""


@dataclass(frozen=True)
class Kept:
    """A slate as the order must know it."""

    priority: float
    last: int
    key: str
    size: int
    slate: int
    """Bytes of its row, without its entries."""


def limited(workflow: Workflow) -> list[Update]:
    return [one for one in workflow.updates if one.keep is not None or one.memory is not None]


def without_limits(workflow: Workflow) -> Workflow:
    """The same workflow, with room for everything."""
    functions = tuple(
        replace(one, keep=None, memory=None, priority=None) if isinstance(one, Update) else one
        for one in workflow.functions
    )
    return replace(workflow, functions=functions)


def slates_in(rows: Rows, update: Update) -> dict[Place, Kept]:
    """Every slate of an update."""
    prefix, found = slates_of(update.name), {}
    for (shard, row), value in rows.items():
        if row.startswith(prefix):
            key = row[len(prefix) :].decode()
            table, entries = table_of(update.name, key), {}
            if update.slate is Table:
                entries = {r: v for (s, r), v in rows.items() if s == shard and r.startswith(table)}
            slate = unpack_slate(value)
            given = {row[len(table) :].decode(): decode_value(v) for row, v in entries.items()}
            size = len(row) + len(value)
            found[shard, key] = Kept(
                _priority(update, key, slate.data, given),
                slate.last,
                key,
                size + sum(len(row) + len(value) for row, value in entries.items()),
                size,
            )
    return found


def _priority(update: Update, key: str, data: bytes, entries: dict[str, Any]) -> float:
    if update.priority is None:
        return 0.0
    try:
        slate: Any = slate_codec(update.slate).decode(data) if update.slate is not Table else None
        if update.slate is Table:
            slate = Table(_Stored(entries), encode_value, decode_value)
        given = float(update.priority(key, slate))
        return given if given - given == 0 else float("-inf")
    except (ValueError, KeyError, TypeError, OverflowError):
        return float("-inf")


class _Stored:
    """Entries of a table, for a priority to read."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries

    def get(self, entry: str) -> bytes | None:
        return encode_value(self._entries[entry]) if entry in self._entries else None

    def scan(self, start: str, stop: str | None, reverse: bool) -> Iterator[tuple[str, bytes]]:
        for entry in sorted(self._entries, reverse=reverse):
            if start <= entry and (stop is None or entry < stop):
                yield entry, encode_value(self._entries[entry])


def going(rows: Rows, update: Update, shards: int) -> set[Place]:
    """The slates that must go, by sorting all of them."""
    slates, gone = slates_in(rows, update), set()
    for number in range(shards):
        here = sorted(
            (one for (shard, _), one in slates.items() if shard == number),
            key=lambda one: (one.priority, one.last, one.key.encode()),
        )
        while len(here) > 1 and (
            (update.keep is not None and len(here) > -(-update.keep // shards))
            or (
                update.memory is not None
                and sum(one.size for one in here) > -(-update.memory // shards)
            )
        ):
            gone.add((number, here.pop(0).key))
    return gone


def less(rows: Rows, update: Update, gone: set[Place]) -> Rows:
    """The rows without some slates, their timers and their entries."""
    left = dict(rows)
    for shard, key in gone:
        value = left.pop((shard, slates_of(update.name) + key.encode()))
        for clock, at in unpack_slate(value).timers.values():
            left.pop((shard, timer_row(timers_of(update.name, clock), at, key)), None)
        table = table_of(update.name, key)
        for one in [one for one in left if one[0] == shard and one[1].startswith(table)]:
            del left[one]
    return left


def order_rows(rows: Rows, update: Update, shards: int) -> Rows:
    """Every row that keeps the order of an update's slates."""
    prefix, made = b"P" + update.name.encode() + b"\x00", {}
    totals = dict.fromkeys(range(shards), (0, 0))
    for (shard, key), one in slates_in(rows, update).items():
        priority, last = sortable(one.priority), (one.last + (1 << 63)).to_bytes(8, "big")
        made[shard, prefix + b"i" + priority + last + key.encode()] = one.size.to_bytes(8, "big")
        rank = one.last.to_bytes(8, "big", signed=True) + one.slate.to_bytes(8, "big")
        rest = (one.size - one.slate).to_bytes(8, "big")
        made[shard, prefix + b"r" + key.encode()] = priority + rank + rest
        slates, size = totals[shard]
        totals[shard] = slates + 1, size + one.size
    for shard, (slates, size) in totals.items():
        packed = slates.to_bytes(8, "big") + size.to_bytes(8, "big")
        made[shard, prefix + b"t"] = mark_of(update) + packed
    return made


def all_rows(engine: InProcess) -> Rows:
    assert engine.store is not None
    return stored(engine.store, engine.progress.batch)


def plain(rows: Rows) -> Rows:
    """The rows without the order of slates."""
    return {place: value for place, value in rows.items() if place[1][:1] != b"P"}


def twin_of(engine: InProcess) -> InProcess:
    """The application as it is now, over a copy of its store, with room for everything."""
    assert isinstance(engine.store, MemoryStore)
    store = MemoryStore(engine.shards)
    for number in range(engine.shards):
        store.shard(number)._content = engine.store.shard(number)._content
    twin = InProcess(
        without_limits(engine.workflow),
        shards=engine.shards,
        lane=engine.lane,
        store=store,
        clock=engine.clock,
        progress=copy.deepcopy(engine.progress),
    )
    twin.attempts, twin.epoch = engine.attempts + 1_000, engine.epoch
    return twin


def check_order(engine: InProcess) -> None:
    """The stored order and the totals are those of the slates that are there, and no other."""
    rows, order = all_rows(engine), {}
    for update in limited(engine.workflow):
        order |= order_rows(rows, update, engine.shards)
    assert {place: value for place, value in rows.items() if place[1][:1] == b"P"} == order


def check_batch(engine: InProcess, events: Sequence[Event]) -> int:
    """Run a batch and hold it against its twin without limits; how many slates went."""
    twin, before = twin_of(engine), Counter(by_function(engine.progress.functions, "evicted"))
    emitted = {name: len(some) for name, some in engine.streams.items()}
    twin.batch(events)
    engine.batch(events)
    must, went = plain(all_rows(twin)), Counter(before)
    for update in limited(engine.workflow):
        gone = going(must, update, engine.shards)
        must = less(must, update, gone)
        went[update.name] += len(gone)
        assert engine.progress.counts(update.name).slates == len(slates_in(must, update))
    assert plain(all_rows(engine)) == must
    assert Counter(by_function(engine.progress.functions, "evicted")) == went
    check_order(engine)
    for name, some in engine.streams.items():
        assert sorted(map(str, some[emitted.get(name, 0) :])) == sorted(
            map(str, twin.streams.get(name, []))
        )
    return sum(went.values()) - sum(before.values())
