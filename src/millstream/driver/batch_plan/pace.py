"""Decides how much input a batch takes, how much of it one key may have, and when the next starts.

*Intake.* A batch takes what is there, up to a limit, the intake, which follows the duration of
batches: an application that falls behind takes larger batches until one takes about the target
time, and no longer. Only the bytes that a batch actually took count, not the bytes that it was
allowed: a small and quick batch lets the intake be a few times the batch's size, and only a batch
that took too long reduces it. (A batch's bytes do not tell how full it was: sources are taken in
whole blocks.) While events wait because an update is throttled, the sources are slowed in
proportion, and stopped when the room for that update's waiting events is full.

*Rest.* Small batches in immediate succession would use all cores, at a rate of events that larger
batches handle with ease, and reads would have to wait. So a small batch is followed by a rest, in
which input for the next one gathers. A long batch is followed by none: there is much to do.

*Shares.* In arrival order one key may have a quarter of the target time, at the recent cost of its
update's events; see `admission`.
"""

from __future__ import annotations

from collections.abc import Mapping

from millstream.engine.beat import LEAST_SHARE
from millstream.model.workflow import Workflow
from millstream.stores.progress import Progress

TARGET_SECONDS = 2.0
FIRST_BYTES = 2 << 20
"""The intake of a store's first batch, per second of the target: its cost is not known yet."""
LEAST_BYTES = 16 << 10
GROWTH = 4.0
"""The largest factor by which the intake changes after one batch."""
SMALL_SECONDS = 0.1
"""The longest duration of a batch that counts as small."""
REST_SECONDS = 0.025
"""The longest rest after a small batch."""
HOT_SHARE = 0.25


def first_intake(intake: int | None, most: int, target: float) -> int:
    """Returns how many bytes a batch may take; `intake` comes from the last batch, if any."""
    return min(most, int(FIRST_BYTES * target) if intake is None else intake)


def next_intake(
    intake: int | None, taken: int, seconds: float, *, target: float, most: int, warm: bool
) -> int | None:
    """Returns how many bytes the next batch may take, after one of `taken` bytes and `seconds`.

    `warm`: it was not the first batch of a run, whose time is mostly Spark's start. `most` is the
    setting `batch_bytes`.
    """
    if not taken:
        return intake
    now = first_intake(intake, most, target)
    # Based on what the batch took, not on what it was allowed: that is what its time was spent on.
    took = min(now, taken)
    if seconds > target:
        if not warm:
            return now
        return max(LEAST_BYTES, int(took * max(1 / GROWTH, target / seconds)))
    return min(most, max(now, int(took * min(GROWTH, target / seconds))))


def slowed(intake: int, pressure: float) -> int:
    """Returns how many bytes a batch may take while throttled events wait; 0: nothing."""
    return int(intake * max(0.0, 1.0 - pressure))


def rest_after(seconds: float) -> float:
    """Returns how many seconds to rest after a batch that took `seconds`."""
    return min(REST_SECONDS, seconds / 2) if seconds <= SMALL_SECONDS else 0.0


def divided(intake: int, waiting: Mapping[str, int], *, in_step: bool = False) -> dict[str, int]:
    """Divides the intake among sources, given the bytes that wait in each.

    Each source gets an even share, and of what others do not need. So if only one source has
    records, it gets the whole intake. `in_step`: shares are in proportion to what waits, so that
    all sources come to their ends together. This is for event-time order, where a source that runs
    ahead only waits for the others.
    """
    total = sum(waiting.values())
    if in_step and total > intake:
        return {name: intake * size // total for name, size in waiting.items()}
    parts, left = {}, intake
    for place, name in enumerate(sorted(waiting, key=waiting.__getitem__)):
        parts[name] = min(waiting[name], left // (len(waiting) - place))
        left -= parts[name]
    return parts


def next_pace(pace: float | None, spent: int, taken: int) -> float | None:
    """Returns the functions' microseconds per byte of input; recent batches weigh most."""
    if taken < LEAST_BYTES:
        return pace
    now = spent / taken
    return now if pace is None else (pace + now) / 2


def set_pace(
    before: Progress, after: Progress, taken: int, *, target: float, most: int, warm: bool
) -> None:
    """Sets the next intake and the pace in `after`, the progress of a batch of `taken` bytes."""
    timing, seconds = before.timing, after.timing.last_seconds
    intake = next_intake(timing.intake, taken, seconds, target=target, most=most, warm=warm)
    after.timing.intake = intake
    spent = after.total().spent - before.total().spent
    after.timing.pace = next_pace(timing.pace, spent, taken)


def shares_of(
    workflow: Workflow, costs: Mapping[str, float], target_seconds: float
) -> dict[str, int]:
    """Returns how many events of one key each update takes in a batch; others take all."""
    if workflow.order != "arrival":
        return {}
    shares = {}
    for update in workflow.updates:
        cost = costs.get(update.name)
        waits = update.limit is None and update.algebra is None and not update.immediate
        if cost and waits:
            share = int(HOT_SHARE * target_seconds * 1e6 / cost)
            shares[update.name] = max(LEAST_SHARE, share)
    return shares
