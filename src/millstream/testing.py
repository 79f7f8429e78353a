"""Test an application without Spark, with a clock that you hold.

    run = millstream.testing.run(app, [Event("checkins", 1, "ann", {"venue": "Walmart"})])
    assert run.slate("count", "Walmart").count == 1

`run` is the reference interpreter: what it answers is what the application means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from millstream.codec import decode_value, encode_value, slate_codec
from millstream.errors import DefinitionError
from millstream.model.app import App
from millstream.model.duration import Duration, instant, microseconds
from millstream.model.event import Event
from millstream.model.rules import DeadLetter
from millstream.model.slate import Table
from millstream.nearest import did_you_mean
from millstream.reference import Reference

Given = Iterable[Event | tuple[str, int, str, Any]] | Mapping[str, Iterable[Any]]
"""Events, or records by source: each source's own key and ts then make the events."""


class Run:
    """An application running in memory. Feed it, move its clock, read it."""

    def __init__(self, app: App, clock: int | datetime = 0) -> None:
        self._app = app
        self._workflow = app.workflow()
        self._reference = Reference(self._workflow, instant(clock))

    def feed(self, given: Given) -> Run:
        """Process more events; every event-time timer up to the last event fires."""
        if isinstance(given, Mapping):
            events = [event for name in given for event in self._events(name, given[name])]
        else:
            events = [Event(*one) for one in given]
        for event in events:
            self._source(event.stream)
        self._reference.feed(events)
        self._reference.drain()
        return self

    def tick(self, to: int | datetime | None = None, *, by: Duration | None = None) -> Run:
        """Move the wall clock to an instant or by a duration, and fire the wall timers due."""
        if by is not None:
            target = self._reference.clock + microseconds(by, "tick(by=)")
        elif to is not None:
            target = instant(to)
        else:
            raise TypeError("tick() takes an instant, or by= a duration")
        self._reference.tick(target)
        return self

    @property
    def clock(self) -> int:
        return self._reference.clock

    def slate(self, update: str, key: str) -> Any:
        """The slate of a key: a dict, the dataclass, or a table's entries as a dict; else None."""
        kind = self._workflow.update(update).slate
        slate = self._reference.slates.get((update, key))
        if slate is None:
            return None
        if kind is Table:
            return {e: decode_value(slate.entries[e]) for e in sorted(slate.entries)}
        return slate_codec(kind).decode(slate.data)

    def slates(self, update: str) -> dict[str, Any]:
        """Every slate of an update, by key, in key order."""
        self._workflow.update(update)
        keys = sorted(key for name, key in self._reference.slates if name == update)
        return {key: self.slate(update, key) for key in keys}

    def stream(self, name: str) -> list[Event]:
        """All events of a stream so far, in content order."""
        if name not in self._reference.streams:
            hint = did_you_mean(name, self._workflow.streams)
            raise DefinitionError(f"app {self._app.name!r} has no stream {name!r}; {hint}")
        events = self._reference.streams[name]
        return sorted(events, key=lambda e: (e.ts, encode_value(e.value), e.key))

    @property
    def dead_letters(self) -> list[DeadLetter]:
        return list(self._reference.dead_letters)

    def _source(self, name: str) -> Any:
        for source in self._workflow.sources:
            if source.name == name:
                return source
        hint = did_you_mean(name, [source.name for source in self._workflow.sources])
        raise DefinitionError(f"{name!r} is not a source of app {self._app.name!r}; {hint}")

    def _events(self, name: str, records: Iterable[Any]) -> Iterable[Event]:
        extract = self._source(name).extractor()
        for record in records:
            ts, key = extract(record, self._reference.clock)
            yield Event(name, ts, key, record)


def run(app: App, events: Given = (), *, clock: int | datetime = 0) -> Run:
    """Run an application in memory over events, or over records by source."""
    return Run(app, clock).feed(events)
