"""Sweeping: deletes expired slates in the background, by checking some slates in each batch.

A slate that has expired is as good as gone: the next event finds a fresh one, and its timers die.
But it takes room until that event comes, and it may never come. So each cell of an update with a
ttl checks some of its slates in every batch, in endless rounds, and deletes those that no event and
no timer can find alive any more. It checks twice as many as the batch has touched: so where each
batch creates new slates, there are never many more expired ones than live ones.

*Which slates expire.* Every event still to come is later than `until`, so a slate whose last update
is more than its ttl before that is expired for all of them. In event-time order `until` is the
horizon. In arrival order, where no horizon keeps events in order, it is the least of the highest
times that the sources have brought, and slates are kept for twice the ttl, so an event that is out
of order by less than a ttl still finds its slate. Feedback without a delay lags behind: `until` is
then no later than the earliest known event or timer. The slate of a wall timer expires by event
time too, so such a timer keeps nothing alive.

*The position in a round* is kept only in the memory of the worker process: starting a round again
changes only when a slate is deleted. After a full round a cell rests until the oldest slate that it
left can have expired, so that it costs nothing where nothing expires.
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
"""The fewest slates that a cell checks in a batch."""
TIMES_TOUCHED = 2
"""The number of slates that it checks for each that the batch has touched."""


def sweep_until(
    workflow: Workflow, progress: Progress, horizon: int | None, earliest: int | None
) -> int | None:
    """Returns a time that all events after the next batch are later than; None if not known.

    `horizon` is the next batch's; `earliest` is the earliest pending event or timer before it.
    """
    until = horizon
    if workflow.order == "arrival":
        until = None if progress.pending.held else _least_highest(progress.sources)
    if until is not None and workflow.feedback:
        until = least(until, earliest)
    return until


def vacuum_until(order: str, progress: Progress, earliest: int | None) -> int | None:
    """Returns the event time for a vacuum by hand, which deletes all expired slates.

    In arrival order it is the time of the newest event: an event that is out of order may find its
    slate gone.
    """
    until = progress.horizon
    if order == "arrival":
        until = None if progress.pending.held else greatest(progress.horizon, progress.highest)
    return least(until, earliest) if until is not None and progress.pending.feedback else until


def _least_highest(sources: Mapping[str, SourceProgress]) -> int | None:
    return least(*(source.highest for source in sources.values()))


def age_of(workflow: Workflow, ttl: int) -> int:
    """Returns how long before `sweep_until` a slate's last update must be for it to be deleted."""
    return ttl if workflow.order == "event-time" else 2 * ttl


@dataclass(slots=True)
class _Round:
    """The position of a cell in its round over its slates."""

    start: bytes
    """The first row that is not checked yet."""
    least: int | None = None
    """The earliest last update among the slates that this round has kept."""
    rest: int | None = None
    """The cell rests until slates last updated at this time can have expired."""


class Sweeps:
    """The rounds of the cells of one plan that this process has run."""

    def __init__(self) -> None:
        self._rounds: dict[tuple[str, int], _Round] = {}

    def expired(
        self, view: View, update: str, shard: int, before: int, touched: Collection[str]
    ) -> list[tuple[str, bytes]]:
        """Returns (key, row) of some slates last updated before `before`; skips touched ones."""
        prefix = slates_of(update)
        turn = self._rounds.setdefault((update, shard), _Round(prefix))
        if turn.rest is not None and before <= turn.rest:
            return []
        turn.rest = None
        expired, seen, most = [], 0, max(ROWS, TIMES_TOUCHED * len(touched))
        for row, data in islice(view.scan(turn.start, after_prefix(prefix)), most):
            seen += 1
            turn.start = row + b"\x00"
            key = row[len(prefix) :].decode()
            if key in touched:
                continue
            last = slate_head(data)[1]
            if last < before:
                expired.append((key, data))
            elif turn.least is None or last < turn.least:
                turn.least = last
        if seen < most:  # the round is complete
            turn.start, turn.rest, turn.least = prefix, turn.least, None
        return expired
