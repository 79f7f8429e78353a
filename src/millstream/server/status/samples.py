"""Samples of the application's progress, and rates computed from them. Pure.

The progress record holds counts since the store was created. A `ProgressSample` is one such record
at the time of its commit; samples are kept for a minute. The work of the batches between two
samples is summed up per `Second`. Seconds are small and are kept for an hour.

The counts of a batch are spread over the time that it ran: a `SampleWindow` takes only its share of
a batch that was running when the window began. The running batch has counted nothing yet, so a
window ends at the last commit, for as long as the last batch took. Together these keep rates steady
however long batches are, and let them fall to 0 when no more batches come.

If a count goes down, the store is another one, and all earlier samples are dropped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil

import msgspec

from millstream.messages.status import History
from millstream.stores.progress import Latency, Progress

SECOND = 1_000_000
RECENT = 60 * SECOND
"""Microseconds that samples are kept."""
OLDEST = 3600
"""The number of `Second`s that are kept."""
PERCENTILE_SECONDS = 10
"""A percentile in the history covers the latencies of this many seconds, or of a longer step."""
SHORTEST = 1.0
"""Seconds. A rate over a shorter time is meaningless."""

Count = Callable[[Progress], float]


@dataclass(frozen=True, slots=True)
class ProgressSample:
    """The progress as of a commit."""

    at: int
    begun: int
    """When its batches began to run: at the previous sample, or later."""
    latency: Latency | None
    """None if its batches fed no events."""
    progress: Progress


class Second(msgspec.Struct, array_like=True):
    """The work of one second."""

    events: float = 0.0
    busy: float = 0.0
    """The share of the second during which batches ran."""
    batches: int = 0
    """The number of batches committed."""
    latency: float | None = None
    """The worst latency of these batches."""
    waited: float = 0.0
    """The longest that an event of these batches waited for the horizon."""
    latencies: list[float] = []
    """The latency of each of these batches, for percentiles."""


NOTHING = Second()


@dataclass(frozen=True, slots=True)
class SampleWindow:
    """The counts around a span of time that ends with the last commit."""

    before: Progress
    """The last commit before the window."""
    first: Progress
    """The first commit in the window."""
    last: Progress
    share: float
    """The share of the first commit's batches that is in the window."""
    seconds: float

    def increase(self, count: Count) -> float:
        """Returns by how much a count went up."""
        first = count(self.first)
        part = self.share * (first - count(self.before))
        return max(0.0, part) + max(0.0, count(self.last) - first)

    def rate(self, count: Count) -> float:
        """Returns by how much a count went up per second."""
        return self.increase(count) / self.seconds


