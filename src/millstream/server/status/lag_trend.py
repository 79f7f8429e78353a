"""Finds if the lag of a source grows, over the last minute. Pure.

A batch reads the events that came during the previous one, so a lag goes up and down with every
batch. So the least lag of each half of the minute is compared: it is what remains after a batch has
read its share.
"""

from __future__ import annotations

from collections import deque

SECOND = 1_000_000
SPAN = 60 * SECOND
LEAST_SPAN = 20 * SECOND
"""The growth over a shorter time is not known."""


class LagTrend:
    """The lags of one source, in events."""

    def __init__(self) -> None:
        self._looks: deque[tuple[int, int]] = deque()

    def add(self, now: int, events: int) -> None:
        self._looks.append((now, events))
        while self._looks[0][0] < now - SPAN:
            self._looks.popleft()

    def growth(self) -> float | None:
        """Returns the growth in events per second, below 0 if the lag shrinks; None if unknown.

        >>> trend = LagTrend()
        >>> for second in range(61):
        ...     trend.add(second * SECOND, 100 * second)
        >>> trend.growth()
        100.0
        """
        begin, end = self._looks[0][0], self._looks[-1][0]
        if end - begin < LEAST_SPAN:
            return None
        middle = (begin + end) / 2
        earlier = [look for look in self._looks if look[0] < middle]
        later = [look for look in self._looks if look[0] >= middle]
        (first, before), (last, after) = (
            min(half, key=lambda look: (look[1], look[0])) for half in (earlier, later)
        )
        return round((after - before) / ((last - first) / SECOND), 1)
