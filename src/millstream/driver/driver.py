"""The shell around `cycle`: carries out its instructions, and tells it what happened.

The caller's thread does everything that is quick and has to be in order: planning, staging,
committing, telling. Two more threads do what takes long: one runs batches, the other publishes and
flushes. A third listens for changes of the sources. All threads post events to one queue. The
caller's thread waits on it, so it reacts at once to new records and to the end of a batch.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from uuid import uuid4

from millstream.driver import cycle
from millstream.driver.batch_plan.next_beat import next_beat
from millstream.driver.batch_plan.pace import set_pace
from millstream.driver.batch_plan.planner import BatchPlan
from millstream.driver.batch_warnings import BatchWarnings
from millstream.driver.inputs.input_watch import POLL_SECONDS, RELOOK_SECONDS, InputWatch
from millstream.driver.job import BatchJob
from millstream.driver.outputs.sink_retry import Stopped
from millstream.driver.report import BatchSummary, told
from millstream.driver.runner import Runner
from millstream.driver.startup.start import Started
from millstream.driver.worker_thread import WorkerThread
from millstream.engine.final_phase import stepped
from millstream.engine.horizon import Lane
from millstream.engine.latency import measure
from millstream.engine.points import reach
from millstream.engine.progress import Report, advanced
from millstream.errors import MillstreamError
from millstream.model.workflow import Workflow
from millstream.settings.setting_parts import BatchSettings
from millstream.stores.home import Home
from millstream.stores.progress import Progress
from millstream.wall_clock import wall_clock

STOP_PATIENCE = 3.0
"""Seconds that a running batch has to end when the application is stopped."""
LOOK_SECONDS = 0.01
"""The shortest time between two checks of the sources while a batch runs."""
OnReport = Callable[[BatchSummary], None]


class Driver:
    """Runs the batches of one application on a store that this process has recovered."""

    def __init__(
        self,
        home: Home,
        workflow: Workflow,
        batches: BatchSettings,
        started: Started,
        report: OnReport | None = None,
        say: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """`say` shows a sentence to the user; setting `stop` ends the run."""
        self.batches = 0
        self._say = say or (lambda sentence: None)
        self._stop = stop or threading.Event()
        self._warnings = BatchWarnings(workflow)
        self._home = home
        self._workflow = workflow
        self._batches = batches
        self._report = report
        self._happened: queue.SimpleQueue[cycle.Happening | None] = queue.SimpleQueue()
        self._input_changed = True
        self._last_look = 0.0
        self._rest_until = 0.0
        self._began = time.perf_counter()
        self._lane: Lane = "one-task"
        self._runner: Runner | None = None
        self._threads: list[WorkerThread] = []
        self._planner = started.planner
        self._publisher = started.publisher
        self._flushing = started.flushing
        self._epoch = started.epoch
        self._run_id = uuid4().hex
        self._plan = started.plan
        self.progress = started.progress

    def run(self, runner: Runner) -> None:
        """Runs batches until there are no more, a stop is requested, or one fails."""
        self._runner = runner
        runner.prepare(self._plan)
        self._tasks = self._planner.tasks = self._batches.tasks or runner.parallelism
        watch = InputWatch(self._note_change)
        batches, background = WorkerThread("batches"), WorkerThread("publisher")
        self._threads = [batches, background]
        machine = cycle.Cycle(self._batches.available_now, self._flushing.soft is not None)
        try:
            self._planner.watch(self._note_change)
            self._planner.look()
            if not self._batches.available_now:
                watch.follow(self._planner.folders)
            self._loop(machine, watch, batches, background)
        finally:
            watch.close()
            for thread in self._threads:
                thread.close()
        if machine.error is not None:
            raise machine.error

    def _note_change(self) -> None:
        """Notes that a source may have more. Called from the watch's thread."""
        if not self._input_changed:
            self._input_changed = True
            self._happened.put(None)

    def _loop(
        self,
        machine: cycle.Cycle,
        watch: InputWatch,
        batches: WorkerThread,
        background: WorkerThread,
    ) -> None:
        todo = deque(machine.told(cycle.Began(self.progress)))
        stopping = False
        give_up = float("inf")
        while machine.phase is not cycle.Phase.ENDED or todo:
            try:
                if self._stop.is_set() and not stopping:
                    stopping, give_up = True, time.monotonic() + STOP_PATIENCE
                    todo.extend(machine.told(cycle.StopAsked()))
                if time.monotonic() > give_up:
                    give_up = float("inf")
                    todo.extend(machine.told(cycle.PatienceEnded()))
                if todo:
                    happened = self._carry_out(todo.popleft(), batches, background)
                    if happened is not None:
                        todo.extendleft(reversed(machine.told(happened)))
                    continue
                happened = self._next_happening(machine, watch)
                if happened is not None:
                    todo.extend(machine.told(happened))
            except KeyboardInterrupt:
                self._stop.set()

    def _next_happening(self, machine: cycle.Cycle, watch: InputWatch) -> cycle.Happening | None:
        """Waits for something to happen, and checks the sources meanwhile."""
        rest = self._rest_until - time.monotonic()
        try:
            happened = self._happened.get(
                timeout=min(rest, POLL_SECONDS) if rest > 0 else POLL_SECONDS
            )
        except queue.Empty:
            happened = None
            if not watch.tells or time.monotonic() - self._last_look > RELOOK_SECONDS:
                self._input_changed = True
        if happened is not None:
            return happened
        if machine.phase is cycle.Phase.ENDED or self._batches.available_now:
            return None
        now = time.monotonic()
        idle = machine.phase is cycle.Phase.IDLE
        if idle and now < self._rest_until:
            return None
        if self._input_changed and (idle or now - self._last_look >= LOOK_SECONDS):
            failed = self._look()
            if failed is not None:
                return failed
            watch.follow(self._planner.folders)
        return cycle.Woken(self._flushing.due(machine.progress)) if idle else None

    def _look(self) -> cycle.Happening | None:
        self._input_changed = False
        self._last_look = time.monotonic()
        try:
            self._planner.look()
        except MillstreamError as error:
            return cycle.SideFailed(error)
        return None

    def _carry_out(
        self, instruction: cycle.Instruction, batches: WorkerThread, background: WorkerThread
    ) -> cycle.Happening | None:
        """Carries out an instruction and returns what happened.

        Returns None if that is reported later, or if it does not matter.
        """
        match instruction:
            case cycle.PlanNext(progress):
                return self._step(lambda: cycle.Planned(self._next_plan(progress)))
            case cycle.RunBatch(plan, before):
                self._began = time.perf_counter()
                batches.do(lambda: self._post(self._step(lambda: self._run(plan, before))))
            case cycle.Cancel():
                assert self._runner is not None
                self._runner.cancel()
            case cycle.Stage(plan, reports, before):
                return self._step(lambda: cycle.Staged(self._stage(plan, reports, before)))
            case cycle.Commit(after):
                return self._step(lambda: self._commit(after))
            case cycle.Publish(progress):
                background.do(lambda: self._post(self._publish(progress)))
            case cycle.Flush(progress, ended):
                background.do(lambda: self._post(self._flush(progress, ended=ended)))
            case cycle.Tell(before, after):
                return self._tell(before, after)
            case cycle.Wait(rest):
                self._rest_until = time.monotonic() + rest
            case cycle.End():
                pass
        return None

    def _post(self, happened: cycle.Happening | None) -> None:
        if happened is not None:
            self._happened.put(happened)

    def _step(self, step: Callable[[], cycle.Happening | None]) -> cycle.Happening | None:
        try:
            return step()
        except Exception as error:
            return cycle.StepFailed(error)

    def _next_plan(self, progress: Progress) -> BatchPlan | None:
        if self._input_changed and not self._batches.available_now:
            self._input_changed = False
            self._last_look = time.monotonic()
            self._planner.look()
        assert self._runner is not None
        self._planner.spread = self._runner.spread
        return self._planner.next(progress)

    def _run(self, plan: BatchPlan, before: Progress) -> cycle.Happening:
        """Runs the tasks of a batch. Called in the thread that runs batches."""
        reach("batch-start", plan.batch)
        assert self._runner is not None
        return cycle.Ran(plan, self._runner.run(self._job(plan, before), plan.lane))

    def _job(self, plan: BatchPlan, before: Progress) -> BatchJob:
        home = self._home
        beat = next_beat(
            self._workflow,
            before,
            epoch=self._epoch,
            batch=plan.batch,
            clock=plan.clock,
            started=self._planner.started,
            final=plan.final,
            lane=plan.lane,
            fresh={split.source for group in plan.splits for split in group},
            target_seconds=self._batches.batch_seconds / 1e6,
            step=plan.step,
        )
        path, shards = home.path.absolute(), home.facts.shards
        soft, shared = self._flushing.soft, self._flushing.shared_job()
        has_feedback = before.pending.feedback > 0
        return BatchJob(
            beat, path, self._run_id, shards, self._tasks, plan.splits, soft, shared, has_feedback
        )

    def _stage(self, plan: BatchPlan, reports: list[Report], before: Progress) -> Progress:
        """Puts the rest of the output on disk; returns the progress that commits the batch."""
        synced = self._flushing.soft is None
        staged = self._publisher.stage(plan.batch, reports, synced=synced)
        self._flushing.written(reports)
        reach("slates-committed", plan.batch)
        self._warnings.note(reports)
        after = advanced(before, reports, plan.batch, plan.clock, plan.positions)
        if plan.step is not None:
            stepped(self._workflow, plan.step, after, reports)
        after.staged, self._lane = staged, plan.lane
        after.last_batches = self._flushing.last_batches()
        after.written = wall_clock()
        after.timing.last_seconds = time.perf_counter() - self._began
        after.timing.seconds = before.timing.seconds + after.timing.last_seconds
        target, warm = self._batches.batch_seconds / 1e6, self.batches > 0
        most = self._batches.batch_bytes
        set_pace(before, after, plan.bytes, target=target, most=most, warm=warm)
        measure(
            before,
            after,
            reports,
            oldest=(plan.oldest or plan.clock) if any(plan.splits) else None,
            clock=plan.clock,
            waits=self._plan.waits,
        )
        self._flushing.committed(before, after)
        return after

    def _commit(self, after: Progress) -> cycle.Happening:
        self._home.write_progress(after, synced=self._flushing.soft is None)
        self.progress = after
        self.batches += 1
        reach("batch-recorded", after.batch)
        return cycle.Committed(after, self._flushing.due(after))

    def _publish(self, progress: Progress) -> cycle.Happening:
        """Publishes a committed batch. Called in the publisher's thread."""
        try:
            self._publisher.publish(progress.batch, progress.staged)
            reach("sinks-published", progress.batch)
        except Stopped as stopped:  # committed and staged: the next start publishes it
            self._say(f"{stopped}; stopped before it had the batch: the next start publishes it")
            return cycle.PublishFailed(None)
        except Exception as error:
            return cycle.PublishFailed(error)
        return cycle.Published()

    def _flush(self, progress: Progress, *, ended: bool) -> cycle.Happening:
        """Flushes all committed batches. Called in the publisher's thread, while no batch runs."""
        try:
            self._flushing.flush(progress, self._publisher, ended=ended)
        except Stopped as stopped:
            self._say(
                f"{stopped}; stopped before it had all batches: the next start publishes them"
            )
            return cycle.StepFailed(None)
        except Exception as error:
            return cycle.StepFailed(error)
        return cycle.LayerFlushed(progress)

    def _tell(self, before: Progress, after: Progress) -> cycle.Happening | None:
        try:
            for sentence in self._warnings.sentences(before, after):
                self._say(sentence)
            self._planner.commit(self._flushing.durable(after))
            if self._report is not None:
                left, seconds = self._planner.left(after), after.timing.last_seconds
                waits = self._plan.waits
                self._report(told(before, after, left, self._lane, seconds, waits=waits))
        except Exception as error:
            return cycle.SideFailed(error)
        return None

    def dead_input(self, before: Progress) -> str | None:
        """Returns a warning if nearly all that came since `before` became dead letters."""
        return self._warnings.dead_input.sentence(before, self.progress)
