"""An element publishes to an outside store: a table of SQLite (S4, Figures 3 and 4)."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver_runs.harness import Run

import millstream as ms
from millstream.settings.settings import Settings


@dataclass
class QueryCounter(ms.Element):
    """Figure 3: counts a query's events, and publishes the count now and then."""

    count: int = 0

    def process_event(self, event: ms.Event) -> None:
        self.count += 1

    def output(self) -> Iterator[Any]:
        yield self.publish({"query": self.key, "count": self.count})


class Spell(ms.Element):
    """An element without a memory, of this module too: a map."""

    def process_event(self, event: ms.Event) -> Iterator[Any]:
        yield ms.emit(value={"query": event.value["q"].lower()})


def initial(event: ms.Event) -> str:
    return str(event.value["query"][0])


def test_the_counts_are_in_the_table(run: Run, tmp_path: Path) -> None:
    """Over several batches and a second start the table has each key's last count; two streams
    share the file; classes and key functions of this module reach the workers."""
    app = ms.App("searches", order="event-time")
    app.source("searches", ts="at", unit="s")
    app.add(Spell(), name="spell", keys={"searches": "q"}, publishes="queries")
    app.add(QueryCounter(), keys={"queries": "query"}, every="10m", publish="counts")
    app.add(
        QueryCounter(), name="initials", keys={"queries": initial}, every_events=1, publish="firsts"
    )
    wanted: Counter[str] = Counter()
    (tmp_path / "in").mkdir()
    sinks = dict.fromkeys(("counts", "firsts"), f"sqlite:{tmp_path / 'out' / 'store.db'}")
    number = 0
    for start in range(2):
        for part in range(2):
            lines = []
            for _ in range(300):
                query = f"Q{number % 7}" if number % 3 else "shoes"
                lines.append(json.dumps({"q": query, "at": number}))
                wanted[query.lower()] += 1
                number += 1
            (tmp_path / "in" / f"{start}{part}.json").write_text("\n".join(lines) + "\n")
        given = Settings.of(
            "searches",
            tmp_path / "store",
            {"searches": f"json:{tmp_path / 'in'}"},
            sinks,
            shards=2,
            batch_bytes=10_000,
            available_now=True,
            final=start == 1,  # the slot of the last counts ends
        )
        summary = run(app, given)
        assert summary.dead_letters == 0
    with closing(sqlite3.connect(tmp_path / "out" / "store.db")) as connection:
        counts = dict(connection.execute("SELECT key, value FROM counts").fetchall())
        firsts = dict(connection.execute("SELECT key, value FROM firsts").fetchall())
    assert {key: json.loads(value)["count"] for key, value in counts.items()} == dict(wanted)
    letters: Counter[str] = Counter()
    for query, count in wanted.items():
        letters[query[0]] += count
    assert {key: json.loads(value)["count"] for key, value in firsts.items()} == dict(letters)
