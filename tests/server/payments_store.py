"""The store of an application with something of everything that can go wrong: a sink that fails, an
action that is tried again, dead letters of two errors, late events. A test fills it by hand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
from held_lock import hold
from progress_counts import set_fields
from served import MadeStore

import millstream as ms
from millstream.actions.record import PendingRetry, Position, make_folder, write_position
from millstream.description import describe, write_description
from millstream.log.writer import Entry, LogWriter
from millstream.stores.trouble import Trouble, write_troubles

app = ms.App("payments", order="event-time")
app.source("payments", key="card", ts="time", lateness="2s")
app.output("flagged")
app.action("notify")


@app.map("payments", publishes="scored")
def score(event: ms.Event) -> None: ...


@app.update("scored", publishes=["flagged", "notify"])
def by_card(event: ms.Event, slate: dict[str, Any]) -> None: ...


ADDRESSES = {"flagged": "sqlite:flagged.db", "notify": "webhook:http://hooks.test"}
SECONDS = 1_000_000


class Payments(MadeStore):
    """A store with logs, whose application seems to run: its driver is the test."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, {"by_card": "dict"}, app="payments")
        address = f"log:{self.home.log_of('payments')}"
        write_description(path, describe(app.workflow(), {"payments": address}, ADDRESSES))
        hold(path)
        self.letters: dict[str, int] = {}
        self.given_up = 0
        now = time.time_ns() // 1_000
        self.batch(horizon=now - 2 * SECONDS, clock=now)

    def batch(self, **fields: Any) -> int:
        """Commit a batch."""
        set_fields(self.progress, failed=self.letters)
        fields = {"dead_letters": sum(self.letters.values()), **fields}
        return self.commit({"by_card": {"card 1": {"count": 1}}}, **fields)

    def append(self, stream: str, *records: object) -> None:
        """Put records into the log of a stream."""
        writer = LogWriter(self.home.log_of(stream))
        writer.append([Entry.of([msgspec.json.encode(record) for record in records])])
        writer.close()

    def fail(self, *keys: str, error: str, function: str = "score") -> int:
        """Events that a function failed on, in a batch."""
        self.letters[function] = self.letters.get(function, 0) + len(keys)
        now = time.time_ns() // 1_000
        batch = self.progress.batch + 1
        about = {"function": function, "stream": "payments", "timer": None, "batch": batch}
        place = {"file": "payments.py", "line": 17}
        rows = [
            {**about, **place, "ts": now, "key": key, "value": {"amount": None}, "error": error}
            for key in keys
        ]
        self.append("deadletters", *rows)
        return self.batch()

    def sink_fails(self, error: str | None) -> None:
        """The sink of `flagged` fails, or works again."""
        troubles = [] if error is None else [Trouble("sink 'flagged'", 1, error)]
        write_troubles(self.path, troubles)

    def action_fails(self, waiting: int, error: str) -> None:
        """`notify` is tried again, while events wait."""
        self.append("notify", *({"ts": 1, "key": "card 1", "value": n} for n in range(waiting)))
        make_folder(self.path)
        tried = PendingRetry("1", 7, 1, 1, 0.5, 1.0, error)
        position = Position(0, trying=tried, failed=self.given_up, address=ADDRESSES["notify"])
        write_position(self.path, "notify", position)

    def action_gives_up(self, *keys: str, error: str) -> None:
        """Events that `notify` gave up after three tries."""
        now = time.time_ns() // 1_000
        about = {"action": "notify", "record": 0, "error": error, "tries": 3}
        times = {"ts": now, "since": now, "last": now}
        rows = [{**about, **times, "id": key, "key": key, "value": {"risk": 98}} for key in keys]
        self.append("notify.failed", *rows)
        make_folder(self.path)
        self.given_up += len(keys)
        position = Position(0, failed=self.given_up, address=ADDRESSES["notify"])
        write_position(self.path, "notify", position)