class Samples:
    """The samples of the last minute, the newest last, and the seconds of the last hour.

    `known` are seconds from before the server started.
    """

    def __init__(self, known: Mapping[int, Second] | None = None) -> None:
        self._recent: deque[ProgressSample] = deque()
        self._seconds: dict[int, Second] = dict(known or {})
        self._since = 0

    def add(self, progress: Progress, now: int) -> None:
        """Adds a progress record that was read now; one that was added before is ignored."""
        at = min(now, progress.written or now)
        last = self.last
        if last is None or at < last.at or went_down(last.progress, progress):
            if last is not None:
                self._seconds = {}
            self._begin(progress, at)
        elif (progress.batch, progress.written) != (last.progress.batch, last.progress.written):
            self._follow(last, progress, at)

    def _begin(self, progress: Progress, at: int) -> None:
        self._recent = deque([ProgressSample(at, at, None, progress)])
        self._since = at

    def _follow(self, last: ProgressSample, progress: Progress, at: int) -> None:
        before = last.progress
        begun = max(last.at, at - round((progress.timing.seconds - before.timing.seconds) * SECOND))
        events = progress.events - before.events
        measured = progress.measured
        latency = measured if measured is not None and measured.batch > before.batch else None
        self._recent.append(ProgressSample(at, begun, latency, progress))
        while len(self._recent) > 2 and self._recent[1].at <= at - RECENT:
            self._recent.popleft()
        for number, share in _spread(begun, at):
            second = self._seconds.setdefault(number, Second())
            second.events += share * events
            second.busy += share * (at - begun) / SECOND
        second = self._seconds[at // SECOND]
        second.batches += progress.batch - before.batch
        if latency is not None:
            second.latency = max(second.latency or 0.0, latency.whole / SECOND)
            second.waited = max(second.waited, latency.waited / SECOND)
            second.latencies.append(round(latency.whole / SECOND, 4))
        if len(self._seconds) > 2 * OLDEST:
            oldest = at // SECOND - OLDEST
            self._seconds = {n: kept for n, kept in self._seconds.items() if n >= oldest}

    @property
    def last(self) -> ProgressSample | None:
        return self._recent[-1] if self._recent else None

    def window(self, now: int, seconds: int) -> SampleWindow | None:
        """Returns the last `seconds`, or as many as are known; None before the first sample."""
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
        return SampleWindow(before.progress, first.progress, last.progress, share, elapsed)

    def latencies(self, now: int, seconds: int) -> list[Latency]:
        """Returns the latencies of the batches of the last `seconds`."""
        begin = now - seconds * SECOND
        recent = (sample.latency for sample in self._recent if sample.at > begin)
        return [latency for latency in recent if latency is not None]

    def seconds(self, now: int) -> dict[int, Second]:
        """Returns the seconds of the last hour in which anything was done."""
        oldest = now // SECOND - OLDEST
        return {number: second for number, second in self._seconds.items() if number >= oldest}

    def history(self, now: int, seconds: int, step: int = 1) -> History:
        """Returns lists with a value for each step of the last `seconds`; None: not known.

        An hour at most. `latency` is the worst; `p50` and `p99` cover `PERCENTILE_SECONDS`, or the
        step if that is longer.
        """
        stop, end = now // SECOND, self._end(now)
        stop -= stop % step  # so that every call groups the same seconds
        times = range(stop - seconds // step * step, stop, step)
        steps = [self._step(time, step, end) for time in times]
        spans = [
            self._latencies(time + step - max(step, PERCENTILE_SECONDS), time + step)
            for time in times
        ]
        return History(
            times=list(times),
            events=[None if second is None else round(second.events / step, 3) for second in steps],
            latency=[None if second is None else second.latency for second in steps],
            p50=[percentile(span, 50) for span in spans],
            p99=[percentile(span, 99) for span in spans],
            waited=[None if second is None else second.waited for second in steps],
            batches=[None if second is None else second.batches for second in steps],
            busy=[None if second is None else round(second.busy / step, 3) for second in steps],
        )

    def _step(self, time: int, step: int, end: int) -> Second | None:
        """Sums up the `step` seconds from `time` on; None if none of them is known."""
        known = [second for at in range(time, time + step) if (second := self._second(at, end))]
        if not known:
            return None
        worst = [second.latency for second in known if second.latency is not None]
        return Second(
            sum(second.events for second in known),
            sum(second.busy for second in known),
            sum(second.batches for second in known),
            max(worst, default=None),
            max(second.waited for second in known),
        )

    def _second(self, time: int, end: int) -> Second | None:
        if (time + 1) * SECOND > end and self._recent:
            return None
        if self._recent and self._since <= time * SECOND:
            return self._seconds.get(time, NOTHING)
        return self._seconds.get(time)

    def _latencies(self, begin: int, end: int) -> list[float]:
        seconds = (self._seconds.get(at) for at in range(begin, end))
        return [latency for second in seconds if second is not None for latency in second.latencies]

    def _end(self, now: int) -> int:
        """Returns the time up to which all work has been counted."""
        if not self._recent:
            return now
        last = self._recent[-1]
        return max(last.at, now - (last.at - last.begun))


def went_down(before: Progress, after: Progress) -> bool:
    """True if any count is lower than before: then it is the count of another store."""
    pairs = [
        (before.batch, after.batch),
        (before.events, after.events),
        (before.late, after.late),
        (before.dead_letters, after.dead_letters),
        (before.timing.seconds, after.timing.seconds),
    ]
    pairs += [(old, after.emitted.get(name, old)) for name, old in before.emitted.items()]
    for name, counts in before.functions.items():
        new = after.functions.get(name, counts)
        pairs += [
            (counts.spent, new.spent),
            (counts.processed, new.processed),
            (counts.failed, new.failed),
        ]
    pairs += [
        (source.events, after.sources[name].events)
        for name, source in before.sources.items()
        if name in after.sources
    ]
    return any(new < old for old, new in pairs)


def percentile(values: list[float], percent: int) -> float | None:
    """Returns the nearest-rank percentile, which is one of the values; None if there are none.

    >>> percentile([0.4, 0.1, 0.3, 0.2], 50), percentile([0.4, 0.1, 0.3, 0.2], 99)
    (0.2, 0.4)
    """
    if not values:
        return None
    return sorted(values)[max(0, ceil(percent * len(values) / 100) - 1)]


def _spread(begun: int, at: int) -> Iterator[tuple[int, float]]:
    """Yields the seconds of a span of time, its last hour at most, with the share in each."""
    last, length = at // SECOND, at - begun
    for second in range(max(begun // SECOND, last - OLDEST), last + 1):
        inside = min(at, (second + 1) * SECOND) - max(begun, second * SECOND)
        yield second, inside / length if length else 1.0
