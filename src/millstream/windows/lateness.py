"""The warnings that are shown when much of a log is late, or is set aside for its times: by the
agent, in `jobs` and on the page."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.counted_nouns import counted
from millstream.model.duration import UNITS, shown_duration
from millstream.windows.accounts import NodeAccount

LEAST = 100
"""With fewer records there is no warning."""
PART = 0.2
"""The least share of late records, or of those set aside, for a warning."""


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


def misdated_warning(node: str, read: int, misdated: int) -> str | None:
    """Returns a warning if much of a node's log was set aside, since its times are implausible.
    Otherwise None.

    >>> misdated_warning("web1", 3_200, 12)
    >>> print(misdated_warning("web1", 3_200, 1_600))
    web1: set aside 50% of 3,200 records for implausible times: have they another unit, format or \
zone (unit, time_format, zone)? The dead letters say more
    """
    if read < LEAST or misdated < PART * read:
        return None
    return (
        f"{node}: set aside {misdated / read:.0%} of {counted(read, 'record')} for implausible "
        "times: have they another unit, format or zone (unit, time_format, zone)? The dead letters "
        "say more"
    )


def log_warnings(node: str, counts: NodeAccount, *, timed: bool) -> Iterator[str]:
    """Yields the warnings about a node's log. `timed`: the job's axis is time."""
    behind = counts.behind if timed else 0
    warnings = (
        late_warning(node, counts.read, counts.late, behind),
        misdated_warning(node, counts.read, counts.misdated),
    )
    yield from (warning for warning in warnings if warning is not None)
