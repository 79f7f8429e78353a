"""What is likely when much of a log is late, in words: at the agent, in `jobs`, on the page."""

from __future__ import annotations

from millstream.model.duration import UNITS, shown_duration

LEAST = 100
"""Records from which on it is said."""
PART = 0.2
"""The part of them that is much."""


def late_warning(node: str, read: int, late: int, behind: int) -> str | None:
    """A sentence if much of a node's log is late, by `behind` microseconds at most; else None.

    >>> late_warning("web1", 3_200, 3_014, 5 * 3_600_000_000)
    'web1: 94% of 3,200 records came late, up to 5h behind: is its log in another time zone (zone)?'
    >>> late_warning("web1", 3_200, 12, 5 * 3_600_000_000)
    """
    if read < LEAST or late < PART * read:
        return None
    said = f"{node}: {late / read:.0%} of {read:,} records came late"
    if not behind:
        return f"{said}: are its records in no order?"
    coarse = next(UNITS[unit] for unit in ("h", "m", "s", "us") if behind >= UNITS[unit])
    said += f", up to {shown_duration(behind // coarse * coarse)} behind"
    if behind >= UNITS["m"] * 30:
        return f"{said}: is its log in another time zone (zone)?"
    return f"{said}: are its records in no order?"
