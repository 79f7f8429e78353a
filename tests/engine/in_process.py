"""Run the engine without Spark: the same tasks over a memory store, batch by batch.

Plays the driver's part with the engine's own decisions (`next_beat`, `is_due`, `advanced`), in
either lane, so that thousands of generated cases can be compared with the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from millstream.codec import decode_value, encode_value
from millstream.driver.batch_plan.next_beat import next_beat
from millstream.engine.columns import Columns
from millstream.engine.final_phase import FinalStep, next_step, stepped
from millstream.engine.frames import frame_of, of_frame
from millstream.engine.horizon import Lane, is_due
from millstream.engine.intake import Intake
from millstream.engine.layers import Task, continued, run_whole, seen_times
from millstream.engine.plan import Plan
from millstream.engine.progress import Report, advanced
from millstream.engine.router import Placed
from millstream.engine.sink_rows import sink_row
from millstream.model.event import Event
from millstream.model.workflow import Workflow
from millstream.slate_changes import SlateChanges
from millstream.stores.contract import Store
from millstream.stores.memory import MemoryStore
from millstream.stores.progress import Progress


@dataclass
class InProcess:
    """An application on the engine, in memory."""

    workflow: Workflow
    shards: int = 4
    tasks: int = 2
    lane: Lane = "one-task"
    store: Store | None = None
    clock: int = 1_000_000
    progress: Progress = field(default_factory=Progress)
    streams: dict[str, list[Event]] = field(default_factory=dict)
    late: list[Event] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)
    """The horizon that each late event has missed."""
    dropped: list[tuple[str, Event]] = field(default_factory=list)
    letters: list[dict[str, Any]] = field(default_factory=list)
    changes: dict[str, SlateChanges] = field(default_factory=dict)
    attempts: int = 0
    epoch: int = 1

    def __post_init__(self) -> None:
        self.store = self.store or MemoryStore(self.shards)
        self.plan = Plan(self.workflow, self.shards, frozenset(self.workflow.streams))

    def batch(
        self, events: Sequence[Event], *, final: bool = False, step: FinalStep | None = None
    ) -> None:
        """Runs a batch. Its clock is a second after that of the last one."""
        self.clock += 1_000_000
        number = self.progress.batch + 1
        beat = next_beat(
            self.workflow,
            self.progress,
            epoch=self.epoch,
            batch=number,
            clock=self.clock,
            started=0,
            final=final,
            lane=self.lane,
            step=step,
        )
        run = self._one_task if self.lane == "one-task" else self._shuffled
        reports = run(beat, events)
        for report in reports:
            self.missed += [beat.late or 0] * len(report.rows.late_events)
            self._collect(msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=Report))
        self.progress = advanced(self.progress, reports, number, self.clock, {})
        if step is not None:
            stepped(self.workflow, step, self.progress, reports)
        for function in self.workflow.functions:
            owed = self.progress.counts(function.name)
            assert owed.residual == 0, (function.name, owed)

    def _one_task(self, beat: Any, events: Sequence[Event]) -> list[Report]:
        with self._task(beat, range(self.shards)) as task:
            task.take_feedback()
            intakes = self._take_in(task, beat, events)
            run_whole(task, intakes)
            return [task.finish(intakes)]

    def _shuffled(self, beat: Any, events: Sequence[Event]) -> list[Report]:
        reports = []
        placed: dict[tuple[int, int], Columns] = {}

        def gather(task: Task) -> None:
            for place, columns in task.router.take().items():
                placed.setdefault(place, Columns()).extend(of_frame(frame_of(columns)))

        with self._task(beat, range(self.shards)) as task:
            task.take_feedback()
            intakes = self._take_in(task, beat, events)
            gather(task)
            reports.append(task.finish(intakes))
        beat = continued(self.plan, beat, seen_times(intakes))
        for layer, functions in enumerate(self.plan.layers):
            for number in range(self.tasks):
                owned = range(number, self.shards, self.tasks)
                places = [(f, s) for f in functions for s in owned if (f, s) in placed]
                task = self._layer_task(
                    beat, layer, owned, {place: placed.pop(place) for place in places}
                )
                gather(task)
                reports.append(task.finish())
        assert not placed
        return reports

    def _layer_task(self, beat: Any, layer: int, owned: Any, inboxes: Placed) -> Task:
        """Runs and commits a task of a layer."""
        with self._task(beat, owned) as task:
            task.run_layer(layer, inboxes, beat)
            task.commit()
            return task

    def _task(self, beat: Any, shards: Any) -> Task:
        self.attempts += 1
        assert self.store is not None
        return Task(self.plan, beat, self.store, shards, self.attempts)

    def _take_in(self, task: Task, beat: Any, events: Sequence[Event]) -> list[Intake]:
        intakes = []
        for source in self.workflow.sources:
            intake = Intake(source, task.router, beat.clock, beat.late)
            mine = [e for e in events if e.stream == source.name]
            if mine:
                stream = self.plan.stream_number[source.name]
                intake._route(
                    Columns(
                        [stream] * len(mine),
                        [e.ts for e in mine],
                        [e.key for e in mine],
                        [encode_value(e.value) for e in mine],
                    )
                )
                intake.events += len(mine)
            intakes.append(intake)
        return intakes

    def _collect(self, report: Report) -> None:
        for name, rows in report.rows.outputs.items():
            self.streams.setdefault(name, []).extend(
                Event(name, ts, key, decode_value(value)) for ts, key, value in rows
            )
        self.dropped.extend(
            (name, Event(stream, ts, key, decode_value(value)))
            for name, stream, ts, key, value in report.rows.dropped_events
        )
        self.late.extend(
            Event(n, ts, k, decode_value(v)) for n, ts, k, v in report.rows.late_events
        )
        self.letters.extend(map(sink_row, report.rows.letters))
        for name, changes in report.rows.slate_changes.items():
            self.changes.setdefault(name, SlateChanges()).extend(changes)

    def settle(self, *, final: bool) -> None:
        """Beat until nothing is due; `final` ends event time, as `--final` does."""
        for use_final in (False, True) if final else (False,):
            beats = 0
            while is_due(self.workflow, self.progress, self.clock, 0, use_final):
                self.batch([], final=use_final)
                beats += 1
                assert beats < 10_000, "the beats do not end"
        beats = 0
        while final and (step := next_step(self.workflow, self.progress)):
            self.batch([], final=True, step=step)
            beats += 1
            assert beats < 10_000, "the final phase does not end"
