"""Runs applications on either runner and reads back what they left.

Events go through files or event logs, as a user's do. A record holds a whole event, with its value
as canonical text, and a map puts it onto the stream that it is for; so any event can be sent
through a source.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from engine.workflow_case import Case

from fault_runs.outcome import Outcome, kept_rows, read_outcome, reference_over
from millstream import App
from millstream.codec import decode_value, encode_value
from millstream.driver.report import RunSummary
from millstream.log.writer import Entry, LogWriter
from millstream.model.event import Event, emit
from millstream.settings.settings import Settings
from millstream.stores.home import log_of

__all__ = ["Outcome", "kept_rows", "read_outcome", "reference_over"]

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where generated cases lie: to wait for a disk would be most of their time."""
Run = Callable[..., RunSummary]
"""`driver.in_process.run`, or `spark.runner.run` in a context that is open."""


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
    outer._changes.extend(inner.changes)
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
        for number, first in enumerate(range(0, len(mine), size), known):
            lines = [json.dumps(record_of(event)) for event in mine[first : first + size]]
            (folder / name / f"{number:06d}.json").write_text("\n".join(lines) + "\n")


def append_records(store: Path, events: Sequence[Event], blocks: int = 1) -> None:
    """Append the events' records to the event log of each source, so many blocks a source."""
    for name in {event.stream for event in events}:
        mine = [json.dumps(record_of(event)).encode() for event in events if event.stream == name]
        size = max(1, -(-len(mine) // blocks))
        writer = LogWriter(log_of(store, f"raw_{name}"))
        for number in range(0, len(mine), size):
            writer.append([Entry.of(mine[number : number + size])])
        writer.close()


def outcome_of(
    run: Run,
    app: App,
    folder: Path,
    *,
    logs: bool = False,
    sources: dict[str, str] | None = None,
    **settings: Any,
) -> Outcome:
    """Runs the application to its end over `folder`/in, the logs of its sources or the addresses
    `sources`, and returns its outcome."""
    workflow = app.checked()
    sources = dict(sources or {})
    for source in workflow.sources if not sources else ():
        path = folder / "in" / source.name.removeprefix("raw_")
        path.mkdir(parents=True, exist_ok=True)
        sources[source.name] = "log" if logs else f"json:{path}"
    sinks = {name: f"json:{folder / 'out' / name}" for name in workflow.outputs}
    given = Settings.of(
        app.name,
        folder / "store",
        sources,
        sinks,
        **{"available_now": True, "final": True, **settings},
    )
    run(app, given)
    return read_outcome(workflow, folder)


def reference_outcome(app: App, events: Iterable[Event], late: Iterable[Event]) -> Outcome:
    """Returns the reference's result for the records of `events` without the late ones."""
    records = [Event(f"raw_{e.stream}", e.ts - 1, "", record_of(e)) for e in events]
    return reference_over(app, records, late)


def assert_same(found: Outcome, expected: Outcome) -> None:
    """Byte for byte the same slates, streams and dead letters."""
    assert found.slates == expected.slates
    assert found.streams == expected.streams
    assert found.letters == expected.letters


def compare(run: Run, case: Case, *, logs: bool, starts: int = 1, **settings: Any) -> None:
    """Run a generated case, from files or from event logs, and compare with the reference.

    Its events come in so many parts, and the application is started for each.
    """
    folder = Path(tempfile.mkdtemp(prefix="millstream-case-", dir=IN_MEMORY))
    given = {"logs": logs, "shards": case.shards, "tasks": case.tasks, **settings}
    try:
        app = wrapped(case.app())
        for start in range(starts):
            count = len(case.events)
            part = case.events[start * count // starts : (start + 1) * count // starts]
            if logs:
                append_records(folder / "store", part, blocks=5)
            else:
                write_records(folder / "in", part, files=3)
            found = outcome_of(run, app, folder, final=start == starts - 1, **given)
        assert_same(found, reference_outcome(app, case.events, found.late))
    finally:
        shutil.rmtree(folder)
