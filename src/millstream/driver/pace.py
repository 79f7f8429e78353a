"""The decisions about how much: what a batch takes in, how much of it one key may have, and when.

*Intake.* A batch takes what is there, up to an intake that follows the time that batches take: an
application that falls behind takes larger batches until one takes about the target, and no longer
than that. A batch speaks for what it took, however much it might have taken: one that was small and
quick lets the intake be a few times its size, and only one that took too long makes it less. (How
full a batch was cannot be told from its bytes: sources are taken in whole blocks.) While events
wait because an update is throttled, the sources are slowed in proportion, and stopped when its room
is full.

*Rest.* Small batches that followed each other at once would take all cores, at a rate of events
that larger batches take with ease, and reads would wait for them. So a small batch is followed by a
rest, in which the next one gathers what comes. A batch that took long is not: there is much to do.

*Shares.* In arrival order one key may have a quarter of the target, at what its update's events
have cost of late; see `admission`.
"""

from __future__ import annotations

from collections.abc import Mapping

from millstream.engine.beat import LEAST_SHARE
from millstream.model.workflow import Workflow
from millstream.stores.progress import Progress

TARGET_SECONDS = 2.0
FIRST_BYTES = 2 << 20
"""What the first batch of a store takes for each second that a batch may take: nothing is known of
its cost yet."""
LEAST_BYTES = 16 << 10
GROWTH = 4.0
"""By how much the intake changes in one batch, at most."""
SMALL_SECONDS = 0.1
"""A batch that took no longer is small."""
REST_SECONDS = 0.025
"""How long the rest after a small batch is, at most."""
HOT_SHARE = 0.25


def first_intake(intake: int | None, most: int, target: float) -> int:
    """What a batch may take when the last one left word of `intake`."""
    return min(most, int(FIRST_BYTES * target) if intake is None else intake)


def next_intake(
    intake: int | None, taken: int, seconds: float, *, target: float, most: int, warm: bool
) -> int | None:
    """What the next batch may take, after one that took `taken` bytes and so many seconds.

    `warm`: not the first batch of a run, whose time is mostly Spark's start. `most` is the setting.
    """
    if not taken:
        return intake
    now = first_intake(intake, most, target)
    # From what it took, not from what it might have: that is what took so long.
    took = min(now, taken)
    if seconds > target:
        if not warm:
            return now
        return max(LEAST_BYTES, int(took * max(1 / GROWTH, target / seconds)))
    return min(most, max(now, int(took * min(GROWTH, target / seconds))))


def slowed(intake: int, pressure: float) -> int:
    """What a batch may take while throttled events wait; 0: nothing."""
    return int(intake * max(0.0, 1.0 - pressure))


def rest_after(seconds: float) -> float:
    """How long to rest after a batch that took so long."""
    return min(REST_SECONDS, seconds / 2) if seconds <= SMALL_SECONDS else 0.0


def divided(intake: int, waiting: Mapping[str, int], *, in_step: bool = False) -> dict[str, int]:
    """What each source may take, by the bytes that wait in it: an even share of the intake, and of
    what others do not need. So a source that is alone in having records has all of it.

    `in_step`, for event-time order, where one that runs ahead only waits for the others: in
    proportion to what waits, so that all come to their ends together.
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
    """What a byte of input costs the functions, in microseconds, the last batches weighing most."""
    if taken < LEAST_BYTES:
        return pace
    now = spent / taken
    return now if pace is None else (pace + now) / 2


def set_pace(
    before: Progress, after: Progress, taken: int, *, target: float, most: int, warm: bool
) -> None:
    """Note with a batch, which took `taken` bytes, what the next one may take, and the pace."""
    seconds = after.last_seconds
    after.intake = next_intake(before.intake, taken, seconds, target=target, most=most, warm=warm)
    spent = sum(after.spent.values()) - sum(before.spent.values())
    after.pace = next_pace(before.pace, spent, taken)


def shares_of(
    workflow: Workflow, costs: Mapping[str, float], target_seconds: float
) -> dict[str, int]:
    """How many events of one key each update may have in a batch; others have no such limit."""
    if workflow.order != "arrival":
        return {}
    shares = {}
    for update in workflow.updates:
        cost = costs.get(update.name)
        if cost and update.limit is None and update.algebra is None:
            share = int(HOT_SHARE * target_seconds * 1e6 / cost)
            shares[update.name] = max(LEAST_SHARE, share)
    return shares
