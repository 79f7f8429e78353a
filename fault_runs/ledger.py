"""The application for faults of its input: entries of accounts, each with a number.

`balance` folds an account's amounts so that their order shows, and puts each balance onto the
output `balances`. `once` has a slate for each entry, so that a lost or repeated entry shows by its
number. An entry may make a function fail. The order is by event time, so that the result must equal
the reference's, whatever the batches were.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import millstream as ms
from fault_runs.outcome import (
    Difference,
    Outcome,
    content_sorted,
    difference,
    kept_rows,
    letter_key,
    read_outcome,
    reference_over,
)
from millstream.codec import encode_value
from millstream.driver.report import BatchSummary
from millstream.errors import MillstreamError
from millstream.model.event import Event
from millstream.settings.settings import Settings
from millstream.stores.home import Home
from millstream.stores.progress import Progress, decoded

Record = dict[str, Any]
OnReport = Callable[[BatchSummary], None]
FIRST = 1_700_000_000_000_000
"""The time of the first entry."""
STEP = 1_000
"""Microseconds between two entries."""


def ledger(*sources: str, lateness: int = 0) -> ms.App:
    """The application over these sources, each with an allowed lateness in microseconds."""
    app = ms.App("ledger", order="event-time")
    for name in sources:
        app.source(name, key="account", ts="ts", unit="us", lateness=f"{lateness}us")
    app.output("balances")

    @app.map(*sources, publishes=("postings", "ids"))
    def post(event: Any) -> Any:
        yield ms.emit("ids", key=str(event.value["id"]))
        if event.value.get("fails") == "post":
            raise ValueError("this entry cannot be posted")
        yield ms.emit("postings")

    @app.update("postings", publishes="balances")
    def balance(event: Any, slate: Any) -> Any:
        entry = event.value
        slate["sum"] = slate.get("sum", 0) + entry["amount"]
        slate["fold"] = (slate.get("fold", 7) * 31 + entry["id"]) % 1_000_003
        yield ms.emit(value={"id": entry["id"], "sum": slate["sum"], "fold": slate["fold"]})
        if entry.get("fails") == "balance":
            raise ValueError("this entry cannot be booked")

    @app.update("ids")
    def once(event: Any, slate: Any) -> None:
        slate["n"] = slate.get("n", 0) + 1
        slate["amount"] = event.value["amount"]

    return app


def entries(random: Random, count: int, first: int = 0) -> list[Record]:
    """Entries in the order of their times, numbered from `first` on."""
    return [
        {
            "id": number,
            "account": f"a{random.randrange(12)}",
            "ts": FIRST + number * STEP,
            "amount": random.randrange(1, 100),
        }
        for number in range(first, first + count)
    ]


def events_of(source: str, records: Iterable[Record]) -> list[Event]:
    """The events of a source's records."""
    return [Event(source, record["ts"], record["account"], record) for record in records]


def encoded(records: Iterable[Record]) -> list[bytes]:
    """A line for each record."""
    return [json.dumps(record).encode() for record in records]


def write_files(folder: Path, lines: Sequence[bytes], files: int) -> None:
    """Put the lines into `files` files, whose names sort in that order."""
    folder.mkdir(parents=True, exist_ok=True)
    size = max(1, -(-len(lines) // files))
    for number, start in enumerate(range(0, len(lines), size)):
        path = folder / f"{number:06d}.json"
        path.write_bytes(b"".join(line + b"\n" for line in lines[start : start + size]))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))


def settings_of(folder: Path, sources: dict[str, str], **given: Any) -> Settings:
    """Few shards, small batches, and a file sink beside the output's own log."""
    usual: dict[str, Any] = {
        "sinks": {"balances": f"json:{folder / 'out' / 'balances'}"},
        "shards": 3,
        "tasks": 2,
        "batch_bytes": 6_000,
        "available_now": True,
        "final": True,
    }
    return Settings.of("ledger", folder / "store", sources, **{**usual, **given})


def outcome_of(app: ms.App, folder: Path) -> Outcome:
    """Reads a run's outcome, with the output both in its sink and in its log.

    A line that did not become an event is identified by its file and number, since it has neither
    key nor time.
    """
    store = folder / "store"
    found = read_outcome(app.checked(), folder)
    found.streams["the log of balances"] = content_sorted(
        Event("the log of balances", row["ts"], row["key"], row["value"])
        for row in kept_rows(store, "balances")
    )
    letters = kept_rows(store, "deadletters")
    found.letters = [
        letter_key(row)
        if row["function"]
        else ("", row["stream"], Path(row["file"]).name, row["line"])
        for row in letters
    ]
    return found


def differing(
    app: ms.App, events: Sequence[Event], found: Outcome, refused: Iterable[Any] = ()
) -> Difference:
    """The difference between an outcome and the reference over the events without the late ones.

    `refused` are the lines that are not events: (source, file, line). A late event that was never
    sent, or is late more often than it was sent, is doubled.
    """
    given, late = Counter(map(_row, events)), Counter(map(_row, found.late))
    invented = late - given
    kept, spare = list[Event](), Counter(invented)
    for event in found.late:
        if spare[_row(event)]:
            spare[_row(event)] -= 1
        else:
            kept.append(event)
    must = reference_over(app, events, kept)
    must.streams["the log of balances"] = [
        event._replace(stream="the log of balances") for event in must.streams["balances"]
    ]
    must.letters += [("", *line) for line in refused]
    return difference(found, must, invented)


def progress_of(folder: Path) -> Progress:
    """The progress of the store's last committed batch."""
    return decoded(Home.open(folder / "store").read_progress())


@dataclass(frozen=True, slots=True)
class Starts:
    """The starts that an application needed to finish."""

    stopped: list[str] = field(default_factory=list)
    """The errors that stopped the runs before the last."""
    recovery: list[float] = field(default_factory=list)
    """Seconds from each stop to the first batch of the next run, if it had one."""


def until_done(start: Callable[[OnReport], Any], most: int = 20) -> Starts:
    """Start again until a run finishes; raises the last error after `most` starts."""
    starts, ended = Starts(), 0.0
    while True:
        reported: list[float] = []
        try:
            start(lambda _, at=reported: at.append(time.monotonic()))  # type: ignore[misc]
            return starts
        except MillstreamError as error:
            starts.stopped.append(str(error))
            if len(starts.stopped) > most:
                raise
        finally:
            if ended and reported:
                starts.recovery.append(reported[0] - ended)
            ended = time.monotonic()


def _row(event: Event) -> tuple[Any, ...]:
    return event.stream, event.ts, event.key, encode_value(event.value)
