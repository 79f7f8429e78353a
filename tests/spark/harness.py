"""Runs applications on a real Spark session and reads back what they left.

Events go through files, as a user's do. A record holds a whole event, with its value as canonical
text, and a map puts it onto the stream that it is for; so any event can be sent through a source.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.codec import decode_value, encode_value
from millstream.log.writer import Entry, LogWriter
from millstream.model.app import App
from millstream.model.event import Event, emit
from millstream.model.workflow import Workflow
from millstream.reference import Reference
from millstream.settings import Settings
from millstream.sinks.files import read_rows
from millstream.sinks.log_sink import read_log_rows
from millstream.spark.query import run
from millstream.stores.contract import after_prefix
from millstream.stores.home import Home, log_of
from millstream.stores.layout import slates_of, table_of, unpack_slate

Slates = dict[tuple[str, str], tuple[int, bytes, dict[str, Any], dict[str, bytes]]]
"""By (update, key): last update, data, timers, a table's entries."""


def wrapped(app: App) -> App:
    """The application with its sources fed from records that hold whole events."""
    inner = app.checked()
    outer = App(app.name, order=app.order, on_error=app.on_error)
    for source in inner.sources:
        outer.source(
            f"raw_{source.name}",
            ts="ts",
            unit="us",
            lateness=f"{source.lateness}us",
            idle=f"{source.idle}us",
        )
        outer.map(f"raw_{source.name}", publishes=source.name, name=f"unwrap_{source.name}")(
            _unwrap
        )
    outer._functions.extend(inner.functions)
    outer._declared.update({stream.name: stream for stream in inner.declared})
    for source in inner.sources:
        outer.output(source.name)
    return outer


def _unwrap(event: Event) -> Iterable[Any]:
    record = event.value
    value = decode_value(base64.b64decode(record["value"]))
    yield emit(key=record["key"], value=value, ts=record["ts"] + 1)


def record_of(event: Event) -> dict[str, Any]:
    """The record that `_unwrap` makes this event from."""
    value = base64.b64encode(encode_value(event.value)).decode()
    return {"ts": event.ts - 1, "key": event.key, "value": value}


def write_records(folder: Path, events: Sequence[Event], files: int = 1) -> None:
    """Write the events' records as JSON lines, a folder for each source."""
    for name in {event.stream for event in events}:
        mine = [event for event in events if event.stream == name]
        (folder / name).mkdir(parents=True, exist_ok=True)
        size = max(1, -(-len(mine) // files))
        known = len(list((folder / name).iterdir()))
        for number in range(0, len(mine), size):
            lines = [json.dumps(record_of(event)) for event in mine[number : number + size]]
            path = folder / name / f"{known + number:06d}.json"
            path.write_text("\n".join(lines) + "\n")


def append_records(store: Path, events: Sequence[Event], blocks: int = 1) -> None:
    """Append the events' records to the event log of each source, so many blocks a source."""
    for name in {event.stream for event in events}:
        mine = [json.dumps(record_of(event)).encode() for event in events if event.stream == name]
        size = max(1, -(-len(mine) // blocks))
        writer = LogWriter(log_of(store, f"raw_{name}"))
        for number in range(0, len(mine), size):
            writer.append([Entry(mine[number : number + size])])
        writer.close()


@dataclass
class Outcome:
    """What an application left: slates, streams, late events and dead letters."""

    slates: Slates
    streams: dict[str, list[Event]]
    late: list[Event]
    letters: list[tuple[Any, ...]]


def run_on_spark(
    spark: Any, app: App, folder: Path, *, logs: bool = False, **settings: Any
) -> Outcome:
    """Run the application to its end over what lies in `folder`/in, or in the logs of its sources,
    and read what it left."""
    workflow = app.checked()
    sources = {}
    for source in workflow.sources:
        path = folder / "in" / source.name.removeprefix("raw_")
        path.mkdir(parents=True, exist_ok=True)
        sources[source.name] = "log" if logs else f"json:{path}"
    sinks = {name: f"json:{folder / 'out' / name}" for name in workflow.outputs}
    given = Settings(
        app.name,
        folder / "store",
        sources,
        sinks,
        **{"available_now": True, "final": True, **settings},
    )
    run(app, given, spark=spark)
    return read_outcome(workflow, folder)


def read_outcome(workflow: Workflow, folder: Path) -> Outcome:
    streams = {name: _events(name, folder / "out" / name) for name in workflow.outputs}
    late = [
        Event(row["stream"], row["ts"], row["key"], row["value"])
        for row in kept_rows(folder / "store", "late")
    ]
    letters = sorted(letter_key(row) for row in kept_rows(folder / "store", "deadletters"))
    return Outcome(stored_slates(folder / "store"), streams, late, letters)


def kept_rows(store: Path, stream: str) -> list[dict[str, Any]]:
    """The rows of a stream's own log in the store."""
    return list(read_log_rows(log_of(store, stream)))


def _rows(directory: Path) -> list[dict[str, Any]]:
    return list(read_rows(str(directory))) if directory.exists() else []


def _events(name: str, directory: Path) -> list[Event]:
    return content_sorted(
        Event(name, row["ts"], row["key"], row.get("value", row.get("bytes")))
        for row in _rows(directory)
    )


def content_sorted(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda e: (e.ts, encode_value(e.value), e.key))


def letter_key(letter: Any) -> tuple[Any, ...]:
    """What a dead letter is compared by: not its batch, nor the words of its error."""
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
                start = slates_of(update)
                for row, packed in view.scan(start, after_prefix(start)):
                    key = row[len(start) :].decode()
                    last, data, timers = unpack_slate(packed)
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


def reference_outcome(app: App, events: Iterable[Event], late: Iterable[Event]) -> Outcome:
    """What the reference makes of the records of `events`, less those that were late."""
    records = [Event(f"raw_{e.stream}", e.ts - 1, "", record_of(e)) for e in events]
    return reference_over(app, records, late)


def reference_over(app: App, events: Iterable[Event], late: Iterable[Event]) -> Outcome:
    """What the reference makes of `events`, less those that were late."""
    workflow, kept = app.checked(), list(events)
    for gone in late:
        kept.remove(gone)
    reference = Reference(workflow)
    reference.feed(kept)
    reference.drain()
    slates: Slates = {
        owner: (slate.last, slate.data, slate.timers, slate.entries)
        for owner, slate in reference.slates.items()
    }
    streams = {name: content_sorted(reference.streams[name]) for name in workflow.outputs}
    letters = sorted(letter_key(letter) for letter in reference.dead_letters)
    return Outcome(slates, streams, list(late), letters)


def assert_same(found: Outcome, expected: Outcome) -> None:
    """Byte for byte the same slates, streams and dead letters."""
    assert found.slates == expected.slates
    assert found.streams == expected.streams
    assert found.letters == expected.letters
