"""Events of one function in one shard that wait until the horizon has passed them.

Waiting events are stored in chunks, each in order of time. Which of a chunk's events are done is
known from the horizon alone (everything up to the horizon of the batch before), so a chunk that has
begun need not be written again. What is left of it is, once more than half is done: so an event far
ahead of its chunk does not keep the chunk being read for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.engine.columns import Columns
from millstream.stores.contract import View, after_prefix
from millstream.stores.layout import waiting_least, waiting_of, waiting_row

CHUNK = 4_096


class Gate:
    """Lets events through up to a horizon that only rises; keeps the others."""

    def __init__(self, view: View, function: str, passed: int | None) -> None:
        self._prefix = waiting_of(function)
        self._view = view
        self._end = after_prefix(self._prefix)
        self._unread: Iterator[tuple[bytes, bytes]] = view.scan(self._prefix, self._end)
        self._next = next(self._unread, None)
        self._chunks: dict[bytes, tuple[Columns, int]] = {}
        """Chunks that have begun: their events, and how many of them are done."""
        self._spent: list[bytes] = []
        self._fresh = Columns()
        self._passed = passed
        self.stored_taken = 0

    def take(self, arrived: Columns | None, horizon: int) -> Columns:
        """The events up to `horizon`: stored ones, and those of `arrived`; the rest waits."""
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
            if until == len(chunk):
                del self._chunks[row]
                self._spent.append(row)
        self.stored_taken += len(due)
        if arrived is not None:
            self._fresh.extend(arrived)
        if self._fresh and min(self._fresh.ts) <= horizon:
            self._fresh = self._fresh.by_time()
            until = self._fresh.until(horizon)
            due.extend(self._fresh.slice(0, until))
            self._fresh = self._fresh.slice(until, len(self._fresh))
        return due

    @property
    def fresh(self) -> int:
        """How many events arrived in this batch and still wait."""
        return len(self._fresh)

    def least(self) -> int | None:
        """The time of the earliest event that waits."""
        times = [chunk.ts[done] for chunk, done in self._chunks.values()]
        if self._fresh:
            times.append(min(self._fresh.ts))
        if self._next is not None:
            times.append(waiting_least(self._prefix, self._next[0]))
        return min(times, default=None)

    def hold(self, limit: int) -> int | None:
        """How far the horizon may go for about `limit` of the events that wait to become due.

        Events of the same time go together. None: as far as it likes.
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
        """How many events up to `time` wait; if more than `enough`, not necessarily all of them."""
        if time is None:
            return 0
        count = sum(chunk.until(time) - done for chunk, done in self._chunks.values())
        count += sum(one <= time for one in self._fresh.ts)
        if self._next is not None:
            for row, packed in self._view.scan(self._next[0], self._end):
                if count >= enough or waiting_least(self._prefix, row) > time:
                    break
                count += Columns.unpack(packed).until(time)
        return count

    def changes(self, batch: int) -> dict[bytes, bytes | None]:
        """The rows to put and to delete."""
        rows: dict[bytes, bytes | None] = dict.fromkeys(self._spent)
        left = Columns()
        for row, (chunk, done) in self._chunks.items():
            if 2 * done > len(chunk):
                left.extend(chunk.slice(done, len(chunk)))
                rows[row] = None
        number = 0
        for events in (left.by_time(), self._fresh.by_time()):
            for start in range(0, len(events), CHUNK):
                chunk = events.slice(start, start + CHUNK)
                rows[waiting_row(self._prefix, chunk.ts[0], batch, number)] = chunk.pack()
                number += 1
        return rows
