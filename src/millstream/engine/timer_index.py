"""The timers of one update in one shard during one batch, in order of their times.

A slate's row holds its timers; this index, rows of its own, says whose timer is due without reading
the slates. It follows the slates as they change in the batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from millstream.engine.beat import Beat
from millstream.engine.key_run import Due
from millstream.model.event import Clock
from millstream.model.slate import overlay
from millstream.stores.contract import View, after_prefix
from millstream.stores.layout import Timers, timer_parts, timer_row, timers_of, timers_until


def due_in(beat: Beat, update: str) -> Due:
    """Which timers of a key of an update fire in a batch, after the key's events."""
    if beat.final is None:
        return Due(beat.timers, beat.clock, beat.horizon)
    limit = beat.final.limits.get(update)
    return Due(None, None, limit=limit, all_waiting=beat.final.all_waiting)


class TimerIndex:
    """Which keys have a timer, and when. `changes` are the rows to put and to delete."""

    def __init__(self, view: View, update: str) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self._view = view
        self._order: list[bytes] = []
        """The rows of `changes`, in order but for those added since it was last asked for."""
        self._sorted = 0
        self._prefix: dict[Clock, bytes] = {
            "event": timers_of(update, "event"),
            "wall": timers_of(update, "wall"),
        }
        self._first: dict[Clock, bytes] = dict(self._prefix)
        """Where the index begins: every timer before it has fired or died."""

    def due(self, timers: Due) -> dict[bytes, str]:
        """The rows that are due, with the key that each is of."""
        found: dict[bytes, str] = {}
        limits: list[tuple[Clock, int | None]] = [("event", timers.event), ("wall", timers.wall)]
        for clock, until in limits:
            if until is not None:
                prefix = self._prefix[clock]
                end = timers_until(prefix, until)
                found.update(self._keys(prefix, self._first[clock], end))
                self._first[clock] = max(self._first[clock], end)
        if timers.limit is not None:
            prefix = self._prefix["event"]
            last = (
                after_prefix(prefix) if timers.all_waiting else timers_until(prefix, timers.limit)
            )
            found.update(self._keys(prefix, prefix, last))
        return found

    def _keys(self, prefix: bytes, first: bytes, last: bytes | None) -> dict[bytes, str]:
        return {row: timer_parts(prefix, row)[1] for row in self._rows(first, last)}

    def _rows(self, first: bytes, last: bytes | None) -> Iterator[bytes]:
        order = self._order
        if len(order) > self._sorted:
            order.sort()  # cheap: all but the last ones are in order
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
        """Follow the change of a slate's timers."""
        if before == after:
            return
        old, new = set(before.values()), set(after.values())
        for clock, at in old - new:
            self._change(timer_row(self._prefix[clock], at, key), None)
        for clock, at in new - old:
            self._change(timer_row(self._prefix[clock], at, key), b"")

    def spend(self, rows: Iterable[bytes]) -> None:
        """Every timer of these rows has fired or died, unless it was set again."""
        for row in rows:
            if row not in self.changes:
                self._change(row, None)

    def least(self, clock: Clock) -> int | None:
        """The time of the earliest timer that is set now."""
        prefix = self._prefix[clock]
        row = next(self._rows(self._first[clock], after_prefix(prefix)), None)
        return None if row is None else timer_parts(prefix, row)[0]
