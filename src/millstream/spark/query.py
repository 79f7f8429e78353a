"""The driver: one Structured Streaming query an application.

DESIGN
------
A batch b passes these points, in this order:

1. Spark plans b and writes its offsets (the heartbeat's: positions and clock).
2. Those files are forced to disk.
3. One action runs b's tasks; each shard commits b. Output rows are staged on disk.
4. `progress` is written: **the batch is committed**. Readers see it from here on.
5. The sinks publish what is staged, and the staged files go. What is asked of actions is in their
   logs from here on: threads beside the batches carry it out (see `millstream.actions`).
6. Spark writes its own commit.

With a flush interval, 2 and 5 are left out, and 4 forces nothing to disk: see `flushing`.

A driver that starts again first undoes, in every shard, what came after the batch in `progress`;
Spark then repeats b if it has no commit of it, and a batch that `progress` already knows is
skipped. So a crash between any two points loses and doubles nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from millstream.actions.address import addresses_of
from millstream.actions.attempt import Policy
from millstream.actions.running import carried_out
from millstream.engine.beat import next_beat
from millstream.engine.horizon import lane_of
from millstream.engine.pace import set_pace
from millstream.engine.plan import Plan
from millstream.engine.points import reach
from millstream.engine.progress import advanced
from millstream.errors import MillstreamError
from millstream.log.retention import Retention
from millstream.model.app import App
from millstream.model.workflow import Workflow
from millstream.settings import Settings
from millstream.sources.address import LOG
from millstream.spark.continuing import check_continues, lasting
from millstream.spark.failures import from_spark
from millstream.spark.flushing import Flushing, take_back
from millstream.spark.following import follow
from millstream.spark.heartbeat import Heartbeat, Planned, clock
from millstream.spark.job import Job, PackedPlan, grouped
from millstream.spark.lanes import run_batch
from millstream.spark.large_slates import LargeSlates
from millstream.spark.offsets import check_checkpoint, clear_torn, query_id, read_offset
from millstream.spark.patience import Stopped, patience_of
from millstream.spark.places import addresses, check_places
from millstream.spark.publisher import Publisher
from millstream.spark.reading import Reading
from millstream.spark.report import BatchSummary, RunSummary, told
from millstream.spark.session import open_session
from millstream.spark.unranked_slates import UnrankedSlates
from millstream.stores.home import Home, held
from millstream.stores.progress import decoded
from millstream.stores.shard_checks import finish_checks, start_checks

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
        say: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """`say` takes sentences for whoever watches; `stop` is looked at while this starts."""
        self.error: MillstreamError | None = None
        self.stopping = False
        self.batches = 0
        self.has_begun = False
        """Whether any batch was."""
        self.running = threading.Lock()
        """Held while a batch runs."""
        self.leaving = threading.Event()
        """Set when the running batch is the last one: it is not to wait for a sink."""
        self._asked = stop or self.leaving
        self.say = say or (lambda sentence: None)
        self._large = LargeSlates(workflow.slate_warn, workflow.slate_kinds)
        self._unranked = UnrankedSlates()
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
        taken_back = take_back(home)
        if taken_back is not None:
            self.say(taken_back)
        self.progress = decoded(home.read_progress())
        self.before = self.progress
        self._flushing = Flushing(home, settings.flush)
        self._epoch = home.raise_epoch()
        self._publisher: Publisher | None = None
        self._reading = Reading(home, self._sources)
        self._reading.register(self._flushing.durable(self.progress))
        self._recover()
        self._asked = self.leaving  # a batch may not fail before whoever stops has been told

    def _recover(self) -> None:
        """Bring every shard back to the last committed batch, and the sinks up to it."""
        clear_torn(self._home.checkpoint, self.progress.batch)
        known = check_checkpoint(self._home.checkpoint, self.progress)
        store = self._flushing.recover(self._epoch, self.progress)
        check_continues(self._workflow, self._home, store, self.progress)
        self._home.know_parts(lasting(self._workflow.parts))
        publisher = self._open_publisher(known) if known is not None else None
        try:
            self._flushing.settle(self.progress, publisher)
        except Stopped as stopped:
            raise stopped.error from None

    def flush_if_due(self, stop: threading.Event | None) -> None:
        """Between batches: flush when it is time, so that an idle application does too."""
        if not self._flushing.due(self.progress) or not self.running.acquire(blocking=False):
            return
        self._asked = stop or self.leaving
        try:
            self.flush()
        finally:
            self._asked = self.leaving
            self.running.release()

    def flush(self, *, ended: bool = False) -> None:
        """Flush what is committed; once `ended`, nothing is left to a cut of the power."""
        try:
            self._flushing.flush(self.progress, self._publisher, ended=ended)
        except Stopped as stopped:
            self.say(f"{stopped}; stopped before it had all batches, which the next start gives")
        except MillstreamError as error:
            self.error = self.error or error

    def close(self) -> None:
        """Let go of the store, the sinks and the sources."""
        self._flushing.close()
        if self._publisher is not None:
            self._publisher.close()
        self._reading.close()

    def _open_publisher(self, query: str) -> Publisher:
        if self._publisher is None:
            logged = {name for name, one in self._sources.items() if one.format == LOG}
            patience = patience_of(
                self._settings, lambda seconds: not self._asked.wait(seconds), self.say
            )
            self._publisher = Publisher(
                self._home, query, self._sinks, self._retention, logged, patience
            )
        return self._publisher

    def start(self) -> StreamingQuery:
        """Start the query."""
        settings = self._settings
        planned = Planned(
            self._home.path.absolute(),
            self._workflow,
            self._sources,
            settings.batch_bytes,
            settings.batch_seconds / 1e6,
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
                self.has_begun = True
                self.run(batch)
                return
        except MillstreamError as error:
            self.error = error
        except Stopped as stopped:  # committed and staged: the next start publishes it
            self.say(f"{stopped}; stopped before it had the batch, which the next start gives it")
        except Exception as error:
            if not self.stopping:  # else it was we who cancelled it
                self.error = from_spark(error)
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
        synced = self._flushing.soft is None
        offset, checksum = read_offset(self._home.checkpoint, batch, synced=synced)
        taken = self._reading.between(self.progress, offset["positions"])
        before, workflow, settings = self.progress, self._workflow, self._settings
        lane = lane_of(
            workflow,
            settings.lane,
            taken.bytes,
            before.waiting,
            settings.small_bytes,
            before.pace,
        )
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
            target_seconds=settings.batch_seconds / 1e6,
        )
        job = Job(
            self._packed,
            beat,
            self._home.path.absolute(),
            self._home.facts.id,
            self._home.facts.shards,
            self._tasks,
            grouped(taken.splits, self._tasks),
            self._flushing.soft,
        )
        reports = run_batch(self._spark, job, lane, len(self._plan.layers))
        staged = publisher.stage(batch, reports, synced=synced)
        reach("slates-committed", batch)
        after = advanced(before, reports, batch, offset["clock"], offset["positions"])
        after.query, after.offsets, after.staged = query, checksum, staged
        after.last_batches = self._flushing.last_batches(before)
        after.written, after.last_seconds = clock(), time.perf_counter() - began
        after.seconds = before.seconds + after.last_seconds
        target, warm = settings.batch_seconds / 1e6, self.batches > 0
        set_pace(before, after, taken.bytes, target=target, most=settings.batch_bytes, warm=warm)
        after.latency = before.latency
        if taken.splits:
            after.latency = max(0, after.written - (taken.oldest or offset["clock"]))
        self._flushing.committed(before, after)
        self._home.write_progress(after, synced=synced)
        self.progress = after
        reach("batch-recorded", batch)
        if synced:
            publisher.publish(batch, staged)
        elif self._flushing.due(after):
            self._flushing.flush(after, publisher)
        reach("sinks-published", batch)
        for sentence in self._large.sentences(after.large, batch):
            self.say(sentence)
        for sentence in self._unranked.sentences(after.unranked, batch):
            self.say(sentence)
        self._reading.commit(self._flushing.durable(after))
        self.batches += 1
        if self._report is not None:
            left, seconds = self._reading.left(after), time.perf_counter() - began
            self._report(told(before, after, left, lane, seconds, waits=self._plan.waits))


def run(
    app: App,
    settings: Settings,
    report: OnReport | None = None,
    *,
    spark: SparkSession | None = None,
    stop: threading.Event | None = None,
    ready: Callable[[], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> RunSummary:
    """Run an application until it is done (`available_now`), stopped, or fails with RunError.

    Ctrl-C, or setting `stop`, ends it after the batch that is running. `ready` is called when the
    store is there and held by this run, before Spark starts; `say` with what its owner should know.
    """
    began = time.perf_counter()
    workflow = settings.applied(app.checked())
    check_places(settings, workflow.outputs)
    places = addresses_of(app.name, workflow.actions, settings.actions)
    with held(settings.store), ExitStack() as open_:
        home = Home.make(settings.store, app.name, settings.shards, workflow.slate_kinds)
        if ready is not None:
            ready()
        patience = settings.action_patience
        acting = carried_out(
            home,
            places,
            policy=Policy(settings.action_tries, patience and patience / 1e6),
            timeout=settings.action_timeout / 1e6,
            stop=stop,
        )
        actions = open_.enter_context(acting)
        checks = open_.enter_context(start_checks(home)) if settings.check_store else None
        session = spark or open_session(app.name, settings.master, settings.memory)
        try:
            if checks is not None:  # they ran while Spark started
                finish_checks(checks)
            driver = Driver(session, home, workflow, settings, report, say, stop)
            with closing(driver):
                actions.start()
                follow(driver, stop)
        finally:
            if spark is None:
                session.stop()
        if settings.available_now:
            actions.finish()
    after, before = driver.progress, driver.before
    return RunSummary(
        driver.batches,
        after.events - before.events,
        after.late - before.late,
        after.dead_letters - before.dead_letters,
        time.perf_counter() - began,
        after.waiting,
        sum(after.dropped.values()) - sum(before.dropped.values()),
        sum(after.diverted.values()) - sum(before.diverted.values()),
        sum(after.evicted.values()) - sum(before.evicted.values()),
    )
