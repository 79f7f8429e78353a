"""The event logs of a store's streams: in a folder of this machine, or in a place.

In either case a driver and its actions read logs with `LogReader` from a folder; for a place, that
folder is a mirror. They append and commit through this module.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from millstream.log import place_readers, readers
from millstream.log.mirror import LogMirror
from millstream.log.place_writer import EventLogWriter, PlaceLogWriter, TagIndex
from millstream.log.reader import LogReader
from millstream.log.retention import NOTHING, Retention
from millstream.log.writer import LogWriter
from millstream.places.place import Place

AT_THE_END = sys.maxsize
"""A record number that no log has yet: a mirror that begins there is almost empty."""
COMMIT_SECONDS = 30.0
"""Seconds between two commits of a reader to the place: retention can wait."""


class StreamLogs(Protocol):
    """The logs of a store's streams."""

    def has(self, stream: str) -> bool:
        """True if the stream may have a log. Check first: opening a writer may create one."""

    def reader(self, stream: str, *, record: int | None = None) -> LogReader:
        """A reader of the current log, at least from a record on."""

    def writer(
        self, stream: str, retention: Retention, index: TagIndex | None = None
    ) -> EventLogWriter:
        """A writer of the log.

        In a place it knows the tags in `index`, or those of the last day. In a folder, where it is
        the only writer, it knows only the last tag.
        """

    def clear(self, stream: str) -> None:
        """Remove the records of a log that every reader has committed; their numbers stay used.

        In a folder, LogLocked if there is a writer.
        """

    def commit(self, stream: str, reader: str, position: Sequence[int]) -> None:
        """Record that the reader needs nothing before the position any more."""

    def knows(self, stream: str, reader: str) -> bool:
        """True if the reader has ever committed."""

    def release(self, stream: str, reader: str) -> None:
        """Remove the reader: retention no longer waits for it."""

    def close(self) -> None: ...


class FolderLogs:
    """Logs in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, stream: str) -> bool:
        return (self._folder / stream).exists()

    def reader(self, stream: str, *, record: int | None = None) -> LogReader:
        return LogReader(self._folder / stream)

    def writer(
        self, stream: str, retention: Retention, index: TagIndex | None = None
    ) -> EventLogWriter:
        return LogWriter(self._folder / stream, retention=retention, tags=False)

    def clear(self, stream: str) -> None:
        with closing(LogWriter(self._folder / stream, retention=NOTHING, tags=False)) as writer:
            writer.clear()

    def commit(self, stream: str, reader: str, position: Sequence[int]) -> None:
        readers.commit(self._folder / stream, reader, position)

    def knows(self, stream: str, reader: str) -> bool:
        return readers.knows(self._folder / stream, reader)

    def release(self, stream: str, reader: str) -> None:
        (self._folder / stream / "readers" / f"{reader}.json").unlink(missing_ok=True)

    def close(self) -> None:
        pass


class PlaceLogs:
    """Logs in a place; those that are read here have mirrors in a folder.

    Records appended here are in the mirror at once; those of other writers after `follow`.
    """

    def __init__(
        self, place: Place, folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.place = place
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._mirrors: dict[str, LogMirror] = {}
        self._committed: dict[tuple[str, str], tuple[float, list[int]]] = {}
        """For each reader: the time of its last commit to the place, and its current position."""

    def has(self, stream: str) -> bool:
        return True  # opening a log in a place creates nothing

    def reader(self, stream: str, *, record: int | None = None) -> LogReader:
        return LogReader(self.mirror(stream, record=record).path)

    def mirror(
        self, stream: str, *, since: Sequence[int] | None = None, record: int | None = None
    ) -> LogMirror:
        """The mirror of a stream's log; brought up to date if this call opens it."""
        with self._lock:
            if stream not in self._mirrors:
                folder = self._folder / stream
                self._mirrors[stream] = LogMirror(
                    self.place, stream, folder, since=since, record=record
                )
            return self._mirrors[stream]

    def writer(
        self, stream: str, retention: Retention, index: TagIndex | None = None
    ) -> EventLogWriter:
        def taken(position: Sequence[int], data: bytes) -> None:
            mirror = self._mirrors.get(stream)
            if mirror is not None:
                mirror.take(position, data)

        return PlaceLogWriter(
            self.place, stream, retention=retention, index=index, taken=taken, beside=True
        )

    def clear(self, stream: str) -> None:
        with closing(PlaceLogWriter(self.place, stream, retention=NOTHING)) as writer:
            writer.clear()
        mirror = self._mirrors.get(stream)
        if mirror is not None:
            mirror.follow()
            mirror.retain()

    def commit(self, stream: str, reader: str, position: Sequence[int]) -> None:
        now = self._clock()
        sent, _ = self._committed.get((stream, reader), (-COMMIT_SECONDS, None))
        if now - sent >= COMMIT_SECONDS or (stream, reader) not in self._committed:
            place_readers.commit_in(self.place, stream, reader, position)
            sent = now
        self._committed[stream, reader] = sent, list(position)
        mirror = self._mirrors.get(stream)
        if mirror is not None:
            mirror.trim(
                min(at[0] for (name, _), (_, at) in self._committed.items() if name == stream)
            )

    def knows(self, stream: str, reader: str) -> bool:
        return place_readers.knows_in(self.place, stream, reader)

    def release(self, stream: str, reader: str) -> None:
        place_readers.release_in(self.place, stream, reader)

    def close(self) -> None:
        for mirror in self._mirrors.values():
            mirror.close()
