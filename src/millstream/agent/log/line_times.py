"""Reads the times of lines, and rejects those that are implausible.

A line whose time is far after the clock of the machine, or far after the line before it while the
lines after it go back, would end all panes up to that time and make all lines after it late.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.agent.log.lines import record_reader, time_reader
from millstream.errors import InputError
from millstream.model.duration import microseconds, shown_duration
from millstream.model.source import likely_cause
from millstream.windows.logs import JUMP
from millstream.windows.placed import PlacedJob


class Misdated(InputError):
    """A line whose time is rejected. `plausible` is True if only the lines around it contradict
    it."""

    def __init__(self, words: str, *, plausible: bool) -> None:
        super().__init__(words)
        self.plausible = plausible


LOOK_AHEAD = 8
"""A line's time is compared with the times of this many lines after it."""


class LineTimes:
    """Reads the records of lines and their times. Used by one thread."""

    def __init__(self, placed: PlacedJob) -> None:
        assert placed.logs is not None
        self.record_of = record_reader(placed.logs)
        self.time_of = time_reader(placed.logs, f"logs of job {placed.name!r}")
        """None if records have no time."""
        self._ahead = microseconds(placed.logs.ahead, "logs: ahead")
        jump = JUMP if placed.logs.jump is None else placed.logs.jump
        self._jump = microseconds(jump, "logs: jump")
        self._unit = placed.logs.unit
        self.doubted: int | None = None
        """How far the last line was ahead of the clock, if it was rejected because no later line
        confirmed it."""

    def first_time(self, line: bytes) -> int | None:
        """Returns the time of a line; None if it has none."""
        try:
            return None if self.time_of is None else self.time_of(self.record_of(line))
        except Exception:
            return None

    def check_ahead(self, ts: int, now: int) -> None:
        """Raise Misdated if a time is far after the clock."""
        if ts > now + self._ahead:
            raise Misdated(
                f"its time is more than {shown_duration(self._ahead)} after the clock of this "
                f"machine (logs: ahead); {likely_cause(self._unit, ts, now)}",
                plausible=False,
            )

    def check_jump(self, ts: int, known: int | None, following: Sequence[bytes], now: int) -> None:
        """Raise Misdated if a time is far after the last one, `known`, and most of the following
        lines are nearer to `known`: it is then a mistake that would make all of them late.

        A log that is being written may have no following lines yet. Then the clock decides: a time
        that is far after `now` is rejected, unless the log was ahead of the clock before."""
        if self.time_of is None or (known is not None and ts - known <= self._jump):
            return
        times = [ts for ts in map(self.first_time, following) if ts is not None]
        if not times:
            self._check_last(ts, known, now)
            return
        # The median decides: a single line that is far behind is wrong itself, or late.
        back = sorted(times)[len(times) // 2]
        if ts - back > (self._jump if known is None else abs(back - known)):
            before = (
                "the lines after it"
                if known is None
                else "the line before it, and the lines after it go back"
            )
            raise Misdated(
                f"its time is more than {shown_duration(self._jump)} (logs: jump) after {before}",
                plausible=True,
            )

    def _check_last(self, ts: int, known: int | None, now: int) -> None:
        """Raise Misdated if the last line so far is far after the clock. If the next line is just
        as far ahead, it is accepted."""
        latest, ahead = now + self._jump, ts - now
        confirmed = self.doubted is not None and abs(ahead - self.doubted) <= self._jump
        if ts <= latest or confirmed or (known is not None and known > latest):
            return
        self.doubted = ahead
        raise Misdated(
            f"its time is more than {shown_duration(self._jump)} (logs: jump) after the clock of "
            "this machine and the line before it, and no line after it confirms it yet",
            plausible=True,
        )
