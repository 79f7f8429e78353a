"""Test an application without Spark, with a clock that you hold.

    run = millstream.testing.run(app, [Event("checkins", 1, "ann", {"venue": "Walmart"})])
    assert run.slate("count", "Walmart").count == 1

`run` is the reference interpreter: what it answers is what the application means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import Any

from millstream.codec import decode_value, encode_value, slate_codec
from millstream.errors import CodecError, DefinitionError, InputError
from millstream.model.algebra import Algebra
from millstream.model.app import App
from millstream.model.duration import Duration, instant, microseconds
from millstream.model.event import Event
from millstream.model.rules import DeadLetter
from millstream.model.slate import Table
from millstream.model.source import Source
from millstream.model.text_form import TextRecord, text_records
from millstream.model.time_jumps import jumping
from millstream.nearest import did_you_mean
from millstream.reference import Reference
from millstream.reference_final import end_event_time

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

    def feed_text(self, source: str, text: str | bytes) -> Run:
        """Process the lines of a text as the source would read them from a file.

        What cannot be read is a dead letter, with its line.
        """
        declared = self._source(source)
        data = text.encode(declared.text.line_encoding) if isinstance(text, str) else text
        extract = replace(declared, ahead=None).extractor()
        found: list[tuple[Event, TextRecord]] = []
        refused: list[tuple[TextRecord, str]] = []
        for one in text_records(data, declared.text):
            try:
                if one.error is not None:
                    raise one.error
                ts, key = extract(one.record, self._reference.clock)
                found.append((Event(source, ts, key, one.record), one))
            except InputError as error:
                refused.append((one, str(error)))
        if declared.jump is not None:
            for index in reversed(jumping([event.ts for event, _ in found], declared.jump)):
                refused.append((found.pop(index)[1], f"source {source!r}: ts jumps (jump=)"))
        for one, wrong in sorted(refused, key=lambda pair: pair[0].line):
            shown = one.text.decode(declared.text.line_encoding, "replace")
            self._reference.dead_letters.append(
                DeadLetter(None, source, self.clock, "", shown, wrong, line=one.line)
            )
        return self.feed(event for event, _ in found)

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

    def final(self) -> Run:
        """End event time, as `--final` does: waiting events are processed, waiting timers fire.

        >>> import millstream as ms
        >>> app = ms.App("visits", order="event-time")
        >>> app.source("views", key="user", ts="at", unit="s")
        >>> app.output("visits")
        >>> app.add(ms.elements.Sessionise(gap="30m"), keys="views", publishes="visits")
        >>> visits = run(app, {"views": [{"user": "ann", "at": 0}, {"user": "ann", "at": 60}]})
        >>> visits.stream("visits")
        []
        >>> [event.value["events"] for event in visits.final().stream("visits")]
        [2]
        """
        end_event_time(self._reference)
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

    def _source(self, name: str) -> Source:
        for source in self._workflow.sources:
            if source.name == name:
                return source
        hint = did_you_mean(name, [source.name for source in self._workflow.sources])
        raise DefinitionError(f"{name!r} is not a source of app {self._app.name!r}; {hint}")

    def _events(self, name: str, records: Iterable[Any]) -> Iterable[Event]:
        # Whoever holds the clock may have records that are ahead of it.
        extract = replace(self._source(name), ahead=None).extractor()
        for record in records:
            ts, key = extract(record, self._reference.clock)
            yield Event(name, ts, key, record)


def run(app: App, events: Given = (), *, clock: int | datetime = 0, final: bool = False) -> Run:
    """Run an application in memory over events, or over records by source.

    `final`: end event time after them, as `--final` does.
    """
    result = Run(app, clock).feed(events)
    return result.final() if final else result


def check_algebra(algebra: Algebra, events: Iterable[Event]) -> None:
    """Try an algebra's laws on what the events are lifted to; AssertionError names one that fails.

    An algebra that states an error is only tried for failing, and for writing what can be read.
    """
    given = list(events)
    name = f"algebra {algebra.name!r}"

    def fresh() -> list[Any]:  # merge may change its first argument
        return [algebra.zero(), *map(algebra.lift, given)]

    def merge(a: Any, b: Any) -> Any:
        try:
            return algebra.merge(a, b)
        except Exception as error:
            raise AssertionError(
                f"{name}: merge must not fail on what lift, merge and read give; got {a!r} and "
                f"{b!r}: {type(error).__name__}: {error}"
            ) from error

    def shown(partial: Any) -> bytes:
        try:
            return slate_codec(dict).encode(algebra.write(partial))
        except CodecError as error:
            raise AssertionError(f"{name}: write must give what JSON can carry: {error}") from None

    def same(law: str, one: Any, other: Any) -> None:
        first, second = shown(one), shown(other)
        if algebra.error is None:
            assert first == second, (
                f"{name}: {law} must hold; got {first.decode()} and {second.decode()}"
            )

    def merged(partials: Iterable[Any]) -> Any:
        return reduce(merge, partials, algebra.zero())

    count = range(len(given) + 1)
    for a in count:
        same("merge(zero, a) == a", merge(algebra.zero(), fresh()[a]), fresh()[a])
        same("merge(a, zero) == a", merge(fresh()[a], algebra.zero()), fresh()[a])
        again = algebra.read(decode_value(shown(fresh()[a])))
        same("read(write(a)) == a", merge(again, fresh()[0]), fresh()[a])
        for b in count:
            one, two = merge(fresh()[a], fresh()[b]), merge(fresh()[b], fresh()[a])
            same("merge(a, b) == merge(b, a)", one, two)
            if algebra.unmerge is not None:
                back = algebra.unmerge(merge(fresh()[a], fresh()[b]), fresh()[b])
                same("unmerge(merge(a, b), b) == a", back, fresh()[a])
    for cut in count:
        parts = fresh()
        halves = merge(merged(parts[:cut]), merged(parts[cut:]))
        same("merge(a, merge(b, c)) == merge(merge(a, b), c)", halves, merged(fresh()))
    whole = merged(fresh())
    same("read(write(a)) == a", algebra.read(decode_value(shown(whole))), whole)
    if algebra.gather is not None:
        values = [event.value for event in given] if algebra.needs_values else []
        gathered = algebra.gather([event.key for event in given], values)
        assert set(gathered) == {event.key for event in given}, f"{name}: gather must give all keys"
        for key, partial in gathered.items():
            lifted = (algebra.lift(event) for event in given if event.key == key)
            same("gather == merge of lift", partial, merged(lifted))
    if algebra.counted is not None:
        all_lifted = merged(map(algebra.lift, given))
        same("counted(n) == merge of n events", algebra.counted(len(given)), all_lifted)
