"""Reads an application's outcome, computes the reference's, and compares the two.

The reference keeps expired slates; the engine sweeps them sooner or later. So both are compared
without the slates that have expired by the greatest time of any event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fault_runs.published_rows import read_log_rows, read_rows
from millstream import App
from millstream.codec import encode_value
from millstream.model.event import Event
from millstream.model.workflow import Workflow
from millstream.reference import Reference
from millstream.reference_final import end_event_time
from millstream.stores.contract import after_prefix
from millstream.stores.home import Home, log_of
from millstream.stores.layout import slates_of, table_of, unpack_slate
from millstream.stores.progress import decoded

Slates = dict[tuple[str, str], tuple[int, bytes, dict[str, Any], dict[str, bytes]]]
"""By (update, key): last update, data, timers, a table's entries."""
LOG_OF = "the log of "
"""The prefix of an output's name for the content of its own log."""


@dataclass
class Outcome:
    """The outcome of an application: slates, streams, late events and dead letters."""

    slates: Slates
    streams: dict[str, list[Event]]
    late: list[Event]
    letters: list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between an outcome and the reference's. A wrong slate is lost and doubled."""

    lost: int
    doubled: int
    note: str = ""
    """Examples of what is lost or doubled."""


def read_outcome(workflow: Workflow, folder: Path) -> Outcome:
    """Reads the outcome of a run with its store in `folder`/store, and JSON sinks of its outputs
    in `folder`/out/NAME."""
    store = folder / "store"
    streams = {name: _events(name, _rows(folder / "out" / name)) for name in workflow.outputs}
    late = [
        Event(row["stream"], row["ts"], row["key"], row["value"])
        for row in kept_rows(store, "late")
    ]
    letters = sorted(letter_key(row) for row in kept_rows(store, "deadletters"))
    progress = decoded(Home.open(store).read_progress())
    end = progress.highest if progress.ended is None else progress.ended.at
    return Outcome(living(workflow, stored_slates(store), end), streams, late, letters)


def living(workflow: Workflow, slates: Slates, end: int | None) -> Slates:
    """The slates that have not expired by `end`."""
    ttls = {update.name: update.ttl for update in workflow.updates if update.ttl is not None}
    return {
        owner: slate
        for owner, slate in slates.items()
        if end is None or owner[0] not in ttls or end - slate[0] <= ttls[owner[0]]
    }


def kept_rows(store: Path, stream: str) -> list[dict[str, Any]]:
    """The rows of a stream's own log in the store."""
    return list(read_log_rows(log_of(store, stream)))


def add_logs(found: Outcome, store: Path) -> None:
    """Add the content of the outputs' own logs, each as a stream besides its sink's."""
    for name in list(found.streams):
        found.streams[LOG_OF + name] = _events(LOG_OF + name, kept_rows(store, name))


def _rows(directory: Path) -> list[dict[str, Any]]:
    return list(read_rows(str(directory))) if directory.exists() else []


def _events(name: str, rows: Iterable[dict[str, Any]]) -> list[Event]:
    return content_sorted(
        Event(name, row["ts"], row["key"], row.get("value", row.get("bytes"))) for row in rows
    )


def content_sorted(events: Iterable[Event]) -> list[Event]:
    """Sorts events by their content alone."""
    return sorted(events, key=lambda e: (e.ts, encode_value(e.value), e.key))


def letter_key(letter: Any) -> tuple[Any, ...]:
    """The part of a dead letter that is compared: not its batch, nor its error's text."""
    row = letter if isinstance(letter, dict) else {n: getattr(letter, n) for n in letter.__slots__}
    value = row.get("value", row.get("bytes"))
    return (
        row["function"] or "",
        row["stream"],
        row["ts"],
        row["key"],
        encode_value(value),
        row["timer"] or "",
    )


def stored_slates(store: Path) -> Slates:
    """Every slate as of the last committed batch."""
    home = Home.open(store)
    shards = home.store()
    found: Slates = {}
    for number in range(home.facts.shards):
        with shards.shard(number).at(home.committed()) as view:
            for update, kind in home.facts.updates.items():
                start = slates_of(home.facts.stored(update))
                for row, packed in view.scan(start, after_prefix(start)):
                    key = row[len(start) :].decode()
                    last, data, timers, _ = unpack_slate(packed)
                    entries = {}
                    if kind == "table":
                        table = table_of(update, key)
                        entries = {
                            entry[len(table) :].decode(): value
                            for entry, value in view.scan(table, after_prefix(table))
                        }
                    found[update, key] = (last, data, timers, entries)
    shards.close()
    return found


def reference_over(
    app: App, events: Iterable[Event], late: Iterable[Event], *, final: bool = True
) -> Outcome:
    """The reference's outcome over `events` without the late ones; to the end of event time, if
    the last run was `final`."""
    workflow, kept, gone = app.checked(), list(events), list(late)
    for event in gone:
        kept.remove(event)
    reference = Reference(workflow)
    reference.feed(kept)
    reference.drain()
    if final:
        end_event_time(reference)
    slates: Slates = {
        owner: (slate.last, slate.data, slate.timers, slate.entries)
        for owner, slate in reference.slates.items()
    }
    streams = {name: content_sorted(reference.streams[name]) for name in workflow.outputs}
    letters = sorted(letter_key(letter) for letter in reference.dead_letters)
    end = reference.highest if reference.ended is None else reference.ended
    return Outcome(living(workflow, slates, end), streams, gone, letters)


def compared(app: App, events: Iterable[Event], found: Outcome) -> Difference:
    """The difference between an outcome and the reference over `events` without the late ones.

    A late event that was never sent, or is late more often than it was sent, is doubled.
    """
    given = list(events)
    known = Counter(map(_as_row, given))
    late = Counter(map(_as_row, found.late))
    invented = late - known
    spare = Counter(invented)
    kept_late = []
    for event in found.late:
        if spare[_as_row(event)]:
            spare[_as_row(event)] -= 1
        else:
            kept_late.append(event)
    expected = reference_over(app, given, kept_late)
    for name in found.streams:
        if name.startswith(LOG_OF):
            events_there = expected.streams[name.removeprefix(LOG_OF)]
            expected.streams[name] = [event._replace(stream=name) for event in events_there]
    return difference(found, expected, invented)


def difference(
    found: Outcome, expected: Outcome, invented: Counter[tuple[Any, ...]] | None = None
) -> Difference:
    """Counts what only `expected` has (lost), and what only `found` has (doubled)."""
    have, must = _counted(found), _counted(expected)
    lost, doubled = must - have, have - must
    doubled.update(invented or {})
    some = [f"lost {thing}" for thing in list(lost)[:2]]
    some += [f"doubled {thing}" for thing in list(doubled)[:2]]
    return Difference(lost.total(), doubled.total(), "; ".join(some))


def _counted(outcome: Outcome) -> Counter[tuple[Any, ...]]:
    """Counts everything in an outcome."""
    things: Counter[tuple[Any, ...]] = Counter()
    for owner, slate in outcome.slates.items():
        things["slate", *owner, repr(_plain(slate))] += 1
    for events in outcome.streams.values():
        things.update(("row", *_as_row(event)) for event in events)
    things.update(("dead letter", *letter) for letter in outcome.letters)
    return things


def _plain(slate: tuple[int, bytes, dict[str, Any], dict[str, bytes]]) -> tuple[Any, ...]:
    last, data, timers, entries = slate
    return last, bytes(data), sorted(timers.items()), sorted(entries.items())


def _as_row(event: Event) -> tuple[Any, ...]:
    return event.stream, event.ts, event.key, encode_value(event.value)
