"""What the tasks of a batch do: thin shells around `engine.layers`, over rows in and rows out.

A batch is one task that does everything, or a first stage that reads and maps, followed by a stage
for each layer of updates, with a shuffle by shard before it. The runner calls these and moves the
rows (see `job`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import msgspec

from millstream.driver.inputs import read_split
from millstream.driver.job import END, REPORT, Job, Row, SourceSplit
from millstream.driver.jump_filter import without_jumps
from millstream.durable import with_checksum, write_unsynced, write_whole
from millstream.engine.columns import Columns
from millstream.engine.intake import Intake
from millstream.engine.layers import Task, run_whole
from millstream.engine.plan import Plan
from millstream.engine.points import reach
from millstream.engine.progress import Report
from millstream.errors import RunError
from millstream.sources.address import LOG
from millstream.sources.formats import Chunk, format_named
from millstream.stores.contract import Store
from millstream.stores.home import opened
from millstream.stores.soft import Soft

FLUSH_EVENTS = 65_536
"""Deliveries that a task of the first stage gathers before it sends them on."""
INLINE_ROWS = 2_000
"""Output rows that travel with a report; more are staged in a file."""


_open: dict[tuple[Path, str, Soft | None], Store] = {}
"""The stores of the last jobs in this process, by path, run and layer."""
MOST_OPEN = 8


def _store_of(job: Job) -> Store:
    """The job's store, kept open in this process from batch to batch of a run."""
    name = job.store, job.run, job.soft
    if name not in _open:
        for path, run, soft in [*_open]:
            if (path == job.store and run != job.run) or len(_open) >= MOST_OPEN:
                _open.pop((path, run, soft)).close()
        _open[name] = opened(job.store, job.shards, job.soft)
    return _open[name]


def close_stores() -> None:
    """Let go of the stores that jobs in this process have used."""
    while _open:
        _open.popitem()[1].close()


def whole_batch(plan: Plan, job: Job, attempt: int) -> Report:
    """The one-task lane: everything in this task."""
    with Task(plan, job.beat, _store_of(job), range(job.shards), attempt) as task:
        task.take_feedback()
        intakes = dict(read for group in job.splits for read in _read(job, task, group))
        run_whole(task, intakes.values())
        return _with_staged(job, task.finish(intakes.values()))


def first_stage(plan: Plan, job: Job, number: int, attempt: int) -> Iterator[Row]:
    """The first stage of the shuffled lane: read, map, and send what is for a later layer on."""
    owned = range(number, job.shards, len(job.splits))
    with Task(plan, job.beat, _store_of(job), owned, attempt) as task:
        task.take_feedback()
        intakes: dict[SourceSplit, Intake] = {}
        for piece, intake in _read(job, task, job.splits[number]):
            intakes[piece] = intake
            if _gathered(task) >= FLUSH_EVENTS or task.router.full:
                yield from _deliveries(job, task, partials=task.router.full)
        yield from _deliveries(job, task)
        yield report_row(_with_staged(job, task.finish(intakes.values())))
    yield from _end_marks(job)


def layer_stage(
    plan: Plan,
    job: Job,
    layer: int,
    upstream: int,
    partition: int,
    attempt: int,
    rows: Iterable[Row],
) -> Iterator[Row]:
    """A layer of the shuffled lane: feed its functions, commit, send on what they emit."""
    owned = range(partition, job.shards, job.tasks)
    last, ended = layer == len(plan.layers) - 1, 0
    inboxes: dict[tuple[int, int], Columns] = {}
    passing: list[Row] = []
    for task_number, (function, shard, frame) in rows:
        if function == END:
            ended += 1
        elif function == REPORT or plan.layer_of[function] != layer:
            passing.append((task_number, (function, shard, frame)))
        else:
            inboxes.setdefault((function, shard), Columns()).extend(Columns.unpack(frame))
    if ended != upstream:
        reach("cut-off", job.beat.batch)
        raise RunError(
            f"layer {layer + 1}: the input was cut off after {ended} of {upstream} tasks; nothing "
            "was committed, and the task is tried again"
        )
    with Task(plan, job.beat, _store_of(job), owned, attempt) as task:
        task.run_layer(layer, inboxes, job.beat)
        task.commit()
        reach("between-layers", job.beat.batch)
        report = report_row(_with_staged(job, task.finish()))
        yield from passing
        yield from _deliveries(job, task)
        yield report
    if not last:
        yield from _end_marks(job)


def report_row(report: Report) -> Row:
    """A report on its way to the driver."""
    return 0, (REPORT, 0, msgspec.msgpack.encode(report))


def reports_in(rows: Iterable[Row]) -> list[Report]:
    """The reports among the rows that the last stage gives."""
    return [
        msgspec.msgpack.decode(frame, type=Report)
        for _, (function, _, frame) in rows
        if function == REPORT
    ]


def _read(
    job: Job, task: Task, splits: Iterable[SourceSplit]
) -> Iterator[tuple[SourceSplit, Intake]]:
    """Read splits into the task's router; gives a split and its intake after each chunk of it."""
    sources = {source.name: source for source in task.plan.workflow.sources}
    for piece in splits:
        intake = Intake(sources[piece.source], task.router, job.beat.clock, job.beat.late)
        file = piece.split.path
        for chunk in _chunks(piece, intake, job.beat.clock):
            if chunk.picked is not None and chunk.whole is not None:
                if intake.take_picked(*chunk.picked):
                    yield piece, intake
                    continue
                chunk = chunk.whole()
            intake.take(chunk.records, chunk.raw, file, chunk.line_of, chunk.stamps)
            for bad in chunk.bad:
                intake.refuse(bad.text, bad.error, file, bad.line)
            yield piece, intake


def _chunks(piece: SourceSplit, intake: Intake, clock: int) -> Iterator[Chunk]:
    source = intake.source
    if source.jump is not None and piece.format != LOG:
        return without_jumps(format_named(piece.format, source.text), piece.split, source, clock)
    return read_split(piece.format, piece.split, intake.fields, source.text)


def _gathered(task: Task) -> int:
    return sum(map(len, task.router.placed.values()))


def _deliveries(job: Job, task: Task, *, partials: bool = True) -> Iterator[Row]:
    """What is to be sent on; `partials`: also what is still being merged."""
    for (function, shard), events in task.router.take(partials).items():
        yield shard % job.tasks, (function, shard, events.pack())


def _end_marks(job: Job) -> list[Row]:
    return [(task, (END, 0, b"")) for task in range(job.tasks)]


def _with_staged(job: Job, report: Report) -> Report:
    """The report, with its output moved to a staged file if it is much."""
    rows = sum(map(len, report.outputs.values())) + len(report.late_events)
    rows += len(report.letters) + len(report.dropped_events)
    if rows > INLINE_ROWS:
        staged = job.store / "staging" / f"{job.beat.batch:012d}-{uuid4().hex}.rows"
        body = Report(
            outputs=report.outputs,
            late_events=report.late_events,
            letters=report.letters,
            dropped_events=report.dropped_events,
        )
        write = write_whole if job.soft is None else write_unsynced
        write(staged, with_checksum(msgspec.msgpack.encode(body)))
        report.outputs, report.late_events, report.letters = {}, [], []
        report.dropped_events = []
        report.staged = [staged.name]
    return report
