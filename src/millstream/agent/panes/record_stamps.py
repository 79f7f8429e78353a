"""The times of a job's records that have none: when they were first seen (`first_seen_times`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from millstream.agent.limits import Limits
from millstream.agent.log.first_seen_times import FirstSeenTimes
from millstream.agent.log.line_slices import Slice
from millstream.agent.log.log_files import LineChunk, Mark


class RecordStamps:
    """Stamps runs of lines. Used by one thread."""

    def __init__(
        self,
        journal: FirstSeenTimes | None,
        limits: Limits,
        wall: Callable[[], int],
        earliest: Callable[[], int | None],
    ) -> None:
        """`earliest` returns the beginning of the current pane, if there is one. No stamp is before
        it: a record without a time is never late, even if the clock was set back."""
        self.journal = journal
        """None: the job's records have times of their own, or need none."""
        self._limits, self._wall, self._earliest = limits, wall, earliest

    def runs(self, chunk: LineChunk, part: Slice) -> Iterator[tuple[int, Slice]]:
        """Splits a slice into runs of lines with one stamp each. Stops early if the agent is
        stopped while the disk has no room."""
        journal, file = self.journal, chunk.file
        if journal is None:
            yield self._wall(), part
            return
        end, stamped = chunk.start + chunk.size, [0]
        while part.lines:
            place = part.place[1]

            def stamp(journal: FirstSeenTimes = journal, place: int = place) -> None:
                stamped[0] = journal.stamp(file.key, place, end - place, file.size, self._now())

            if not self._limits.when_there_is_room(stamp):
                return
            same, part = part.parted(journal.until(file.key, place) - place)
            yield stamped[0], same

    def _now(self) -> int:
        now, earliest = self._wall(), self._earliest()
        return now if earliest is None else max(now, earliest)

    def forget(self, position: Sequence[Mark]) -> None:
        """Removes the stamps of lines before a position in the log."""
        journal = self.journal
        if journal is not None:
            self._limits.when_there_is_room(lambda: journal.forget(position))

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()
