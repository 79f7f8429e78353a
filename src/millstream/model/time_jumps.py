"""Finds wrong times in a file: those that jump ahead of the times around them.

A time that is hours ahead makes every record after it late. A time is wrong if its neighbours in
the same file, before it and after it, are all far behind it: then time itself has not moved on.
Only the `NEIGHBOURS` records on either side, in file order, decide it. So the result does not
depend on where a batch or a task begins.

The *median* of each side counts: several wrong times in a row are found too, and a single time
that is far behind does no harm. The last time in a file is accepted: nothing after it shows that
it is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

NEIGHBOURS = 8


def jumps(before: Sequence[int], ts: int, after: Sequence[int], jump: int) -> bool:
    """True if a time is more than `jump` ahead of the times around it.

    >>> jumps([1, 2, 3], 90, [4, 5], 50), jumps([1, 2, 3], 90, [91, 92], 50)
    (True, False)
    """
    if not after or ts - _median(after) <= jump:
        return False
    return not before or ts - _median(before) > jump


def jumping(times: Sequence[int], jump: int, first: int = 0, stop: int | None = None) -> list[int]:
    """Returns the indices in [first, stop) of times that jump; the others serve as neighbours.

    >>> jumping([1, 2, 90, 3, 4], 50)
    [2]
    """
    return [
        index
        for index in range(first, len(times) if stop is None else stop)
        if jumps(
            times[max(0, index - NEIGHBOURS) : index],
            times[index],
            times[index + 1 : index + 1 + NEIGHBOURS],
            jump,
        )
    ]


def _median(times: Sequence[int]) -> int:
    return sorted(times)[(len(times) - 1) // 2]
