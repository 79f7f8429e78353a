"""The streams of the application: the kind of each, and its log if it has one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from millstream.actions.letters import failed_log
from millstream.actions.record import known
from millstream.description import Description, SourceDescription
from millstream.errors import LogError
from millstream.kafka.topic import topic_at
from millstream.letters.retried_numbers import RetriedNumbers
from millstream.letters.retry_log import RETRIED
from millstream.log.reader import NOWHERE
from millstream.messages.status import LettersLeft
from millstream.model.workflow import FAILED
from millstream.nearest import did_you_mean
from millstream.server.http.answers import Refusal
from millstream.server.open_store import OpenStore
from millstream.server.streams.numbered_records import Backlog, Numbered
from millstream.server.streams.topics import Topics
from millstream.stores.home import log_of
from millstream.stores.progress import Progress, SourceProgress

OWN = ("late", "deadletters", "dropped")
"""Streams that every application has."""


@dataclass(frozen=True, slots=True)
class ServedStream:
    """A stream, and its log if it has one."""

    name: str
    kind: str
    """source, output, late, deadletters, dropped, failed (the dead letters of an action), or inner
    (between functions)."""
    source: SourceDescription | None
    log: Path | None

    @property
    def posts(self) -> bool:
        """True if events can be sent to it."""
        return self.log_posts or self.topic_posts

    @property
    def log_posts(self) -> bool:
        """True if events that are sent to it go into its log."""
        return self.source is not None and self.source.reads_log

    @property
    def topic_posts(self) -> bool:
        """True if events that are sent to it go into a topic, which must have JSON records."""
        topic = None if self.source is None else topic_at(self.source.address)
        return topic is not None and topic.format == "json"


def streams_of(description: Description | None, store: Path) -> dict[str, ServedStream]:
    """Returns all streams of an application by name, the sources first."""
    streams: dict[str, ServedStream] = {}
    if description is not None:
        for source in description.sources:
            log = source.log
            if log is None and source.name in description.outputs:
                log = log_of(store, source.name)
            elif log is not None and not log.is_absolute():
                log = store / log  # the mirror of a shared store's log
            streams[source.name] = ServedStream(source.name, "source", source, log)
        for name in description.outputs:
            streams.setdefault(name, ServedStream(name, "output", None, log_of(store, name)))
        for name in description.streams:
            streams.setdefault(name, ServedStream(name, "inner", None, None))
    for name in OWN:
        streams.setdefault(name, ServedStream(name, name, None, log_of(store, name)))
    return streams


class Catalogue:
    """The streams of the store's current application, and their logs."""

    def __init__(self, store: OpenStore) -> None:
        self._store = store
        self._description: Description | None = None
        self._streams = streams_of(None, store.path)
        self._logs: dict[Path, Numbered] = {}
        self.topics = Topics(store.path)
        self.retried = RetriedNumbers(log_of(store.path, RETRIED))

    def streams(self) -> dict[str, ServedStream]:
        description = self._store.description()
        if description is not self._description:
            self._description = description
            self._streams = streams_of(description, self._store.path)
        return self._streams

    def failed(self) -> dict[str, ServedStream]:
        """Returns the streams of dead letters of all actions, past ones too, by log name."""
        path = self._store.path
        names = {f"{action}{FAILED}": failed_log(path, action) for action in known(path)}
        return {name: ServedStream(name, "failed", None, log) for name, log in names.items()}

    def stream(self, name: str) -> ServedStream:
        """Returns the stream of that name; raises Refusal if there is none."""
        streams = self.streams()
        stream = streams.get(name)
        if stream is None and name.endswith(FAILED):
            stream = self.failed().get(name)
        if stream is None:
            raise Refusal(404, f"there is no stream {name!r}; {did_you_mean(name, streams)}")
        return stream

    def source(self, name: str) -> tuple[SourceDescription, Path | None]:
        """Returns a source that accepts events, and its log; None if they go to a topic.

        Raises Refusal if events cannot be sent to it.
        """
        stream = self.stream(name)
        if stream.source is None:
            sources = [other.name for other in self.streams().values() if other.posts]
            raise Refusal(
                404,
                f"stream {name!r} is not a source, and only sources take events; "
                f"{_there_are(sources)}",
            )
        if not stream.posts:
            raise Refusal(
                409,
                f"source {name!r} reads {stream.source.address}, and only one that reads a log, or "
                "a topic of JSON, takes events; run the application with "
                f"--source {name}=log",
            )
        return stream.source, stream.log if stream.log_posts else None

    def source_log(self, name: str) -> Path:
        """Returns the log of a source that accepts events; raises Refusal if it has none."""
        source, log = self.source(name)
        if log is None:
            raise Refusal(
                409,
                f"source {name!r} reads {source.address}, and records that are sent here must go "
                f"into an event log; run the application with --source {name}=log",
            )
        return log

    def log(self, path: Path) -> Numbered:
        """Returns a log, up to date. It is kept open and shared by all readers."""
        log = self._logs.get(path)
        if log is None:
            log = self._logs[path] = Numbered(path)
        log.reload()
        return log

    def log_of(self, name: str) -> Numbered:
        """Returns the log of a stream; raises Refusal if there is no such stream, or no log."""
        stream = self.stream(name)
        if stream.log is None:
            where = f"reads {stream.source.address}" if stream.source else "is kept nowhere"
            logged = [other.name for other in self.streams().values() if other.log is not None]
            raise Refusal(
                409,
                f"stream {name!r} {where}, and only what is in a log can be read here; "
                f"{_there_are(logged)}",
            )
        return self.log(stream.log)

    def backlogs(self, progress: Progress) -> dict[str, Backlog]:
        """Returns the backlog of each source that reads a log or a topic, by its name.

        A log that cannot be read is left out.
        """
        backlogs = {}
        for stream in self.streams().values():
            known = progress.sources.get(stream.name, SourceProgress())
            if stream.source is not None and (lag := self.topics.backlog(stream.source, known)):
                backlogs[stream.name] = lag
            elif stream.log_posts and (log := stream.log) is not None:
                try:
                    backlogs[stream.name] = self.log(log).backlog(known.position or NOWHERE)
                except (LogError, OSError):
                    pass  # a request that reads the log gets the error
        return backlogs

    def letters_left(self, progress: Progress) -> LettersLeft:
        """Counts the letters that are in their logs and were not retried, as of the last update of
        `retried`; all that were ever counted if a log cannot be read."""
        return LettersLeft(
            self._left("deadletters", progress.dead_letters), self._left("late", progress.late)
        )

    def _left(self, stream: str, written: int) -> int:
        try:
            log = self.log(log_of(self._store.path, stream))
        except (LogError, OSError):
            return written
        return log.end - log.start - len(self.retried.among(stream, log.start, log.end))

    async def close(self) -> None:
        await self.topics.close()
        for log in self._logs.values():
            log.close()
        self._logs.clear()


def _there_are(names: Iterable[str]) -> str:
    return f"there are: {', '.join(names) or 'none'}"
