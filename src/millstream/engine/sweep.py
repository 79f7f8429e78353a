"""Sweeping: expired slates go in the background, some of them looked at in each batch.

A slate that has expired is as good as gone: the next event finds a fresh one, and its timers die.
But it takes room until that event comes, and it may never come. So each cell of an update with a
ttl looks at some of its slates in every batch, going round and round, and deletes those that no
event and no timer can find alive any more. It looks at twice as many as the batch has touched: so
where each batch makes new slates, there are never many more expired ones than live ones.

*Which those are.* Every event still to come is later than `until`, so a slate whose last update is
more than its ttl before that is expired for all of them. In event-time order `until` is the
horizon. In arrival order, where no horizon holds events to their order, it is the least of the
highest times that the sources have brought, and a slate stays for another ttl: an event that is out
of order by less finds what it would have found. Feedback without a delay lags behind: `until` is
then no later than the earliest event or timer that was known. A wall timer's slate lives by event
time too, so such a timer keeps nothing alive.

*Where it is in its round* is known only in the memory of the worker process: a round that begins
anew changes nothing but when a slate goes. Once round with nothing expired, a cell rests until the
oldest slate that it saw can have expired, so that it costs nothing where nothing expires.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice

from millstream.engine.progress import greatest, least
from millstream.model.workflow import Workflow
from millstream.stores.contract import View, after_prefix
from millstream.stores.layout import slate_head, slates_of
from millstream.stores.progress import Progress, SourceProgress

ROWS = 256
"""Slates that a cell looks at in a batch, at least."""
TIMES_TOUCHED = 2
"""Slates that it looks at for each that the batch has touched."""


def sweep_until(
    workflow: Workflow, progress: Progress, horizon: int | None, earliest: int | None
) -> int | None:
    """Every event still to come after the next batch is later than this; None: that is not known.

    `horizon` is the next batch's, `earliest` what was known to come before it.
    """
    until = horizon
    if workflow.order == "arrival":
        until = None if progress.held else _least_highest(progress.sources)
    if until is not None and workflow.feedback:
        until = least(until, earliest)
    return until


def vacuum_until(order: str, progress: Progress, earliest: int | None) -> int | None:
    """How far event time has come for a vacuum by hand, which takes all that has expired.

    In arrival order that is by the newest event: one that is out of order may find its slate gone.
    """
    until = progress.horizon
    if order == "arrival":
        until = None if progress.held else greatest(progress.horizon, progress.highest)
    return least(until, earliest) if until is not None and progress.feedback else until


def _least_highest(sources: Mapping[str, SourceProgress]) -> int | None:
    return least(*(source.highest for source in sources.values()))


def age_of(workflow: Workflow, ttl: int) -> int:
    """How long before `sweep_until` a slate's last update must be for it to go."""
    return ttl if workflow.order == "event-time" else 2 * ttl


@dataclass(slots=True)
class _Round:
    """Where a cell is in its round over its slates."""

    start: bytes
    """The first row that is still to be looked at."""
    least: int | None = None
    """The earliest last update of the slates that this round has left."""
    rest: int | None = None
    """Nothing can have expired before this."""


class Sweeps:
    """The rounds of the cells of one plan that this process has run."""

    def __init__(self) -> None:
        self._rounds: dict[tuple[str, int], _Round] = {}

    def expired(
        self, view: View, update: str, shard: int, before: int, touched: Collection[str]
    ) -> list[tuple[str, bytes]]:
        """(key, row) of some slates that were last updated before a time; none that is touched."""
        prefix = slates_of(update)
        here = self._rounds.setdefault((update, shard), _Round(prefix))
        if here.rest is not None and before <= here.rest:
            return []
        here.rest = None
        found, seen, most = [], 0, max(ROWS, TIMES_TOUCHED * len(touched))
        for row, data in islice(view.scan(here.start, after_prefix(prefix)), most):
            seen += 1
            here.start = row + b"\x00"
            key = row[len(prefix) :].decode()
            if key in touched:
                continue
            last = slate_head(data)[1]
            if last < before:
                found.append((key, data))
            elif here.least is None or last < here.least:
                here.least = last
        if seen < most:  # once round
            here.start, here.rest, here.least = prefix, here.least, None
        return found
