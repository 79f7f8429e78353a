"""A store with feeds: the engine takes records in from the log, batch by batch, as a driver would.

made = FeedStore(tmp_path / "store")
made.append(follow("ann", "bob"), post("bob", "1"))     # into the log, as POST does
made.batch()                                            # a batch that takes all of it
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from engine.in_process import InProcess
from held_lock import hold

import millstream as ms
from millstream.description import describe, write_description
from millstream.feeds.placement import PlacedFeeds
from millstream.log.reader import LogReader
from millstream.log.writer import Entry, LogWriter
from millstream.model.event import Event
from millstream.stores.home import Home

NAME, SOURCE = "feeds", "feeds.events"
SHARDS = 4
T0 = 1_700_000_000_000_000
Record = dict[str, Any]


def follow(consumer: str, producer: str, at: int = 0, kind: str = "follow") -> Record:
    return {"kind": kind, "consumer": consumer, "producer": producer, "at": T0 + at}


def post(producer: str, post_id: str, at: int = 0, value: Any = "hello") -> Record:
    return {"kind": "post", "producer": producer, "id": post_id, "at": T0 + at, "value": value}


def delete(producer: str, post_id: str, at: int = 0) -> Record:
    return {"kind": "delete", "producer": producer, "id": post_id, "at": T0 + at}


class FeedStore:
    """The store of an application with feeds, which seems to run: its driver is the test."""

    def __init__(self, path: Path, *names: str, **options: Any) -> None:
        self._options = ms.feeds.Feeds(**options)
        app = ms.App("social")
        for name in names or (NAME,):
            app.add(self._options, name=name)
        workflow = app.checked()
        kinds = {one.name: one.kind for one in workflow.functions if hasattr(one, "kind")}
        self.path = path
        self.home = Home.make(path, "social", SHARDS, kinds)
        self.log = self.home.log_of(SOURCE)
        logs = {one.name: f"log:{self.home.log_of(one.name)}" for one in workflow.sources}
        write_description(path, describe(workflow, logs))
        hold(path)
        self.engine = InProcess(
            workflow, shards=SHARDS, store=self.home.store(), epoch=self.home.raise_epoch()
        )

    @property
    def placed(self) -> PlacedFeeds:
        """The feeds, if there are only these."""
        return PlacedFeeds(self._options, NAME)

    def append(self, *records: object) -> None:
        """Put records into the log; not while a server has it."""
        writer = LogWriter(self.log)
        writer.append([Entry.of([msgspec.json.encode(record) for record in records])])
        writer.close()

    def batch(self, most_bytes: int | None = None) -> int:
        """Commits a batch that takes in the log, or about a given amount of it."""
        reader = LogReader(self.log)
        sources = self.engine.progress.sources
        begin = (sources[SOURCE].position if SOURCE in sources else None) or reader.start
        end = reader.take(begin, most_bytes)
        records = [
            msgspec.json.decode(line)
            for block in reader.blocks(begin[0], end[0])
            for line in block.lines
        ]
        reader.close()
        return self._commit(_events(records), end)

    def settle(self) -> None:
        """Batches until nothing is on its way."""
        while self.engine.progress.pending.feedback:
            self._commit([], None)

    def _commit(self, events: list[Event], end: list[int] | None) -> int:
        self.engine.batch(events)
        assert not self.engine.letters, self.engine.letters
        progress = self.engine.progress
        if end is not None and SOURCE in progress.sources:
            progress.sources[SOURCE].position = end
        progress.written = time.time_ns() // 1_000
        self.home.write_progress(progress)
        return progress.batch


def _events(records: Iterable[Record]) -> list[Event]:
    return [Event(SOURCE, one["at"], one["kind"], one) for one in records]
