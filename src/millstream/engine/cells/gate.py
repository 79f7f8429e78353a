"""Holds back the events of one function in one shard until the horizon has passed them.

Waiting events are stored in chunks, each in order of time. The horizon alone tells which of a
chunk's events are done (everything up to the horizon of the previous batch), so a partly processed
chunk need not be rewritten. Once more than half is done, the rest is rewritten: otherwise one event
far ahead of its chunk would have the whole chunk read in every batch. A chunk has the number of the
batch in which its events came, so it is known how long an event has waited when it becomes due.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.engine.columns import Columns
from millstream.stores.contract import View, after_prefix
from millstream.stores.layout import waiting_chunk, waiting_least, waiting_of, waiting_row

CHUNK = 4_096


class Gate:
    """Lets events through up to a horizon that only rises; holds the others."""

    def __init__(self, view: View, function: str, passed: int | None, batch: int) -> None:
        self._batch = batch
        self._prefix = waiting_of(function)
        self._view = view
        self._end = after_prefix(self._prefix)
        self._unread: Iterator[tuple[bytes, bytes]] = view.scan(self._prefix, self._end)
        self._next = next(self._unread, None)
        self._chunks: dict[bytes, tuple[Columns, int]] = {}
        """Partly processed chunks: their events, and how many of these are done."""
        self._spent: list[bytes] = []
        self._fresh = Columns()
        self._passed = passed
        self.stored_taken = 0
        self.oldest: int | None = None
        """The earliest batch in which an event came that became due in this one."""

    def take(self, arrived: Columns | None, horizon: int) -> Columns:
        """Takes out the events up to `horizon`, stored or from `arrived`; the rest waits."""
        due = Columns()
        while self._next is not None and waiting_least(self._prefix, self._next[0]) <= horizon:
            row, packed = self._next
            chunk = Columns.unpack(packed)
            done = 0 if self._passed is None else chunk.until(self._passed)
            self._chunks[row] = (chunk, done)
            self._next = next(self._unread, None)
        for row, (chunk, done) in list(self._chunks.items()):
            until = chunk.until(horizon)
            if until > done:
                due.extend(chunk.slice(done, until))
                self._chunks[row] = (chunk, until)
                self._count_from(waiting_chunk(self._prefix, row)[0])
            if until == len(chunk):
                del self._chunks[row]
                self._spent.append(row)
        self.stored_taken += len(due)
        if arrived is not None:
            self._fresh.extend(arrived)
        if self._fresh and self._fresh.least <= horizon:
            self._fresh = self._fresh.by_time()
            until = self._fresh.until(horizon)
            due.extend(self._fresh.slice(0, until))
            self._count_from(self._batch)
            self._fresh = self._fresh.slice(until, len(self._fresh))
        return due

    def _count_from(self, batch: int) -> None:
        self.oldest = batch if self.oldest is None else min(self.oldest, batch)

    @property
    def fresh(self) -> int:
        """The number of events that arrived in this batch and still wait."""
        return len(self._fresh)

    def least(self) -> int | None:
        """Returns the time of the earliest waiting event."""
        times = [chunk.ts[done] for chunk, done in self._chunks.values()]
        if self._fresh:
            times.append(self._fresh.least)
        if self._next is not None:
            times.append(waiting_least(self._prefix, self._next[0]))
        return min(times, default=None)

    def hold(self, limit: int) -> int | None:
        """Returns how far the horizon may advance so that about `limit` waiting events become due.

        Events of the same time become due together. None: there is no bound.
        """
        times = [time for chunk, done in self._chunks.values() for time in chunk.ts[done:]]
        times += self._fresh.ts
        unread = () if self._next is None else self._view.scan(self._next[0], self._end)
        for row, packed in unread:
            times.sort()
            if len(times) > limit and waiting_least(self._prefix, row) >= times[limit - 1]:
                break
            times += Columns.unpack(packed).ts
        times.sort()
        return times[limit - 1] if len(times) > limit else None

    def overdue(self, time: int | None, enough: int) -> int:
        """Counts waiting events up to `time`; may stop counting once there are `enough`."""
        if time is None:
            return 0
        count = sum(chunk.until(time) - done for chunk, done in self._chunks.values())
        count += sum(ts <= time for ts in self._fresh.ts)
        if self._next is not None:
            for row, packed in self._view.scan(self._next[0], self._end):
                if count >= enough or waiting_least(self._prefix, row) > time:
                    break
                count += Columns.unpack(packed).until(time)
        return count

    def changes(self) -> dict[bytes, bytes | None]:
        """Returns the rows to put and to delete."""
        rows: dict[bytes, bytes | None] = dict.fromkeys(self._spent)
        for row, (chunk, done) in self._chunks.items():
            if 2 * done > len(chunk):
                rows[row] = None
                left = chunk.slice(done, len(chunk))
                rows[waiting_row(self._prefix, left.ts[0], *waiting_chunk(self._prefix, row))] = (
                    left.pack()
                )
        events = self._fresh.by_time()
        for number, start in enumerate(range(0, len(events), CHUNK)):
            chunk = events.slice(start, start + CHUNK)
            rows[waiting_row(self._prefix, chunk.ts[0], self._batch, number)] = chunk.pack()
        return rows
