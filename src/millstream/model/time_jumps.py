"""Times in a file that jump ahead of those around them: one wrong stamp, set aside.

A time that is hours ahead makes every record after it late. Whether one is wrong is seen from its
neighbours in the same file: those before it and those after it lie far behind, and so it is not
that time went on. It is decided from the `NEIGHBOURS` records on either side and nothing else, as
they stand in the file: so it does not depend on where a batch or a task begins.

The *median* of either side counts: some wrong times beside one another are found too, and a single
one that is far behind does no harm. A time at the end of a file, with none after it, is taken:
nothing shows that it is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

NEIGHBOURS = 8


def jumps(before: Sequence[int], ts: int, after: Sequence[int], jump: int) -> bool:
    """Whether a time is more than `jump` ahead of what is around it.

    >>> jumps([1, 2, 3], 90, [4, 5], 50), jumps([1, 2, 3], 90, [91, 92], 50)
    (True, False)
    """
    if not after or ts - _median(after) <= jump:
        return False
    return not before or ts - _median(before) > jump


def jumping(times: Sequence[int], jump: int, first: int = 0, stop: int | None = None) -> list[int]:
    """Which of the times [first, stop) jump; the others are only looked at.

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
