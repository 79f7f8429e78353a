"""Reports problems of an agent's log to its user, each of them once."""

from __future__ import annotations

from pathlib import Path

from millstream.agent.delivery.outbox import Say
from millstream.agent.log.log_follower import LogFollower
from millstream.agent.panes.dead_letters import DeadLetters
from millstream.agent.panes.pane_reader import PaneReader
from millstream.agent.panes.restart import Counts
from millstream.model.place import shown_path
from millstream.windows.lateness import late_warning, misdated_warning, unit_warning


class FileNotes:
    """Reports files that are not read. Used by one thread."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._not_read: set[str] = set()

    def of_files(self, follower: LogFollower) -> None:
        """Report files that match the patterns and are not read."""
        not_read = {name: f"cannot be read: {why}" for name, why in follower.unreadable.items()}
        not_read |= dict.fromkeys(
            follower.left_alone, "is compressed, but not as .gz, .bz2 or .xz, and is not read"
        )
        not_read |= dict.fromkeys(
            follower.torn, "is compressed and not whole: nothing of it is read until it is complete"
        )
        for name in sorted(not_read.keys() - self._not_read):
            self._say(f"{name} {not_read[name]}")
        self._not_read |= not_read.keys()


class LogNotices:
    """Reports dead letters, late records and wrong times of a job. Used by one thread."""

    def __init__(self, say: Say, node: str, unit: str | None, folder: Path) -> None:
        """`unit` is that of the log's times, if any; `folder` has the file of dead letters."""
        self._say, self._node, self._unit, self._folder = say, node, unit, folder
        self._warned: set[str] = set()

    def of_letters(self, letters: DeadLetters) -> None:
        """Report the first dead letter."""
        if letters.first is not None:
            path = shown_path(self._folder / "dead-letters.jsonl")
            self._say(
                f"the first dead letter is {letters.first}; it is in {path}, like all that follow"
            )
            letters.first = None

    def of_times(self, reading: PaneReader, before: Counts) -> None:
        """Warn once if many records are late, and once if many were set aside for their times.
        `before` are the counts of the panes that were sent."""
        read, counts = reading.making.read, before.plus(reading.panes.counts)
        self._warn("late", late_warning(self._node, read, counts.late, reading.behind))
        self._warn("misdated", misdated_warning(self._node, read, counts.misdated))

    def of_unit(self, ts: int | None, now: int) -> None:
        """Warn once if the log's times, such as `ts`, are likely to have another unit. `now` is the
        clock."""
        self._warn("unit", unit_warning(self._node, self._unit, ts, now))

    def _warn(self, kind: str, warning: str | None) -> None:
        if warning is not None and kind not in self._warned:
            self._warned.add(kind)
            self._say(f"warning: {warning}")
