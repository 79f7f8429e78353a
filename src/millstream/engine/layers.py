"""Runs layers over shards: in a task of the shuffled lane, or the whole batch in one task.

A task owns some shards. It steps a cell for each of its functions in each of its shards, commits
each shard once, and reports. Nothing is visible to readers before the driver has recorded the
batch; by the shard contract, a task that fails or is repeated leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from time import thread_time_ns

from millstream.engine.beat import Beat
from millstream.engine.cells.aggregate_cell import AggregateCell
from millstream.engine.cells.cell import Cell, stored_outbox
from millstream.engine.cells.table_cell import TableCell
from millstream.engine.columns import Columns
from millstream.engine.horizon import further, step_from
from millstream.engine.intake import Intake
from millstream.engine.plan import Plan
from millstream.engine.points import reach
from millstream.engine.progress import Report, add, add_pending, greatest, least
from millstream.engine.retry_intake import RetryIntake
from millstream.engine.router import Placed, Router
from millstream.engine.sink_rows import letter_row
from millstream.errors import StaleCommit
from millstream.letters.selection import why_not
from millstream.model.function import Update
from millstream.slate_changes import SlateChanges
from millstream.stores.contract import Fence, Shard, Store, View


class Task:
    """The cells of some functions in some shards, for one batch."""

    def __init__(
        self, plan: Plan, beat: Beat, store: Store, shards: Iterable[int], attempt: int
    ) -> None:
        self.plan = plan
        self.beat = beat
        self.router = Router(plan, beat.batch)
        self.report = Report()
        self._attempt = attempt
        self._store = store
        self._shards: dict[int, Shard] = {n: store.shard(n) for n in shards}
        self._views: dict[int, View] = {}
        self._cells: dict[tuple[int, int], Cell] = {}
        self._open = ExitStack()

    def __enter__(self) -> Task:
        for number, shard in self._shards.items():
            self._views[number] = self._open.enter_context(shard.before(self.beat.batch))
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    def take_feedback(self) -> None:
        """Routes the feedback events that the last batch left in these shards."""
        for view in self._views.values():
            for emitter in self.plan.emitters:
                for target, events in stored_outbox(view, self.plan.stored[emitter]):
                    self.router.deliver(self.plan.number_stored[target], events)

    def run_layer(self, layer: int, inboxes: Placed, beat: Beat) -> None:
        """Steps every cell of a layer; the router collects what they emit."""
        for number in self.plan.layers[layer]:
            for shard, view in self._views.items():
                cell = self._cells.get((number, shard))
                if cell is None:
                    cell = self._cells[number, shard] = self._made(number, view, beat)
                cell.step(inboxes.pop((number, shard), None), beat, self.router)

    def _made(self, number: int, view: View, beat: Beat) -> Cell:
        """Returns a new cell of the kind that the function needs."""
        function, kind = self.plan.functions[number], Cell
        if number in self.plan.aggregates:
            kind = AggregateCell
        elif isinstance(function, Update) and function.across_keys:
            kind = TableCell
        return kind(self.plan, number, view, beat)

    def feedback(self) -> dict[int, Columns]:
        """Takes the feedback events out of the cells, for a further step of this batch."""
        taken: dict[int, Columns] = {}
        for cell in self._cells.values():
            for target, events in cell.take_outbox().deliveries.items():
                taken.setdefault(target, Columns()).extend(events)
        return taken

    def earliest(self) -> int | None:
        """Returns the time of the earliest pending event or timer in these cells."""
        return least(
            *(cell.least_waiting() for cell in self._cells.values()),
            *(cell.least_timer("event") for cell in self._cells.values()),
        )

    def commit(self) -> None:
        """Commits every shard, once, with all changes of its cells."""
        began = thread_time_ns()
        report, beat = self.report, self.beat
        changes: dict[int, dict[str, Mapping[bytes, bytes | None]]] = {}
        for (_, shard), cell in self._cells.items():
            cell.sweep(shard, beat.sweep)
            cell.make_room(self.router)
            changes.setdefault(shard, {})[cell.stored] = cell.changes()
            output = self.plan.change_outputs.get(cell.name)
            if output is not None and (changed := cell.slate_changes()):
                report.rows.slate_changes.setdefault(output, SlateChanges()).extend(changed)
                add(report.emitted, {output: len(changed)})
            cell.counts.waiting = cell.waiting_change()
            report.waiting += cell.counts.waiting
            report.counts(cell.name).merge(cell.counts)
            add_pending(report.pending, cell.pending())
            report.oldest = least(report.oldest, cell.oldest)
            if beat.final is not None:
                report.fired = greatest(report.fired, cell.fired)
                latest = greatest(cell.latest, report.latest.get(cell.name))
                report.latest |= {} if latest is None else {cell.name: latest}
            for target, events in cell.outbox.deliveries.items():
                report.counts(self.plan.functions[target].name).feedback += len(events)
        read = {n: kept for n, view in self._views.items() if (kept := view.rows_read) is not None}
        self._open.close()  # a read transaction held during a write makes the store grow
        reach("layer-commit", beat.batch)
        fence = Fence(beat.epoch, beat.batch, self._attempt)
        try:
            report.changes = self._store.commit(fence, changes, read)
        except StaleCommit:
            reach("stale", beat.batch)
            raise
        self._took_to_store(changes, (thread_time_ns() - began) // 1_000)

    def _took_to_store(
        self, changes: Mapping[int, Mapping[str, Mapping[bytes, object]]], microseconds: int
    ) -> None:
        """Divides the time of a commit among the functions, by the rows that each changed."""
        rows: dict[str, int] = {}
        for shard_changes in changes.values():
            add(rows, {name: len(changed) for name, changed in shard_changes.items()})
        each = microseconds / max(1, sum(rows.values()))
        plan = self.plan
        names = {
            stored: plan.functions[number].name for stored, number in plan.number_stored.items()
        }
        for name, changed in rows.items():
            self.report.counts(names[name]).stored += round(each * changed)

    def finish(self, intakes: Iterable[Intake | RetryIntake] = ()) -> Report:
        """Completes the report with what the router and the intakes collected, and returns it."""
        report, router = self.report, self.router
        router.settle()
        for intake in intakes:
            source = report.source(intake.source.name)
            source.events += intake.events
            source.highest = greatest(source.highest, intake.highest)
            source.lost += intake.lost
            source.bytes += intake.bytes
            report.late += len(intake.late)
            report.rows.late_events.extend(intake.late)
        functions, streams = self.plan.functions, self.plan.streams
        for number, counts in router.counts.items():
            report.counts(functions[number].name).merge(counts)
        for number, nanoseconds in router.spent.items():
            report.counts(functions[number].name).spent += nanoseconds // 1_000
        add(report.emitted, {streams[n]: count for n, count in router.emitted.items()})
        for number, dropped in router.dropped.items():
            name = functions[number].name
            report.counts(name).dropped += len(dropped)
            columns = zip(dropped.streams, dropped.ts, dropped.keys, dropped.values, strict=True)
            report.rows.dropped_events.extend(
                (name, streams[stream], ts, key, value) for stream, ts, key, value in columns
            )
        for letter in router.dead:
            if letter.function is None:
                report.source(letter.stream).refused += 1
                continue
            counts = report.counts(letter.function)
            counts.failed += 1
            counts.timers_failed += letter.timer is not None
        report.highest = greatest(report.highest, router.highest)
        report.dead_letters = len(router.dead) + router.unmerged
        if router.dead:
            report.error = router.dead[-1].error
            report.retriable = why_not(router.dead[-1]) is None
        report.rows.letters = [letter_row(letter) for letter in router.dead]
        for stream, events in router.outputs.items():
            rows = list(zip(events.ts, events.keys, events.values, strict=True))
            report.rows.outputs[streams[stream]] = rows
        report.horizon = self.beat.horizon
        return report


def seen_times(intakes: Iterable[Intake | RetryIntake]) -> dict[str, int]:
    """Returns the greatest time of each source's events."""
    seen: dict[str, int] = {}
    for intake in intakes:
        if intake.highest is not None:
            name = intake.source.name
            seen[name] = max(intake.highest, seen.get(name, intake.highest))
    return seen


