"""The engine as a task on Spark runs it, in this process, over the embedded store.

What is measured is the CPU time of this process, apart for taking posts in (maintenance) and for
reading feeds (queries): the code as users run it, without what Spark costs whatever it does.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import millstream as ms
from bench.feeds.laid import NOW, Laying, Record
from millstream.codec import decode_value
from millstream.driver.batch_plan.next_beat import next_beat
from millstream.engine.horizon import is_due
from millstream.engine.intake import Intake
from millstream.engine.layers import Task, run_whole
from millstream.engine.plan import Plan
from millstream.engine.progress import Report, advanced
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.reads.diversity import DiverseQuery
from millstream.feeds.reads.pending_records import NOTHING, Pending
from millstream.feeds.reads.query import FeedQuery
from millstream.model.slate import slate_kind
from millstream.stores.contract import Store
from millstream.stores.home import SHARDS, Home
from millstream.stores.progress import Progress
from millstream.stores.reader import SlateReader
from millstream.stores.tables import BatchTables

NAME = "feeds"
BATCH = 2_000
"""Records of a batch."""


@dataclass
class Counted:
    """The work since the last call of `taken`."""

    maintenance_s: float = 0.0
    query_s: float = 0.0
    posts: int = 0
    pushes: int = 0
    sides: int = 0
    """Pairs that were told which side they are on."""
    reads: int = 0
    pulls: int = 0
    items: int = 0
    took_s: list[float] = field(default_factory=list)
    """By the clock, each read."""
    looks: list[tuple[int, int, float]] = field(default_factory=list)
    """For each read: the producers pulled from, other causes of length, and seconds."""

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        )


class Driven:
    """An application of feeds over a store at a path. A context manager."""

    def __init__(
        self, path: Path, options: ms.feeds.Feeds, shards: int = SHARDS, *, diverse: bool = False
    ) -> None:
        """`diverse`: feeds are read with per-producer coherency."""
        app = ms.App("social")
        app.add(options, name=NAME)
        self.workflow = app.checked()
        self.placed = PlacedFeeds(options, NAME)
        updates = {one.name: slate_kind(one.slate) for one in self.workflow.updates}
        self._home = Home.make(path, "social", shards, updates)
        self.store: Store = self._home.store()
        self.progress = Progress()
        self.plan = Plan(self.workflow, shards, frozenset({f"{NAME}.push"}))
        self.counted = Counted()
        self.diverse = diverse
        self.on_side: Callable[[str, Record], None] | None = None
        """Called for every pair that is told its side, with the consumer and the message."""
        self.epoch = 1
        self._attempts = 1
        self._reader = SlateReader(path, self._home, lambda: self.progress.batch)

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *exc: object) -> None:
        self._reader.close()
        self.store.close()

    def lay(self, laying: Laying) -> None:
        """Begin with what was laid."""
        laying.write(self.store)
        self.progress = Progress(batch=0, clock=NOW, highest=NOW)
        self.run([])  # the first batch finds a journal of all rows
        self.counted = Counted()

    def run(self, records: Sequence[Record], batch: int = BATCH) -> None:
        """Processes records, in batches, and their consequences."""
        for begin in range(0, max(1, len(records)), batch):
            self.batch(records[begin : begin + batch])
        self.settle()

    def settle(self) -> None:
        """Batches until nothing is under way."""
        while self.is_due:
            self.batch([])

    @property
    def is_due(self) -> bool:
        """True if work is under way."""
        return is_due(self.workflow, self.progress, self.progress.clock, 0, False)

    def batch(self, records: Sequence[Record]) -> None:
        """Runs a batch. Its clock is the time of its last record."""
        clock = max(self.progress.clock + 1, records[-1]["at"] if records else 0)
        began = time.process_time()
        report = self._task(records, clock)
        self.progress = advanced(self.progress, [report], self.progress.batch + 1, clock, {})
        self.counted.maintenance_s += time.process_time() - began
        self.counted.posts += sum(record["kind"] == "post" for record in records)
        self._count(report)

    def cancelled(self, records: Sequence[Record]) -> None:
        """A task of the next batch that commits, and then counts for nothing."""
        self._task(records, max(self.progress.clock + 1, records[-1]["at"] if records else 0))

    def _task(self, records: Sequence[Record], clock: int) -> Report:
        number = self.progress.batch + 1
        beat = next_beat(
            self.workflow,
            self.progress,
            epoch=self.epoch,
            batch=number,
            clock=clock,
            started=0,
            final=False,
            lane="one-task",
        )
        self._attempts += 1
        with Task(self.plan, beat, self.store, range(self.store.shards), self._attempts) as task:
            task.take_feedback()
            (source,) = self.workflow.sources
            intake = Intake(source, task.router, beat.clock, beat.late)
            intake.take(list(records), None, "", lambda line: line)
            run_whole(task)
            return task.finish([intake])

    def _count(self, report: Report) -> None:
        if report.rows.letters:
            raise AssertionError(f"no record must fail; got {report.rows.letters[:3]}")
        for _, key, encoded in report.rows.outputs.get(f"{NAME}.push", []):
            value: Record = decode_value(encoded)
            if value["kind"] == "push":
                self.counted.pushes += 1
                continue
            self.counted.sides += 1
            if self.on_side is not None:
                self.on_side(key, value)

    def read_all(self, consumers: Sequence[str], tries: int = 1) -> None:
        """Reads the first page of each feed. Of several tries the shortest counts, since the
        machine's load only adds time."""
        best = min((self._read_all(consumers) for _ in range(tries)), key=lambda one: one.query_s)
        self.counted = self.counted + best

    def _read_all(self, consumers: Sequence[str]) -> Counted:
        clock, looks = time.perf_counter, list[tuple[float, tuple[int, int, int]]]()
        began = time.process_time()
        for one in consumers:
            start = clock()
            looked = self._reader.read_tables(partial(self._look, one), hold=True)
            looks.append((clock() - start, looked))
        return Counted(
            query_s=time.process_time() - began,
            reads=len(looks),
            pulls=sum(pulled for _, (pulled, _, _) in looks),
            items=sum(items for _, (_, _, items) in looks),
            took_s=[took for took, _ in looks],
            looks=[(pulled, size, took) for took, (pulled, size, _) in looks],
        )

    def query(self, read: Callable[[FeedQuery], Any], consumer: str, pending: Pending) -> Any:
        """Reads a feed as of the committed batch, without counting the read."""
        return self._reader.read_tables(
            lambda tables: read(FeedQuery(self.placed, tables, consumer, pending))
        )

    def tables(self, read: Callable[[BatchTables], Any]) -> Any:
        return self._reader.read_tables(read)

    def _look(self, consumer: str, tables: BatchTables) -> tuple[int, int, int]:
        """Reads the first page of a feed. Returns the number of producers pulled from, the other
        cause of its length, and its number of items."""
        query = FeedQuery(self.placed, tables, consumer, NOTHING)
        options = self.placed.options
        if self.diverse:
            read = DiverseQuery(query, k=options.k, t=options.t_us, now=self.progress.clock)
            items = len(read.older(None, options.limit).items)
            return len(query.pulled()), query.meta.follows, items
        page = query.older(None, options.limit)
        return page.pulled, len(page.items), len(page.items)

    def taken(self) -> Counted:
        """Returns the counts since the last call."""
        found, self.counted = self.counted, Counted()
        gc.collect()  # whoever is measured next does not pay for it
        return found
