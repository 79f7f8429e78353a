"""Rate limits (requests per second of an address) and limits on what runs at once.

Pure: the time is an argument, in seconds of any monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TokenBuckets:
    """A token bucket for each name: `rate` per second, and `burst` at once after a pause.

    Beyond `most` names, the name that was not seen for longest is forgotten. It starts again with
    a full bucket, which it would nearly have by then anyway.
    """

    def __init__(self, rate: float, burst: float, most: int = 4_096) -> None:
        self._rate = rate
        self._burst = burst
        self._most = most
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str, now: float) -> float:
        """Takes one token and returns 0.0; or takes none and returns the seconds until there is
        one."""
        left = self._now(name, now)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
        self._left[name] = left if wait else left - 1.0, now
        return wait

    def wait(self, name: str, now: float) -> float:
        """Returns the seconds until there is a token; takes none."""
        left = self._now(name, now)
        self._left[name] = left, now
        return 0.0 if left >= 1.0 else (1.0 - left) / self._rate

    def _now(self, name: str, now: float) -> float:
        """Removes a bucket and returns its content now; the caller puts it back at the end."""
        bucket = self._left.pop(name, None)
        if bucket is None:
            while len(self._left) >= self._most:
                del self._left[next(iter(self._left))]
            return self._burst
        left, since = bucket
        return min(self._burst, left + max(0.0, now - since) * self._rate)


class Slots:
    """Counts what runs at once, up to a limit that its users check with `full`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0

    @property
    def full(self) -> bool:
        return self.taken >= self.most

    @contextmanager
    def one(self) -> Iterator[None]:
        """Holds a slot inside the `with` block; check `full` first."""
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
