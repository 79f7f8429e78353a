"""How much is let through: requests a second of an address, and things done at once.

Pure: the time is an argument, in seconds of any clock that only goes forward.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Buckets:
    """A token bucket for each name: `rate` a second, and `burst` at once after a pause.

    Of more than `most` names the one that was not seen for longest is forgotten: it finds a full
    bucket when it comes again, and by then it would nearly have one.
    """

    def __init__(self, rate: float, burst: float, most: int = 4_096) -> None:
        self._rate = rate
        self._burst = burst
        self._most = most
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str, now: float) -> float:
        """Take one token: 0.0, or the seconds until there is one, and nothing is taken."""
        left = self._now(name, now)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
        self._left[name] = left if wait else left - 1.0, now
        return wait

    def wait(self, name: str, now: float) -> float:
        """The seconds until there is a token; takes none."""
        left = self._now(name, now)
        self._left[name] = left, now
        return 0.0 if left >= 1.0 else (1.0 - left) / self._rate

    def _now(self, name: str, now: float) -> float:
        """What is in a bucket now; it goes to the end of those that were seen."""
        found = self._left.pop(name, None)
        if found is None:
            while len(self._left) >= self._most:
                del self._left[next(iter(self._left))]
            return self._burst
        left, since = found
        return min(self._burst, left + max(0.0, now - since) * self._rate)


class Slots:
    """At most so many at once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0

    @property
    def full(self) -> bool:
        return self.taken >= self.most

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a slot for as long as this lasts; ask `full` first."""
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
