"""Feeds in a real store, whose batches a test runs itself: without Spark, with or without a server.

stored = StoredFeeds(tmp_path / "store")
stored.batch(records)           # into the log, and taken in
with served(stored.path) as url:
    ...                         # the server appends to the same log
    stored.take()               # the next batch has what it has appended
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from engine.in_process import InProcess

import millstream as ms
from millstream.description import describe, write_description
from millstream.feeds.placing import PlacedFeeds
from millstream.log.reader import NOWHERE, LogReader
from millstream.log.writer import Entry, LogWriter
from millstream.model.event import Event
from millstream.stores.home import Home
from millstream.stores.progress import SourceProgress

NAME = "feeds"
SHARDS = 2
Record = dict[str, Any]


class StoredFeeds:
    """An application with feeds in a store."""

    def __init__(self, path: Path, options: ms.feeds.Feeds | None = None) -> None:
        self.path = path
        self.placed = PlacedFeeds(options or ms.feeds.Feeds(), NAME)
        app = ms.App("social")
        app.add(self.placed.options, name=NAME)
        workflow = app.checked()
        self._home = Home.make(path, app.name, SHARDS, workflow.slate_kinds)
        self._home.number_streams(workflow.streams)
        self._home.know_functions([f.name for layer in workflow.layers for f in layer])
        self.engine = InProcess(workflow, shards=SHARDS, store=self._home.store())
        self.engine.epoch = self._home.raise_epoch()
        self.log = self._home.log_of(self.placed.events)
        self.log.mkdir(parents=True, exist_ok=True)
        write_description(path, describe(workflow, {self.placed.events: f"log:{self.log}"}))

    def append(self, records: Iterable[Record]) -> None:
        """Into the log, as a server does; it has no server then."""
        writer = LogWriter(self.log)
        writer.append([Entry([msgspec.json.encode(one)]) for one in records])
        writer.close()

    def take(self) -> None:
        """A batch that takes in all that is in the log."""
        source = self.engine.progress.sources.get(self.placed.events)
        taken = NOWHERE if source is None or source.position is None else source.position
        log = LogReader(self.log)
        lines = [line for block in log.blocks(taken[0], log.end[0]) for line in block.lines]
        records = [msgspec.json.decode(line) for line in lines]
        stream = self.placed.events
        self.engine.batch([Event(stream, one["at"], one["kind"], one) for one in records])
        assert not self.engine.letters, self.engine.letters
        known = self.engine.progress.sources.setdefault(stream, SourceProgress())
        known.position = list(log.end)
        log.close()
        self._home.write_progress(self.engine.progress)

    def batch(self, records: Iterable[Record]) -> None:
        self.append(records)
        self.take()

    def settle(self) -> None:
        """Batches until nothing is on its way."""
        while self.engine.progress.feedback:
            self.take()
