"""Orders the reading of several files that have lines: pane by pane."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from millstream.agent.log.line_slices import lines_of, size_of
from millstream.agent.log.log_files import LineChunk, LogFile
from millstream.agent.log.packed_files import rotation_number

PaneOf = Callable[[bytes], int | None]
"""Returns the pane of a line; None if the line does not tell."""


class PaneOrder:
    """Knows the pane of each file's next line. Used by one thread."""

    def __init__(self, pane_of: PaneOf) -> None:
        self._pane_of = pane_of
        self._panes: dict[str, tuple[int, int | None]] = {}
        """For each file: an offset, and the pane of the line that begins there."""

    def next_pane(self, file: LogFile) -> int | None:
        """Returns the pane of the next line of a file."""
        offset, pane = self._panes.get(file.id, (-1, None))
        if offset != file.offset:
            line = file.peek()
            pane = None if line is None else self._pane_of(line)
            self._panes[file.id] = (file.offset, pane)
        return pane

    def up_to(self, chunk: LineChunk, pane: int) -> LineChunk:
        """Returns the lines of a chunk up to the end of a pane, in which another file continues.

        The other lines are put back into the file.
        """
        lines = [] if chunk.too_long else lines_of(chunk)

        def is_past(line: bytes) -> bool:
            line_pane = self._pane_of(line)
            return line_pane is not None and line_pane > pane

        if not lines or not is_past(lines[-1]):
            return chunk
        # Logs are in order, or nearly, so a binary search finds the end of the pane.
        kept = max(1, bisect_left(lines, True, key=is_past))
        return chunk.file.put_back(chunk, size_of(lines[:kept]))

    def forget(self, file: LogFile) -> None:
        """Forget a file whose lines have been replaced."""
        self._panes.pop(file.id, None)

    def clear(self) -> None:
        """Forget all files: the size of the panes has changed."""
        self._panes.clear()


def put_in_order(file: LogFile, first_time: Callable[[bytes], int | None]) -> None:
    """Sets a file's turn among all files: by the time of its first line, or of its last write."""
    line = file.first_line()
    first = file.first = None if line is None else first_time(line)
    number = -rotation_number(file.path.name)  # log.2 is older than log.1
    file.order = (file.written // 1_000 if first is None else first, number, str(file.path))
