"""What the application did of late: samples of its progress, and rates over them. Pure.

The progress record holds counts since the store was made. A `Sample` is one such record at the time
of its commit; samples are kept for a minute. What the batches between two samples did is added up
by the `Second`, and those, which are small, are kept for ten minutes.

What a batch counted happened while it ran, so it is spread over that time: `Window` takes just its
share of a batch that was running as the window began. The next batch has counted nothing yet, so
for as long as the last one took, a window ends at the last commit. Both together keep rates steady
however long batches are, and let them fall to nothing once none come.

Counts that go down are those of another store: everything known before is forgotten.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from millstream.stores.progress import Progress

SECOND = 1_000_000
RECENT = 60 * SECOND
"""How long samples are kept."""
OLDEST = 600
"""How many seconds are kept."""
SHORTEST = 1.0
"""A rate over less than a second says nothing."""

Count = Callable[[Progress], float]


@dataclass(frozen=True, slots=True)
class Sample:
    """The progress as of a commit."""

    at: int
    begun: int
    """When its batches began to run: the sample before, or later."""
    latency: int | None
    """None if its batches brought no records."""
    progress: Progress


@dataclass(slots=True)
class Second:
    """What was done in a second."""

    events: float = 0.0
    busy: float = 0.0
    """How much of it batches ran."""
    batches: int = 0
    """How many were committed."""
    latency: float | None = None
    """The worst of them."""


@dataclass(frozen=True, slots=True)
class Window:
    """The counts around a span of time that ends with the last commit."""

    before: Progress
    """The last commit before it."""
    first: Progress
    """The first commit in it."""
    last: Progress
    share: float
    """How much of the first commit's batches is in it."""
    seconds: float

    def increase(self, count: Count) -> float:
        """How much a count went up."""
        first = count(self.first)
        part = self.share * (first - count(self.before))
        return max(0.0, part) + max(0.0, count(self.last) - first)

    def rate(self, count: Count) -> float:
        """How much a count went up in a second."""
        return self.increase(count) / self.seconds


class Samples:
    """The samples of the last minute, the newest last, and the seconds of the last ten."""

    def __init__(self) -> None:
        self._recent: deque[Sample] = deque()
        self._seconds: dict[int, Second] = {}
        self._since = 0

    def add(self, progress: Progress, now: int) -> None:
        """Take a progress record that was read now; one that is known already changes nothing."""
        at = min(now, progress.written or now)
        last = self.last
        if last is None or at < last.at or went_down(last.progress, progress):
            self._begin(progress, at)
        elif (progress.batch, progress.written) != (last.progress.batch, last.progress.written):
            self._follow(last, progress, at)

    def _begin(self, progress: Progress, at: int) -> None:
        self._recent = deque([Sample(at, at, None, progress)])
        self._seconds = {}
        self._since = at

    def _follow(self, last: Sample, progress: Progress, at: int) -> None:
        before = last.progress
        begun = max(last.at, at - round((progress.seconds - before.seconds) * SECOND))
        events = progress.events - before.events
        latency = progress.latency if events else None
        self._recent.append(Sample(at, begun, latency, progress))
        while len(self._recent) > 2 and self._recent[1].at <= at - RECENT:
            self._recent.popleft()
        for number, share in _spread(begun, at):
            second = self._seconds.setdefault(number, Second())
            second.events += share * events
            second.busy += share * (at - begun) / SECOND
        second = self._seconds[at // SECOND]
        second.batches += progress.batch - before.batch
        if latency is not None:
            second.latency = max(second.latency or 0.0, latency / SECOND)
        if len(self._seconds) > 2 * OLDEST:
            oldest = at // SECOND - OLDEST
            self._seconds = {n: one for n, one in self._seconds.items() if n >= oldest}

    @property
    def last(self) -> Sample | None:
        return self._recent[-1] if self._recent else None

    def window(self, now: int, seconds: int) -> Window | None:
        """The last so many seconds, or as many of them as are known; None before any sample."""
        if not self._recent:
            return None
        end, last = self._end(now), self._recent[-1]
        begin = max(end - seconds * SECOND, self._recent[0].at)
        index = bisect_right(self._recent, begin, key=lambda sample: sample.at)
        before = self._recent[index - 1]
        first = self._recent[min(index, len(self._recent) - 1)]
        spread = first.at - max(first.begun, before.at)
        share = min(1.0, (first.at - begin) / spread) if spread else 1.0
        elapsed = max(SHORTEST, (end - begin) / SECOND)
        return Window(before.progress, first.progress, last.progress, share, elapsed)

    def latencies(self, now: int, seconds: int) -> list[float]:
        """The latencies, in seconds, of the batches of the last so many seconds."""
        begin = now - seconds * SECOND
        recent = (sample.latency for sample in self._recent if sample.at > begin)
        return [latency / SECOND for latency in recent if latency is not None]

    def history(self, now: int, seconds: int) -> dict[str, list[Any]]:
        """A value for each of the last whole seconds, ten minutes at most; None: not known."""
        stop, end = now // SECOND, self._end(now)
        times = range(stop - seconds, stop)
        nothing = Second()
        found = [
            self._seconds.get(time, nothing)
            if self._recent and self._since <= time * SECOND and (time + 1) * SECOND <= end
            else None
            for time in times
        ]
        return {
            "times": list(times),
            "events": [one and round(one.events, 3) for one in found],
            "latency": [one and one.latency for one in found],
            "batches": [one and one.batches for one in found],
            "busy": [one and round(one.busy, 3) for one in found],
        }

    def _end(self, now: int) -> int:
        """Up to when everything that happened has been counted."""
        if not self._recent:
            return now
        last = self._recent[-1]
        return max(last.at, now - (last.at - last.begun))


def went_down(before: Progress, after: Progress) -> bool:
    """Whether any count is less than it was: then it counts something else."""
    pairs = [
        (before.batch, after.batch),
        (before.events, after.events),
        (before.late, after.late),
        (before.dead_letters, after.dead_letters),
        (before.seconds, after.seconds),
    ]
    for name in ("emitted", "spent", "processed", "failed"):
        new = getattr(after, name)
        pairs += [(count, new[key]) for key, count in getattr(before, name).items() if key in new]
    pairs += [
        (source.events, after.sources[name].events)
        for name, source in before.sources.items()
        if name in after.sources
    ]
    return any(new < old for old, new in pairs)


def percentile(values: list[float], percent: int) -> float | None:
    """The nearest-rank percentile: a value that was measured; None of none.

    >>> percentile([0.4, 0.1, 0.3, 0.2], 50), percentile([0.4, 0.1, 0.3, 0.2], 99)
    (0.2, 0.4)
    """
    if not values:
        return None
    return sorted(values)[max(0, ceil(percent * len(values) / 100) - 1)]


def _spread(begun: int, at: int) -> Iterator[tuple[int, float]]:
    """The last seconds of a span of time, and the share of it in each."""
    last, length = at // SECOND, at - begun
    for second in range(max(begun // SECOND, last - OLDEST), last + 1):
        inside = min(at, (second + 1) * SECOND) - max(begun, second * SECOND)
        yield second, inside / length if length else 1.0
