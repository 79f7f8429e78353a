"""The driver: one Structured Streaming query an application.

DESIGN
------
A batch b passes these points, in this order:

1. Spark plans b and writes its offsets (the heartbeat's: positions and clock).
2. Those files are forced to disk.
3. One action runs b's tasks; each shard commits b. Output rows are staged on disk.
4. `progress` is written: **the batch is committed**. Readers see it from here on.
5. The sinks publish what is staged, and the staged files go.
6. Spark writes its own commit.

A driver that starts again first undoes, in every shard, what came after the batch in `progress`;
Spark then repeats b if it has no commit of it, and a batch that `progress` already knows is
skipped. So a crash between any two points loses and doubles nothing.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import closing

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from millstream.engine.beat import next_beat
from millstream.engine.horizon import lane_of
from millstream.engine.plan import Plan
from millstream.engine.points import reach
from millstream.engine.progress import advanced
from millstream.errors import MillstreamError, RunError, StoreError
from millstream.log.retention import Retention
from millstream.model.app import App
from millstream.model.workflow import Workflow
from millstream.settings import Settings
from millstream.sources.address import LOG
from millstream.spark.continuing import check_continues
from millstream.spark.heartbeat import Heartbeat, Planned, clock
from millstream.spark.job import Job, PackedPlan, SourceSplit
from millstream.spark.lanes import run_batch
from millstream.spark.offsets import check_offsets, clear_torn, query_id, read_offset
from millstream.spark.places import addresses, check_places
from millstream.spark.publisher import Publisher
from millstream.spark.reading import Reading
from millstream.spark.report import BatchSummary, RunSummary
from millstream.spark.session import open_session
from millstream.stores.home import Home, held
from millstream.stores.progress import Progress, decoded

STOP_PATIENCE = 4.0
"""Seconds that a running batch is given to end when the application is stopped."""
OnReport = Callable[[BatchSummary], None]


class NotRun(Exception):
    """Tells Spark that a batch did not run to its end: it is left to the next start."""


class Driver:
    """Runs the batches of one application."""

    def __init__(
        self,
        spark: SparkSession,
        home: Home,
        workflow: Workflow,
        settings: Settings,
        report: OnReport | None,
    ) -> None:
        self.error: MillstreamError | None = None
        self.stopping = False
        self.batches = 0
        self.running = threading.Lock()
        """Held while a batch runs."""
        self._spark = spark
        self._home = home
        self._workflow = workflow
        self._settings = settings
        self._report = report
        self._sources = addresses(settings.sources, home.path)
        self._sinks = addresses(settings.sinks, home.path)
        self._retention = Retention(settings.retain_age, settings.retain_bytes)
        home.number_streams(workflow.streams)
        home.know_functions([f.name for layer in workflow.layers for f in layer])
        numbered = tuple(home.facts.streams)
        self._plan = Plan(workflow, home.facts.shards, frozenset(workflow.outputs), numbered)
        self._packed = PackedPlan.of(self._plan)
        self._tasks = settings.tasks or spark.sparkContext.defaultParallelism
        self._started = None if settings.available_now else clock()
        self.progress = decoded(home.read_progress())
        self.before = self.progress
        self._epoch = home.raise_epoch()
        self._publisher: Publisher | None = None
        self._reading = Reading(home, self._sources)
        self._reading.register(self.progress)
        self._recover()

    def _recover(self) -> None:
        """Bring every shard back to the last committed batch, and the sinks up to it."""
        committed = self.progress.batch
        clear_torn(self._home.checkpoint, committed)
        known = query_id(self._home.checkpoint)
        if committed >= 0:
            if known is None or known != self.progress.query:
                raise StoreError(
                    f"{self._home.checkpoint}: the store was filled by query "
                    f"{self.progress.query}, and the checkpoint is of {known or 'none'}; restore "
                    "the checkpoint, or begin a new store with --store"
                )
            check_offsets(self._home.checkpoint, committed, self.progress.offsets)
        store = self._home.store()
        for number in range(store.shards):
            store.shard(number).roll_back(self._epoch, committed)
        check_continues(self._workflow, self._home, store, self.progress)
        if known is not None:
            self._open_publisher(known).publish(committed, self.progress.staged)

    def close(self) -> None:
        """Let go of the sinks and the sources."""
        if self._publisher is not None:
            self._publisher.close()
        self._reading.close()

    def _open_publisher(self, query: str) -> Publisher:
        if self._publisher is None:
            logged = {name for name, one in self._sources.items() if one.format == LOG}
            self._publisher = Publisher(self._home, query, self._sinks, self._retention, logged)
        return self._publisher

    def start(self) -> StreamingQuery:
        """Start the query."""
        settings = self._settings
        planned = Planned(
            self._home.path.absolute(),
            self._workflow,
            self._sources,
            settings.batch_bytes,
            settings.available_now,
            settings.final,
            self._started,
        )
        self._spark.dataSource.register(Heartbeat)
        beats = (
            self._spark.readStream.format(Heartbeat.name())
            .option("planned", planned.to_option())
            .load()
        )
        writer = beats.writeStream.foreachBatch(self._guarded).option(
            "checkpointLocation", self._home.checkpoint.absolute().as_uri()
        )
        if settings.available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime="0 seconds").start()

    def _guarded(self, _: DataFrame, batch: int) -> None:
        """Run a batch unless the application is stopping, and keep what went wrong.

        Whoever stops holds `running` and waits for this thread, so it must not wait for `running`.
        What is raised goes to Spark, which chokes on long texts: the error itself is kept here.
        """
        while not self.running.acquire(timeout=0.05):
            if self.stopping:
                raise NotRun
        try:
            if not self.stopping:
                self.run(batch)
                return
        except MillstreamError as error:
            self.error = error
        except Exception as error:
            if not self.stopping:  # else it was we who cancelled it
                self.error = _from_task(error)
        finally:
            self.running.release()
        raise NotRun

    def run(self, batch: int) -> None:
        """Run a batch from its offsets to its sinks."""
        began = time.perf_counter()
        if batch <= self.progress.batch:
            return  # committed before the last driver ended; recovery has published it
        reach("batch-start", batch)
        query = query_id(self._home.checkpoint) or ""
        publisher = self._open_publisher(query)
        offset, checksum = read_offset(self._home.checkpoint, batch)
        taken = self._reading.between(self.progress, offset["positions"])
        before, workflow, settings = self.progress, self._workflow, self._settings
        lane = lane_of(workflow, settings.lane, taken.bytes, before.waiting, settings.small_bytes)
        beat = next_beat(
            workflow,
            before,
            epoch=self._epoch,
            batch=batch,
            clock=offset["clock"],
            started=offset["started"],
            final=offset["final"],
            lane=lane,
            fresh={split.source for split in taken.splits},
        )
        job = Job(
            self._packed,
            beat,
            self._home.path.absolute(),
            self._home.facts.id,
            self._home.facts.shards,
            self._tasks,
            _grouped(taken.splits, self._tasks),
        )
        reports = run_batch(self._spark, job, lane, len(self._plan.layers))
        staged = publisher.stage(batch, reports)
        reach("slates-committed", batch)
        after = advanced(before, reports, batch, offset["clock"], offset["positions"])
        after.query, after.offsets, after.staged = query, checksum, staged
        after.written, after.last_seconds = clock(), time.perf_counter() - began
        after.seconds = before.seconds + after.last_seconds
        after.latency = before.latency
        if taken.splits:
            after.latency = max(0, after.written - (taken.oldest or offset["clock"]))
        self._home.write_progress(after)
        self.progress = after
        reach("batch-recorded", batch)
        publisher.publish(batch, staged)
        reach("sinks-published", batch)
        self._reading.commit(after)
        self.batches += 1
        if self._report is not None:
            self._report(self._told(before, lane, time.perf_counter() - began))

    def _told(self, before: Progress, lane: str, seconds: float) -> BatchSummary:
        after = self.progress
        left = self._reading.left(after)
        return BatchSummary(
            batch=after.batch,
            events=after.events - before.events,
            late=after.late - before.late,
            dead_letters=after.dead_letters - before.dead_letters,
            seconds=seconds,
            total_events=after.events,
            total_late=after.late,
            total_dead_letters=after.dead_letters,
            bytes_done=left.bytes_done,
            bytes_total=left.bytes_total,
            waiting=after.waiting,
            horizon=after.horizon if self._plan.waits else None,
            lane=lane,
            latency=after.latency / 1e6 if after.events > before.events and after.latency else None,
            behind=left.records,
            slates=sum(after.slates.values()),
        )


def run(
    app: App,
    settings: Settings,
    report: OnReport | None = None,
    *,
    spark: SparkSession | None = None,
    stop: threading.Event | None = None,
    ready: Callable[[], None] | None = None,
) -> RunSummary:
    """Run an application until it is done (`available_now`), stopped, or fails with RunError.

    Ctrl-C, or setting `stop`, ends it after the batch that is running. `ready` is called when the
    store is there and held by this run, before Spark starts.
    """
    began = time.perf_counter()
    workflow = app.checked()
    check_places(settings, workflow.outputs)
    with held(settings.store):
        home = Home.make(settings.store, app.name, settings.shards, workflow.slate_kinds)
        if ready is not None:
            ready()
        session = spark or open_session(app.name, settings.master, settings.memory)
        try:
            driver = Driver(session, home, workflow, settings, report)
            with closing(driver):
                _follow(driver, driver.start(), stop)
        finally:
            if spark is None:
                session.stop()
    after, before = driver.progress, driver.before
    return RunSummary(
        driver.batches,
        after.events - before.events,
        after.late - before.late,
        after.dead_letters - before.dead_letters,
        time.perf_counter() - began,
        after.waiting,
    )


def _follow(driver: Driver, query: StreamingQuery, stop: threading.Event | None) -> None:
    """Wait for the query to end, or end it when asked."""
    try:
        while not query.awaitTermination(0.2):  # type: ignore[arg-type]  # a float is fine
            if stop is not None and stop.is_set():
                break
    except KeyboardInterrupt:
        pass
    except PySparkException as error:
        raise driver.error or _from_task(error) from None
    finally:
        _end(driver, query)
    if driver.error is not None:
        raise driver.error


def _end(driver: Driver, query: StreamingQuery) -> None:
    """Stop the query between two batches; a batch that takes too long is cancelled, and repeated
    at the next start."""
    between = driver.running.acquire(timeout=STOP_PATIENCE)
    driver.stopping = True
    try:
        query.stop()
    finally:
        if between:
            driver.running.release()


def _grouped(splits: list[SourceSplit], tasks: int) -> tuple[tuple[SourceSplit, ...], ...]:
    """Splits dealt out to the tasks of the first stage, at least one group."""
    groups = max(1, min(tasks, len(splits)))
    return tuple(tuple(splits[number::groups]) for number in range(groups))


def _from_task(error: Exception) -> MillstreamError:
    """Our own error out of the traceback that Spark carries back from a Python worker."""
    text = str(error)
    ours = re.findall(r"millstream\.errors\.(\w+): (.*)", text)
    if ours:
        return RunError(ours[-1][1])
    lines = [line for line in text.splitlines() if line.strip()]
    return RunError(f"Spark ended the query: {lines[-1] if lines else type(error).__name__}")
