"""The warning that is shown when much of a log is late: by the agent, in `jobs` and on the page."""

from __future__ import annotations

from millstream.model.duration import UNITS, shown_duration

LEAST = 100
"""With fewer records there is no warning."""
PART = 0.2
"""The least share of late records for a warning."""


def late_warning(node: str, read: int, late: int, behind: int) -> str | None:
    """Returns a warning if much of a node's log is late, by `behind` microseconds at most.
    Otherwise None.

    >>> late_warning("web1", 3_200, 3_014, 5 * 3_600_000_000)
    'web1: 94% of 3,200 records came late, up to 5h behind: is its log in another time zone (zone)?'
    >>> late_warning("web1", 3_200, 12, 5 * 3_600_000_000)
    """
    if read < LEAST or late < PART * read:
        return None
    warning = f"{node}: {late / read:.0%} of {read:,} records came late"
    if not behind:
        return f"{warning}: are its records in no order?"
    coarse = next(UNITS[unit] for unit in ("h", "m", "s", "us") if behind >= UNITS[unit])
    warning += f", up to {shown_duration(behind // coarse * coarse)} behind"
    if behind >= UNITS["m"] * 30:
        return f"{warning}: is its log in another time zone (zone)?"
    return f"{warning}: are its records in no order?"
