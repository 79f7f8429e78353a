"""Warns if many records of a log are late or have implausible times, or times of another unit. The
warnings are shown by the agent, in `jobs` and on the page."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.counted_nouns import counted
from millstream.model.duration import UNITS, shown_duration
from millstream.model.source import unit_doubt
from millstream.windows.accounts import NodeAccount

LEAST = 100
"""With fewer records there is no warning."""
PART = 0.2
"""The least share of late records, or of records that were set aside, for a warning."""
FARTHEST_LOG = 30 * 365 * UNITS["d"]
"""The age from which a log is unlikely to be an old one."""
FARTHEST_ZONES = 26 * UNITS["h"]
"""The distance between the two time zones of the world that are farthest apart."""


def late_warning(node: str, read: int, late: int, behind: int) -> str | None:
    """Returns a warning if many records of a node are late, by `behind` microseconds at most.
    Otherwise None.

    >>> late_warning("web1", 3_200, 3_014, 5 * 3_600_000_000)
    'web1: 94% of 3,200 records came late, up to 5h behind: is its log in another time zone (zone)?'
    >>> late_warning("web1", 3_200, 12, 5 * 3_600_000_000)
    >>> late_warning("web1", 3_200, 3_014, 200 * 3_600_000_000)
    'web1: 94% of 3,200 records came late, up to 8d8h behind: is its log an old one (--once)?'
    """
    if read < LEAST or late < PART * read:
        return None
    warning = f"{node}: {late / read:.0%} of {read:,} records came late"
    if not behind:
        return f"{warning}: are its records in no order?"
    warning += f", up to {shown_duration(_rounded(behind))} behind"
    if behind > FARTHEST_LOG:
        return f"{warning}: have its times another unit (unit)?"
    if behind > FARTHEST_ZONES:
        return f"{warning}: is its log an old one (--once)?"
    if behind >= UNITS["m"] * 30:
        return f"{warning}: is its log in another time zone (zone)?"
    return f"{warning}: are its records in no order?"


def _rounded(behind: int) -> int:
    """Rounds microseconds to the nearest quarter of an hour, by which time zones differ; less than
    an hour to the nearest minute or second.

    >>> shown_duration(_rounded(5 * UNITS["h"] - 4 * UNITS["s"]))
    '5h'
    """
    if behind >= UNITS["h"]:
        unit = 15 * UNITS["m"]
    else:
        unit = next(UNITS[name] for name in ("m", "s", "us") if behind >= UNITS[name])
    return (behind + unit // 2) // unit * unit


def misdated_warning(node: str, read: int, misdated: int) -> str | None:
    """Returns a warning if many records of a node were set aside for implausible times. Otherwise
    None.

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


def unit_warning(node: str, unit: str | None, ts: int | None, clock: int) -> str | None:
    """Returns a warning if the times of a node's log are likely to have another unit than `unit`,
    by one of them. Otherwise None."""
    doubt = None if ts is None else unit_doubt(unit, ts, clock)
    return None if doubt is None else f"{node}: {doubt}"


def log_warnings(node: str, counts: NodeAccount, *, timed: bool) -> Iterator[str]:
    """Yields the warnings about a node's log that its counts give. `timed`: the job's axis is
    time."""
    behind = counts.behind if timed else 0
    warnings = (
        late_warning(node, counts.read, counts.late, behind),
        misdated_warning(node, counts.read, counts.misdated),
    )
    yield from (warning for warning in warnings if warning is not None)