def continued(plan: Plan, beat: Beat, seen: Mapping[str, int]) -> Beat:
    """Returns the beat for the layers of a batch whose sources have brought times up to `seen`.

    In event-time order the batch continues to the horizon that its own records bring, if
    `next_beat` allows it.
    """
    if beat.sources is None or not seen:
        return beat
    beyond = further(plan.workflow, beat.sources, beat.clock, beat.started, seen)
    return beat if beyond is None else replace(beat, horizon=greatest(beat.horizon, beyond))


def run_whole(task: Task, intakes: Iterable[Intake | RetryIntake] = ()) -> None:
    """Runs the one-task lane: every layer in memory, in steps to the horizon, then the commit.

    Expects the sources' events, and the feedback of the previous batch, in the task's router;
    `intakes` are those of the sources. In event-time order it continues to the horizon that these
    events bring, as a batch right after it would; with feedback, in steps.
    """
    plan, beat = task.plan, task.beat
    last = continued(plan, beat, seen_times(intakes))
    if not plan.workflow.feedback:  # which comes before what the horizon of this batch lets pass
        beat = task.beat = last
    target, passed, first = beat.horizon, beat.passed, True
    while True:
        inboxes = task.router.take()
        arrived = least(*(events.least for events in inboxes.values() if events))
        known = beat.earliest if first else task.earliest()
        horizon = target
        if target is not None and beat.final is None:
            horizon = step_from(plan.workflow, passed, least(arrived, known), target)
        stepped = replace(beat, horizon=horizon)
        for layer in range(len(plan.layers)):
            task.run_layer(layer, inboxes, stepped)
            for place, events in task.router.take().items():
                inboxes.setdefault(place, Columns()).extend(events)
        if horizon == target:
            if last.horizon == target:
                break
            target, task.beat = last.horizon, last
        passed, first = horizon, False
        for number, events in task.feedback().items():
            task.router.deliver(number, events)
    task.commit()
