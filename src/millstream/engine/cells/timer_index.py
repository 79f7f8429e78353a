"""Indexes the timers of one update in one shard during one batch, in order of their times.

A slate's row holds its timers. This index, in separate rows, finds the keys whose timers are due
without reading the slates. It is updated as slates change in the batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from millstream.engine.beat import Beat
from millstream.engine.cells.key_run import Due
from millstream.model.event import END, Clock
from millstream.model.slate import overlay
from millstream.stores.contract import View, after_prefix
from millstream.stores.layout import Timers, timer_parts, timer_row, timers_of, timers_until


def due_in(beat: Beat, update: str) -> Due:
    """Returns which timers of an update's keys fire in a batch, after each key's events."""
    if beat.final is None:
        return Due(beat.timers, beat.clock, beat.horizon)
    limit = beat.final.limits.get(update)
    last = beat.final.last_event(update)
    return Due(None, None, limit=limit, last=last, all_waiting=beat.final.all_waiting)


class TimerIndex:
    """The index of keys by the times of their timers. `changes` are the rows to put and delete."""

    def __init__(self, view: View, update: str) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self._view = view
        self._order: list[bytes] = []
        """The rows of `changes`; the first `_sorted` of them are in order."""
        self._sorted = 0
        self._prefix: dict[Clock, bytes] = {
            "event": timers_of(update, "event"),
            "wall": timers_of(update, "wall"),
        }
        self._first: dict[Clock, bytes] = dict(self._prefix)
        """The start of the index: every timer before it has fired or died."""
        self._closing = False
        self._next_end: set[bytes] = set()
        """Timers for the end of event time that are left, or were set again, when keys are closed.

        Only such a timer can be set again for the time at which it fired.
        """

    def due(self, timers: Due) -> dict[bytes, str]:
        """Returns the rows that are due, with the key of each."""
        due: dict[bytes, str] = {}
        limits: list[tuple[Clock, int | None]] = [("event", timers.event), ("wall", timers.wall)]
        for clock, until in limits:
            if until is not None:
                prefix = self._prefix[clock]
                end = timers_until(prefix, until)
                due.update(self._keys(prefix, self._first[clock], end))
                self._first[clock] = max(self._first[clock], end)
        if timers.limit is not None:
            self._closing = True
            prefix = self._prefix["event"]
            last = (
                after_prefix(prefix) if timers.all_waiting else timers_until(prefix, timers.limit)
            )
            due.update(self._keys(prefix, prefix, last))
        return due

    def _keys(self, prefix: bytes, first: bytes, last: bytes | None) -> dict[bytes, str]:
        return {row: timer_parts(prefix, row)[1] for row in self._rows(first, last)}

    def _rows(self, first: bytes, last: bytes | None) -> Iterator[bytes]:
        order = self._order
        if len(order) > self._sorted:
            order.sort()  # cheap: all except the last ones are in order
            self._sorted = len(order)
        start, stop = bisect_left(order, first), len(order)
        if last is not None:
            stop = bisect_left(order, last)
        changed = [(row, self.changes[row]) for row in order[start:stop]]
        return (row for row, _ in overlay(changed, self._view.scan(first, last)))

    def _change(self, row: bytes, value: bytes | None) -> None:
        if row not in self.changes:
            self._order.append(row)
        self.changes[row] = value

    def follow(self, key: str, before: Timers, after: Timers) -> None:
        """Updates the index with the change of a slate's timers."""
        if self._closing and ("event", END) in after.values():
            self._next_end.add(timer_row(self._prefix["event"], END, key))
        if before == after:
            return
        old, new = set(before.values()), set(after.values())
        for clock, at in old - new:
            self._change(timer_row(self._prefix[clock], at, key), None)
        for clock, at in new - old:
            self._change(timer_row(self._prefix[clock], at, key), b"")

    def spend(self, rows: Iterable[bytes]) -> None:
        """Removes these rows, whose timers have fired or died, unless they were set again."""
        for row in rows:
            if row not in self.changes and row not in self._next_end:
                self._change(row, None)

    def least(self, clock: Clock) -> int | None:
        """Returns the time of the earliest timer that is set now."""
        prefix = self._prefix[clock]
        row = next(self._rows(self._first[clock], after_prefix(prefix)), None)
        return None if row is None else timer_parts(prefix, row)[0]
