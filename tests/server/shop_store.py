"""An application's store that a test fills by hand, as a driver would: slates, progress, logs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
from held_lock import hold
from served import MadeStore

import millstream as ms
from millstream.description import describe, write_description
from millstream.log.writer import Entry, LogWriter

MARKUP = "<script>alert(1)</script>"
app = ms.App("shop")
app.source("visits", key="user", ts="time")
app.output("milestones")


@app.map("visits", publishes="store_visits")
def recognise(event: ms.Event) -> None: ...


@app.update("store_visits", publishes="milestones")
def count(event: ms.Event, slate: dict[str, Any]) -> None: ...


class Shop(MadeStore):
    """A store with logs, whose application seems to run: its driver is the test."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, {"count": "dict"}, app="shop")
        address = f"log:{self.home.log_of('visits')}"
        write_description(path, describe(app.workflow(), {"visits": address}))
        hold(path)
        self.slates: dict[str, Any] = {}
        self.visits = 0
        self.letters = 0

    def count(self, slates: dict[str, Any], visits: int = 100) -> int:
        """A batch of visits that leaves these slates."""
        self.visits += visits
        self.slates = {
            key: slate for key, slate in {**self.slates, **slates}.items() if slate is not None
        }
        return self.commit(
            {"count": slates},
            events=self.visits,
            slates={"count": len(self.slates)},
            emitted={"visits": self.visits, "store_visits": self.visits, "milestones": 7},
            processed={"recognise": self.visits, "count": self.visits},
            spent={"recognise": self.visits * 11, "count": self.visits * 23},
            latency=250_000,
            last_seconds=0.2,
            dead_letters=self.letters,
        )

    def append(self, stream: str, *records: object) -> None:
        """Put records into the log of a stream."""
        writer = LogWriter(self.home.log_of(stream))
        writer.append([Entry.of([msgspec.json.encode(record) for record in records])])
        writer.close()

    def milestones(self, *rows: tuple[str, object]) -> None:
        """Events on the output stream, each a key and a value."""
        now = time.time_ns() // 1_000
        self.append("milestones", *({"ts": now, "key": key, "value": of} for key, of in rows))

    def fail(self, key: str, error: str) -> None:
        """An event that `recognise` failed on; the next batch counts it."""
        self.letters += 1
        self.append(
            "deadletters",
            {
                "function": "recognise",
                "stream": "visits",
                "ts": time.time_ns() // 1_000,
                "key": key,
                "value": {"venue": None, "note": MARKUP},
                "error": error,
                "batch": self.progress.batch + 1,
                "timer": None,
                "file": "shop.py",
                "line": 17,
            },
        )


def stocked(path: Path) -> Shop:
    """A shop with a hundred slates, milestones and a dead letter."""
    shop = Shop(path)
    shop.milestones(*((f"store {number}", {"count": 100 * number}) for number in range(30)))
    shop.fail(MARKUP, "AttributeError: 'NoneType' object has no attribute 'lower'")
    slates: dict[str, Any] = {f"store {number:03d}": {"count": number} for number in range(120)}
    slates[MARKUP] = {"note": MARKUP}
    slates[""] = {"count": 0}
    slates["a/b?c=%2F#d"] = {"count": 9_007_199_254_740_993}
    slates["long " * 40] = {"text": "x" * 5_000}
    shop.count(slates)
    shop.count({})
    return shop
