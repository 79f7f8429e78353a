"""Counts what each function did, and accounts for every delivery.

A task counts in a `FunctionCounts` for each function, and sends these with its report. The driver
merges those of all tasks into the ones in `progress`, which cover the time since the store was
created. So a count is declared here, and merged by `merge`.

A delivery is one event to one function. Deliveries that a function is owed are counted where events
are put onto streams (or refused, or found late); their outcomes are counted where events are
processed, dropped, diverted, kept or failed. So the two sides are counted separately, and must
agree after every batch:

    taken in + retried = processed + dropped + diverted + waiting + dead letters + late

A retried letter is one more delivery, with an outcome of its own. Its first delivery stays in the
counts, which never decrease.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy

import msgspec

LARGE_BATCHES = 100
"""The number of batches for which a large slate is reported after its last event."""


class Large(msgspec.Struct, frozen=True, array_like=True):
    """A slate over the application's `slate_warn`."""

    key: str
    bytes: int
    """Bytes of its JSON; for a table, bytes of the largest entry that was set."""
    batch: int
    """The batch that it was last seen in."""


class Unranked(msgspec.Struct, frozen=True, array_like=True):
    """Slates whose priority could not be computed: their count, and the last of them."""

    count: int
    key: str
    error: str
    batch: int
    """The batch of the last one."""


class FunctionCounts(msgspec.Struct, omit_defaults=True):
    """The counts of one function: of a task in a batch, or since the store was created."""

    taken: int = 0
    """Deliveries owed to the function, whatever becomes of them."""
    retried: int = 0
    """Repeated deliveries, of events that had failed, were late, dropped or diverted."""
    processed: int = 0
    """Deliveries processed, without those that failed."""
    dropped: int = 0
    """Deliveries past an update's limit that were dropped."""
    diverted: int = 0
    """Deliveries past an update's limit that went to its overflow stream."""
    late: int = 0
    """Deliveries that were late."""
    refused: int = 0
    """Deliveries of records that did not become events."""
    failed: int = 0
    """Dead letters of the function, timers' included."""
    timers_failed: int = 0
    """Dead letters of timers: timers are not deliveries."""
    waiting: int = 0
    """Events that wait, for the horizon or because a batch had too many. In a report: the change of
    their number."""
    feedback: int = 0
    """Feedback events for the next batch. The only count of the last batch alone."""
    spent: int = 0
    """Microseconds that the function took, over all tasks."""
    stored: int = 0
    """Microseconds of processor time spent on storing its changes."""
    slates: int = 0
    """The number of slates of an update. In a report: the change of this number."""
    swept: int = 0
    """Expired slates that were swept in the background."""
    evicted: int = 0
    """Slates that were deleted because there was no room for them."""
    reach: int = 0
    """The longest time ahead for which an event has set a timer."""
    large: Large | None = None
    """The update's largest slate, if that is over `slate_warn`."""
    unranked: Unranked | None = None
    """Slates whose priority could not be computed: each time counts."""

    def merge(self, more: FunctionCounts) -> None:
        """Adds the counts of another task, or of a later batch."""
        self.taken += more.taken
        self.retried += more.retried
        self.processed += more.processed
        self.dropped += more.dropped
        self.diverted += more.diverted
        self.late += more.late
        self.refused += more.refused
        self.failed += more.failed
        self.timers_failed += more.timers_failed
        self.waiting += more.waiting
        self.feedback += more.feedback
        self.spent += more.spent
        self.stored += more.stored
        self.slates += more.slates
        self.swept += more.swept
        self.evicted += more.evicted
        self.reach = max(self.reach, more.reach)
        self.large = larger(self.large, more.large)
        self.unranked = unranked_in_all(self.unranked, more.unranked)

    @property
    def dead_letters(self) -> int:
        """Deliveries that became dead letters."""
        return self.failed - self.timers_failed + self.refused

    @property
    def undecided(self) -> int:
        """Deliveries that wait: for the horizon, for room in a batch, or as feedback."""
        return self.waiting + self.feedback

    @property
    def residual(self) -> int:
        """Deliveries that are not accounted for: always 0, unless Millstream has a bug."""
        outcomes = self.processed + self.dropped + self.diverted + self.late
        return self.taken + self.retried - outcomes - self.undecided - self.dead_letters


def larger(known: Large | None, more: Large | None) -> Large | None:
    """Returns the larger of two slates; for the same key, the newer size counts."""
    if known is None or more is None:
        return known or more
    return more if more.bytes >= known.bytes or more.key == known.key else known


def unranked_in_all(before: Unranked | None, more: Unranked | None) -> Unranked | None:
    """Adds the numbers of slates without a priority; keeps the last error."""
    if before is None or more is None:
        return before or more
    return Unranked(before.count + more.count, more.key, more.error, more.batch)


def merged(
    before: Mapping[str, FunctionCounts],
    reports: Iterable[Mapping[str, FunctionCounts]],
    batch: int,
) -> dict[str, FunctionCounts]:
    """Returns the counts after a batch, from those before it and those of its tasks.

    A large slate expires after a while without events, so that one that has shrunk since is not
    reported for long.
    """
    after = {name: copy(counts) for name, counts in before.items()}
    for counts in after.values():
        counts.feedback = 0
        if counts.large is not None and batch - counts.large.batch >= LARGE_BATCHES:
            counts.large = None
    for report in reports:
        for name, more in report.items():
            after.setdefault(name, FunctionCounts()).merge(more)
    return after


def in_all(functions: Iterable[FunctionCounts]) -> FunctionCounts:
    """Returns the counts of all functions together."""
    total = FunctionCounts()
    for counts in functions:
        total.merge(counts)
    return total
