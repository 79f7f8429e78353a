"""In which order several files of a log are read that have lines: pane by pane."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from millstream.agent.files import Chunk, LogFile
from millstream.agent.slicing import lines_of, size_of

PaneOf = Callable[[bytes], int | None]
"""The pane that a line is in; None if it does not say."""


class PaneOrder:
    """Which pane a file goes on in. One thread."""

    def __init__(self, pane_of: PaneOf) -> None:
        self._pane_of = pane_of
        self._panes: dict[str, tuple[int, int | None]] = {}
        """By file: a place, and the pane of the line that begins there."""

    def next_pane(self, file: LogFile) -> int | None:
        """The pane of the next line of a file."""
        offset, pane = self._panes.get(file.id, (-1, None))
        if offset != file.offset:
            line = file.peek()
            pane = None if line is None else self._pane_of(line)
            self._panes[file.id] = (file.offset, pane)
        return pane

    def up_to(self, chunk: Chunk, pane: int) -> Chunk:
        """The lines of a chunk up to the end of a pane, in which another file goes on."""
        lines = [] if chunk.too_long else lines_of(chunk)

        def is_past(line: bytes) -> bool:
            of = self._pane_of(line)
            return of is not None and of > pane

        if not lines or not is_past(lines[-1]):
            return chunk
        # Logs are in order, or nearly: the end of the pane is found by halves.
        kept = max(1, bisect_left(lines, True, key=is_past))
        return chunk.file.put_back(chunk, size_of(lines[:kept]))

    def forget(self, file: LogFile) -> None:
        """A file has other lines than it had."""
        self._panes.pop(file.id, None)

    def clear(self) -> None:
        """Panes are others than they were."""
        self._panes.clear()
