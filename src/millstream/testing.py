"""Test an application without Spark, with a clock that the test controls.

    run = millstream.testing.run(app, [Event("checkins", 1, "ann", {"venue": "Walmart"})])
    assert run.slate("count", "Walmart").count == 1

`run` uses the reference interpreter: its results define the meaning of the application. Lookups in
other systems are replaced by dicts: `run(app, events, lookups={"people": {"ann": {...}}})`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import Any, NamedTuple

from millstream.codec import decode_value, encode_slate, encode_value, slate_codec
from millstream.errors import CodecError, DefinitionError, InputError
from millstream.model.algebra import Algebra
from millstream.model.app import AppDefinition
from millstream.model.duration import Duration, instant, microseconds
from millstream.model.event import Event
from millstream.model.rules import DeadLetter
from millstream.model.slate import Table
from millstream.model.source import Source
from millstream.model.text_form import TextRecord, text_records
from millstream.model.time_jumps import jumping
from millstream.model.workflow import Workflow
from millstream.nearest import did_you_mean
from millstream.reference import Reference, ReferenceSlate
from millstream.reference_changes import ReferenceChanges
from millstream.reference_final import end_event_time
from millstream.slate_versions import migrated_entries, read_slate

Given = Iterable[Event | tuple[str, int, str, Any]] | Mapping[str, Iterable[Any]]
"""Events, or records by source: the source's key and ts then turn them into events."""


class Change(NamedTuple):
    """A change of a slate, or of an entry of a table."""

    key: str
    entry: str
    """The name of a table's entry; otherwise empty."""
    slate: Any
    """The slate or entry; None if it is gone. (The value of an entry may be None too.)"""
    ts: int
    batch: int


