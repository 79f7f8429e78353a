"""Messages by node and kind, and how many that is a second."""

from __future__ import annotations

from collections import Counter
from typing import Literal

Kind = Literal["hello", "news", "panes", "alive"]


class Traffic:
    """Counts requests at both ends. `reset` begins a new count."""

    def __init__(self) -> None:
        self.out: Counter[tuple[str, Kind]] = Counter()
        """Requests by who made them and kind."""
        self.into: Counter[tuple[str, Kind]] = Counter()
        """Requests by whom they were made to."""
        self.bytes_out: Counter[str] = Counter()
        self.bytes_into: Counter[str] = Counter()
        self.since = 0.0
        self.seconds = 0.0
        """The duration of the count."""
        self._stopped = False

    def reset(self, now: float) -> None:
        for counts in (self.out, self.into, self.bytes_out, self.bytes_into):
            counts.clear()
        self.since = now

    def stop(self, now: float) -> None:
        """Count no more."""
        self.seconds, self._stopped = now - self.since, True

    def sent(self, source: str, target: str, kind: Kind, size: int) -> None:
        if not self._stopped:
            self.out[source, kind] += 1
            self.into[target, kind] += 1
            self.bytes_out[source] += size
            self.bytes_into[target] += size

    def answered(self, source: str, target: str, kind: Kind, size: int) -> None:
        if not self._stopped:
            self.bytes_out[target] += size
            self.bytes_into[source] += size
