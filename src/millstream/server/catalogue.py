"""Which streams there are, what kind each is of, and in which log it lies, if in any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from millstream.description import Description, SourceDescription
from millstream.errors import LogError
from millstream.log.reader import NOWHERE
from millstream.nearest import did_you_mean
from millstream.server.answers import Refusal
from millstream.server.numbered import Backlog, Numbered
from millstream.server.open_store import OpenStore
from millstream.stores.home import log_of
from millstream.stores.progress import Progress, SourceProgress

OWN = ("late", "deadletters", "dropped")
"""Streams that every application has."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream, and its log if it lies in one."""

    name: str
    kind: str
    """source, output, late, deadletters, dropped, or inner for those between functions."""
    source: SourceDescription | None
    log: Path | None

    @property
    def posts(self) -> bool:
        """Whether events can be sent to it."""
        return self.source is not None and self.source.log is not None


def streams_of(description: Description | None, store: Path) -> dict[str, Stream]:
    """All streams of an application by name, the sources first."""
    found: dict[str, Stream] = {}
    if description is not None:
        for source in description.sources:
            log = source.log
            if log is None and source.name in description.outputs:
                log = log_of(store, source.name)
            found[source.name] = Stream(source.name, "source", source, log)
        for name in description.outputs:
            found.setdefault(name, Stream(name, "output", None, log_of(store, name)))
        for name in description.streams:
            found.setdefault(name, Stream(name, "inner", None, None))
    for name in OWN:
        found.setdefault(name, Stream(name, name, None, log_of(store, name)))
    return found


class Catalogue:
    """The streams of a store's application as it is now, and their logs."""

    def __init__(self, store: OpenStore) -> None:
        self._store = store
        self._description: Description | None = None
        self._streams = streams_of(None, store.path)
        self._logs: dict[Path, Numbered] = {}

    def streams(self) -> dict[str, Stream]:
        description = self._store.description()
        if description is not self._description:
            self._description = description
            self._streams = streams_of(description, self._store.path)
        return self._streams

    def stream(self, name: str) -> Stream:
        """The stream of that name; Refusal if there is none."""
        streams = self.streams()
        found = streams.get(name)
        if found is None:
            raise Refusal(404, f"there is no stream {name!r}; {did_you_mean(name, streams)}")
        return found

    def source(self, name: str) -> tuple[SourceDescription, Path]:
        """A source that takes events, and its log; Refusal if events cannot be sent there."""
        stream = self.stream(name)
        if stream.source is None:
            takers = [one.name for one in self.streams().values() if one.posts]
            raise Refusal(
                404,
                f"stream {name!r} is not a source, and only sources take events; "
                f"{_there_are(takers)}",
            )
        log = stream.source.log
        if log is None:
            raise Refusal(
                409,
                f"source {name!r} reads {stream.source.address}, and only one that reads a log "
                f"takes events; run the application with --source {name}=log",
            )
        return stream.source, log

    def log(self, path: Path) -> Numbered:
        """A log as it is now; kept open, and shared by all who read it."""
        log = self._logs.get(path)
        if log is None:
            log = self._logs[path] = Numbered(path)
        log.reload()
        return log

    def log_of(self, name: str) -> Numbered:
        """The log of a stream; Refusal if there is no such stream, or it lies in none."""
        stream = self.stream(name)
        if stream.log is None:
            where = f"reads {stream.source.address}" if stream.source else "is kept nowhere"
            logged = [one.name for one in self.streams().values() if one.log is not None]
            raise Refusal(
                409,
                f"stream {name!r} {where}, and only what is in a log can be read here; "
                f"{_there_are(logged)}",
            )
        return self.log(stream.log)

    def backlogs(self, progress: Progress) -> dict[str, Backlog]:
        """How far the application is behind each source that reads a log, by the source's name.

        A log that cannot be read is left out.
        """
        found = {}
        for stream in self.streams().values():
            if stream.source is not None and (log := stream.source.log) is not None:
                taken = progress.sources.get(stream.name, SourceProgress()).position
                try:
                    found[stream.name] = self.log(log).backlog(taken or NOWHERE)
                except (LogError, OSError):
                    pass  # whoever reads the log is told why
        return found

    async def close(self) -> None:
        for log in self._logs.values():
            log.close()
        self._logs.clear()


def _there_are(names: Iterable[str]) -> str:
    return f"there are: {', '.join(names) or 'none'}"
