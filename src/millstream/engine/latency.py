"""Measures the time from an event's arrival to the commit of the batch that feeds it. Pure.

In arrival order a batch feeds the events that it took in. In event-time order events wait for the
horizon, so a batch may feed events of earlier batches: tasks report the earliest batch in which any
of these arrived (`Report.oldest`), and the progress keeps the arrival times of batches whose events
may still wait.
"""

from __future__ import annotations

from bisect import bisect_right

from millstream.engine.progress import Report, greatest, least
from millstream.stores.progress import Arrival, Latency, Progress

MOST_ARRIVALS = 64
"""The most batches to remember; if there are more, every second of the older half is forgotten."""


def measure(
    before: Progress,
    after: Progress,
    reports: list[Report],
    *,
    oldest: int | None,
    clock: int,
    waits: bool,
) -> None:
    """Sets `measured` and `arrivals` of the progress after a batch.

    `oldest` is the arrival time of the batch's own oldest record, None if it has no records;
    `clock` is when the batch began; `waits` is True if events wait for the horizon.
    """
    after.measured = before.measured
    if not waits:
        if oldest is not None:
            after.measured = Latency(after.batch, max(0, after.written - oldest), 0)
        return
    arrivals = list(before.arrivals)
    highest = greatest(*(s.highest for report in reports for s in report.sources.values()))
    if oldest is not None and highest is not None:
        arrivals.append(Arrival(after.batch, oldest, after.written, highest))
    fed = least(*(report.oldest for report in reports))
    arrival = None if fed is None else arrived_in(arrivals, fed)
    if arrival is not None:
        waited = max(0, clock - arrival.written) if arrival.batch < after.batch else 0
        after.measured = Latency(after.batch, max(0, after.written - arrival.oldest), waited)
    after.arrivals = thinned(
        [
            arrival
            for arrival in arrivals
            if after.horizon is None or arrival.highest > after.horizon
        ]
    )


def arrived_in(arrivals: list[Arrival], batch: int) -> Arrival | None:
    """Returns the arrival of a batch, or of the last known batch before it; None if unknown."""
    at = bisect_right(arrivals, batch, key=lambda arrival: arrival.batch)
    return arrivals[at - 1] if at else None


def thinned(arrivals: list[Arrival]) -> list[Arrival]:
    """Thins out more than `MOST_ARRIVALS`; keeps the first, so that no wait appears too short."""
    if len(arrivals) <= MOST_ARRIVALS:
        return arrivals
    half = len(arrivals) // 2
    return arrivals[:half:2] + arrivals[half:]