class Run:
    """An application running in memory. Feed it, move its clock, read it."""

    def __init__(
        self,
        app: AppDefinition,
        clock: int | datetime = 0,
        lookups: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._app = app
        self._workflow = app.workflow()
        self._reference = Reference(self._workflow, instant(clock))
        self._rows = _lookup_rows(self._workflow, lookups or {})
        self._changes = {
            changes.update: ReferenceChanges(self._reference, changes.update)
            for changes in self._workflow.changes
        }
        self._changed: dict[str, list[Change]] = {update: [] for update in self._changes}

    def feed(self, given: Given) -> Run:
        """Process more events; every event-time timer up to the last event fires."""
        events = self._given(given)
        with self._looking_up():
            self._reference.feed(events)
            self._reference.drain()
        return self._end_batch()

    def feed_late(self, given: Given) -> Run:
        """Process events of sources that come too late, in event-time order: their functions do not
        get them, and the windows of jobs count them as late.

        They are late for the time that the run has reached, whatever their own.
        """
        events = self._given(given)
        if self._workflow.order != "event-time":
            raise DefinitionError(
                f"app {self._app.name!r}: order must be 'event-time' for events to be late; "
                f"got {self._workflow.order!r}"
            )
        reached = self._reference.highest or 0
        for event in events:
            self._reference.set_aside(event, max(reached, event.ts))
        with self._looking_up():
            self._reference.drain()
        return self._end_batch()

    def feed_text(self, source: str, text: str | bytes) -> Run:
        """Process the lines of a text as the source would read them from a file.

        A record that cannot be read becomes a dead letter with its line.
        """
        declared = self._source(source)
        data = text.encode(declared.text.line_encoding) if isinstance(text, str) else text
        extract = replace(declared, ahead=None).extractor()
        accepted: list[tuple[Event, TextRecord]] = []
        refused: list[tuple[TextRecord, str]] = []
        for record in text_records(data, declared.text):
            try:
                if record.error is not None:
                    raise record.error
                ts, key = extract(record.record, self._reference.clock)
                accepted.append((Event(source, ts, key, record.record), record))
            except InputError as error:
                refused.append((record, str(error)))
        if declared.jump is not None:
            for index in reversed(jumping([event.ts for event, _ in accepted], declared.jump)):
                refused.append((accepted.pop(index)[1], f"source {source!r}: ts jumps (jump=)"))
        for record, reason in sorted(refused, key=lambda pair: pair[0].line):
            shown = record.text.decode(declared.text.line_encoding, "replace")
            self._reference.dead_letters.append(
                DeadLetter(None, source, self.clock, "", shown, reason, line=record.line)
            )
        return self.feed(event for event, _ in accepted)

    def tick(self, to: int | datetime | None = None, *, by: Duration | None = None) -> Run:
        """Move the wall clock to an instant or by a duration, and fire the due wall timers."""
        if by is not None:
            target = self._reference.clock + microseconds(by, "tick(by=)")
        elif to is not None:
            target = instant(to)
        else:
            raise TypeError("tick() takes an instant, or by= a duration")
        with self._looking_up():
            self._reference.tick(target)
        return self._end_batch()

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
        with self._looking_up():
            end_event_time(self._reference)
        return self._end_batch()

    @property
    def clock(self) -> int:
        return self._reference.clock

    def slate(self, update: str, key: str) -> Any:
        """Return the slate of a key: a dict, the dataclass, or a table's entries as a dict; None if
        there is none."""
        kind = self._workflow.update(update).slate
        slate = self._reference.slates.get((update, key))
        if slate is None:
            return None
        if kind is Table:
            entries = slate.entries
            if slate.version != (declared := self._workflow.update(update)).version:
                entries = migrated_entries(declared, slate.version, entries)
            return {e: decode_value(entries[e]) for e in sorted(entries)}
        return read_slate(self._workflow.update(update), slate.version, slate.data)

    def give_slate(
        self, update: str, key: str, stored: Mapping[str, Any], *, version: int = 1, ts: int = 0
    ) -> Run:
        """Store a slate as an earlier version of the application would have, to test migrations. It
        has the form in which `slates get` shows it.

        >>> import millstream as ms
        >>> app = ms.App("visits")
        >>> app.source("views", key="user")
        >>> @app.update("views", version=2)
        ... def count(event, slate):
        ...     slate["views"] += 1
        >>> @count.migrate(1, 2)
        ... def rename(slate):
        ...     slate["views"] = slate.pop("n")
        >>> visits = run(app).give_slate("count", "ann", {"n": 3})
        >>> visits.feed([("views", 1, "ann", {})]).slate("count", "ann")
        {'views': 4}
        """
        kind, slate = self._workflow.update(update).slate, ReferenceSlate(ts, version=version)
        if kind is Table:
            slate.entries = {entry: encode_value(value) for entry, value in stored.items()}
        else:
            slate.data = encode_slate(stored)
        self._reference.slates[update, key] = slate
        return self

    def retry(self, letter: DeadLetter | None = None) -> Run:
        """Pass a dead letter, or all of them, to the function that failed again."""
        letters = self.dead_letters if letter is None else [letter]
        for dead_letter in letters:
            self._reference.dead_letters.remove(dead_letter)
            self._reference.give_again(dead_letter)
        self._reference.drain()
        return self

    def slates(self, update: str) -> dict[str, Any]:
        """Return every slate of an update, by key, in key order."""
        self._workflow.update(update)
        keys = sorted(key for name, key in self._reference.slates if name == update)
        return {key: self.slate(update, key) for key in keys}

    def stream(self, name: str) -> list[Event]:
        """Return all events of a stream so far, in content order."""
        if name not in self._reference.streams:
            hint = did_you_mean(name, self._workflow.streams)
            raise DefinitionError(f"app {self._app.name!r} has no stream {name!r}; {hint}")
        events = self._reference.streams[name]
        return sorted(events, key=lambda e: (e.ts, encode_value(e.value), e.key))

    def changes(self, update: str) -> list[Change]:
        """Return the changes of an update's slates, as `app.changes` publishes them. Each call of
        `feed`, `tick` or `final` counts as a batch.

        >>> import millstream as ms
        >>> app = ms.App("visits")
        >>> app.source("views", key="user")
        >>> app.aggregate("views", algebra=ms.algebra.count(), name="count")
        >>> app.changes("count")
        >>> [change.slate for change in run(app, {"views": [{"user": "ann"}]}).changes("count")]
        [{'count': 1}]
        """
        if update not in self._changed:
            hint = did_you_mean(update, list(self._changed))
            raise DefinitionError(
                f"app {self._app.name!r} does not publish changes of {update!r}; declare it with "
                f"app.changes({update!r}), or {hint}"
            )
        return list(self._changed[update])

    @contextmanager
    def _looking_up(self) -> Iterator[None]:
        """Let the maps look up this run's own rows."""
        for lookup in self._workflow.lookups:
            lookup.given(self._rows.get(lookup.name))
        try:
            yield
        finally:
            for lookup in self._workflow.lookups:
                lookup.given(None)

    def _end_batch(self) -> Run:
        for update, changes in self._changes.items():
            kind = self._workflow.update(update).slate
            decode = decode_value if kind is Table else slate_codec(kind).decode
            self._changed[update] += [
                Change(key, entry, slate and decode(slate), ts, batch)
                for key, entry, slate, ts, batch in changes.take()
            ]
        return self

    @property
    def dead_letters(self) -> list[DeadLetter]:
        return list(self._reference.dead_letters)

    def _source(self, name: str) -> Source:
        for source in self._workflow.sources:
            if source.name == name:
                return source
        hint = did_you_mean(name, [source.name for source in self._workflow.sources])
        raise DefinitionError(f"{name!r} is not a source of app {self._app.name!r}; {hint}")

    def _given(self, given: Given) -> list[Event]:
        if isinstance(given, Mapping):
            return [event for name in given for event in self._events(name, given[name])]
        events = [Event(*fields) for fields in given]
        for event in events:
            self._source(event.stream)
        return events

    def _events(self, name: str, records: Iterable[Any]) -> Iterable[Event]:
        # The test controls the clock, so its records may be ahead of it.
        extract = replace(self._source(name), ahead=None).extractor()
        for record in records:
            ts, key = extract(record, self._reference.clock)
            yield Event(name, ts, key, record)


def run(
    app: AppDefinition,
    events: Given = (),
    *,
    clock: int | datetime = 0,
    final: bool = False,
    lookups: Mapping[str, Mapping[str, Any]] | None = None,
) -> Run:
    """Run an application in memory over events, or over records by source.

    With `final`, event time is ended after them, as `--final` does. `lookups` has the rows that
    maps look up, by the lookup's name and by key: a test reads no other system.
    """
    result = Run(app, clock, lookups).feed(events)
    return result.final() if final else result


def _lookup_rows(
    workflow: Workflow, given: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return the rows of each lookup; DefinitionError if a lookup is missing or unknown."""
    names = [lookup.name for lookup in workflow.lookups]
    for name in given:
        if name not in names:
            raise DefinitionError(
                f"app {workflow.name!r} has no lookup {name!r}; {did_you_mean(name, names)}"
            )
    for lookup in workflow.lookups:
        if lookup.name not in given and lookup.is_elsewhere:
            raise DefinitionError(
                f"lookup {lookup.name!r} reads another system, which a test must not; give its "
                f"rows, as in run(app, events, lookups={{{lookup.name!r}: {{'key': ...}}}})"
            )
    return dict(given)


def check_algebra(algebra: Algebra, events: Iterable[Event]) -> None:
    """Test an algebra's laws on the lifted events; AssertionError names a law that fails.

    If the algebra states an error, equality is not tested: only that nothing fails, and that what
    it writes can be read.
    """
    samples = list(events)
    name = f"algebra {algebra.name!r}"

    def fresh() -> list[Any]:  # merge may change its first argument
        return [algebra.zero(), *map(algebra.lift, samples)]

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

    def same(law: str, left: Any, right: Any) -> None:
        first, second = shown(left), shown(right)
        if algebra.error is None:
            assert first == second, (
                f"{name}: {law} must hold; got {first.decode()} and {second.decode()}"
            )

    def merged(partials: Iterable[Any]) -> Any:
        return reduce(merge, partials, algebra.zero())

    count = range(len(samples) + 1)
    for a in count:
        same("merge(zero, a) == a", merge(algebra.zero(), fresh()[a]), fresh()[a])
        same("merge(a, zero) == a", merge(fresh()[a], algebra.zero()), fresh()[a])
        again = algebra.read(decode_value(shown(fresh()[a])))
        same("read(write(a)) == a", merge(again, fresh()[0]), fresh()[a])
        for b in count:
            forward, backward = merge(fresh()[a], fresh()[b]), merge(fresh()[b], fresh()[a])
            same("merge(a, b) == merge(b, a)", forward, backward)
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
        values = [event.value for event in samples] if algebra.needs_values else []
        gathered = algebra.gather([event.key for event in samples], values)
        assert {*gathered} == {e.key for e in samples}, f"{name}: gather must give all keys"
        for key, partial in gathered.items():
            lifted = (algebra.lift(event) for event in samples if event.key == key)
            same("gather == merge of lift", partial, merged(lifted))
    records = [event.value for event in samples if type(event.value) is dict]
    numbers: list[Any] = [record.get(algebra.number) for record in records]
    if algebra.totalled and [*map(type, numbers)] == [int] * len(samples):
        same("totalled(n, sum) == merge", algebra.totalled(len(numbers), sum(numbers)), whole)
    if algebra.whole is not None:
        slate = algebra.write(merge(3, -5))
        assert slate == {algebra.whole: -2}, f"{name}: {slate} must hold the sum -2 of ints only"
    if algebra.counted is not None:
        same("counted(n) == merge of n events", algebra.counted(len(samples)), merged(fresh()))
