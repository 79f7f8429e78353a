"""Measures the cost of reads and pushes of feeds on this server, for the ratio in its records.

This is a shell around `feeds.policy.costs` and `feeds.policy.latency`, which make the decisions: it
has the clock, takes the numbers from the application's progress, and admits one thread at a time.
Nothing is stored. After a start the ratio is unknown until enough was measured, and records have
none; producers and consumers then use the last ratio that they got.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.policy.costs import LEAST, Calibration, Spent
from millstream.feeds.policy.latency import FACTOR, SETTLE, Latencies, Steps, Wholesale
from millstream.messages.feeds import ReadLatency
from millstream.model.duration import microseconds
from millstream.stores.progress import Progress


@dataclass(frozen=True, slots=True)
class CostOverview:
    """Costs and times in seconds; None: unknown."""

    high: float | None
    """The cost of a push."""
    low: float | None
    """The cost of a pull."""
    ratio: float
    reads: int
    latency: ReadLatency


class FeedCosts:
    """The costs of the feeds of one name; may be used by any thread."""

    def __init__(self, placed: PlacedFeeds, clock: Callable[[], float] = time.monotonic) -> None:
        self._placed, self._clock = placed, clock
        options = placed.options
        self._target = (
            None
            if options.latency is None
            else microseconds(options.latency, "feeds: latency") / 1e6
        )
        self._calibration = Calibration(options.ratio, together=options.decides_together)
        self._latencies = Latencies()
        self._steps = Steps()
        self._wholesale = Wholesale()
        self._due = clock() + SETTLE
        self._reads = 0
        self._lock = Lock()

    @property
    def stamp(self) -> float | None:
        """The ratio to put on posts and views; None if it is not known yet."""
        with self._lock:
            self._decide()
            return self._stamp()

    @property
    def ratio(self) -> float:
        """The same ratio; the application's option until it is known."""
        stamp = self.stamp
        return self._placed.options.ratio if stamp is None else stamp

    def wholesale(self, consumer: str) -> bool:
        """True if the consumer is to have all producers on push, from its next view on."""
        with self._lock:
            return consumer in self._wholesale

    def read_took(
        self,
        consumer: str,
        seconds: float,
        cpu: float,
        pulled: int,
        size: int,
        coherency: str = "global",
    ) -> None:
        """Notes the time and CPU time of a consumer's read, and the number of producers pulled.

        `size` is the other quantity that makes a read of this coherency long.
        """
        with self._lock:
            self._reads += 1
            self._latencies.add(seconds)
            self._calibration.read_took(cpu, pulled, size, coherency)
            if self._is_by_consumer:
                self._wholesale.read(consumer, pulled)
            self._decide()

    def progressed(self, progress: Progress) -> None:
        """Notes a committed batch; noting the same one again does no harm."""
        placed = self._placed
        cost = progress.timing.costs.get(placed.consumers)
        producers, consumers = map(progress.counts, (placed.producers, placed.consumers))
        spent = Spent(
            pushes=progress.emitted.get(f"{placed.name}.push", 0),
            processed=producers.processed,
            producers=producers.spent / 1e6,
            consumers=None if cost is None else cost / 1e6,
            taken=consumers.processed,
            stored=consumers.stored / 1e6,
        )
        with self._lock:
            self._calibration.spent(spent)

    def overview(self) -> CostOverview:
        """Returns the costs as measured so far."""
        ratio = self.ratio
        with self._lock:
            p50, p95, p99 = self._latencies.percentiles(50, 95, 99)
            return CostOverview(
                self._calibration.high,
                self._calibration.low,
                ratio,
                self._reads,
                ReadLatency(p50, p95, p99),
            )

    @property
    def _is_by_consumer(self) -> bool:
        return self._target is not None and self._placed.options.strategy == "per-consumer"

    def _stamp(self) -> float | None:
        measured, steps = self._calibration.in_force, self._steps.taken
        if not steps or self._is_by_consumer:
            return measured
        base = self._placed.options.ratio if measured is None else measured
        return max(LEAST, base / FACTOR**steps)

    def _decide(self) -> None:
        """Decides on the ratio and the steps again, once every SETTLE seconds."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + SETTLE
        self._calibration.settled()
        if self._target is None:
            return
        took = self._latencies.since_decision(self._placed.options.percentile)
        if took is not None:
            self._steps = self._steps.decided(took, self._target)
        if self._is_by_consumer:
            self._wholesale.choose(self._steps.taken)
