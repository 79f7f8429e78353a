"""How far the application is behind each source log: what was posted and not yet taken in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.description import Description
from millstream.errors import LogError
from millstream.log.reader import NOWHERE, LogReader
from millstream.stores.progress import Progress, SourceProgress


@dataclass(frozen=True, slots=True)
class Backlog:
    """What of a log is still to be taken in."""

    bytes: int
    events: int
    oldest: int | None
    """When the oldest of it was posted; None if there is nothing."""


class Backlogs:
    """Reads the ends of the source logs; keeps them open from one time to the next."""

    def __init__(self) -> None:
        self._readers: dict[Path, LogReader] = {}

    def of(self, description: Description, progress: Progress) -> dict[str, Backlog]:
        """The backlog of every source that reads a log; a log that cannot be read is left out."""
        found = {}
        for source in description.sources:
            path = source.log
            if path is not None:
                position = progress.sources.get(source.name, SourceProgress()).position
                try:
                    found[source.name] = self._behind(path, position or NOWHERE)
                except (LogError, OSError):
                    self._forget(path)
        return found

    def close(self) -> None:
        for path in list(self._readers):
            self._forget(path)

    def _behind(self, path: Path, position: list[Any]) -> Backlog:
        reader = self._readers.get(path)
        if reader is None:
            reader = self._readers[path] = LogReader(path)
        reader.reload()
        begin = max(position, reader.start)
        if begin >= reader.end:
            return Backlog(0, 0, None)
        size = reader.bytes_between(begin, reader.end)
        return Backlog(size, reader.end[1] - begin[1], reader.stamp_at(begin))

    def _forget(self, path: Path) -> None:
        reader = self._readers.pop(path, None)
        if reader is not None:
            reader.close()
