"""What runs inside Spark's Python workers: thin shells around `engine.layers`."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from millstream.durable import with_checksum, write_unsynced, write_whole
from millstream.engine.columns import Columns
from millstream.engine.intake import Intake
from millstream.engine.layers import Task, run_whole
from millstream.engine.plan import Plan
from millstream.engine.points import reach
from millstream.engine.progress import Report
from millstream.errors import RunError
from millstream.spark.inputs import read_split
from millstream.spark.job import END, REPORT, Job, PackedPlan, SourceSplit
from millstream.stores.contract import Store
from millstream.stores.home import opened
from millstream.stores.soft import Soft

FLUSH_EVENTS = 65_536
"""Deliveries that a task of the first stage gathers before it sends them on."""
INLINE_ROWS = 2_000
"""Output rows that travel with a report; more are staged in a file."""
Row = tuple[int, int, int, bytes]


@lru_cache(maxsize=4)
def _unpacked(packed: PackedPlan) -> Plan:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver to handle
    plan = packed.unpack()
    gc.disable()  # a batch makes many objects and no cycles; Spark collects after each task
    gc.freeze()  # and need not look at the libraries then
    return plan


@lru_cache(maxsize=8)
def _store(path: Path, store_id: str, shards: int, soft: Soft | None) -> Store:
    return opened(path, shards, soft)


def _attempt() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.taskAttemptId()


def _partition() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def whole_batch(job: Job, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The one-task lane: everything in this task."""
    _drain(rows)
    plan = _unpacked(job.plan)
    store = _store(job.store, job.store_id, job.shards, job.soft)
    with Task(plan, job.beat, store, range(job.shards), _attempt()) as task:
        task.take_feedback()
        intakes = dict(read for group in job.splits for read in _read(job, task, group))
        run_whole(task)
        yield _batch([_report_row(job, task.finish(intakes.values()))])


def first_stage(job: Job, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The shuffled lane's first stage: read sources and feedback, run maps, send on by shard."""
    _drain(rows)
    plan = _unpacked(job.plan)
    store = _store(job.store, job.store_id, job.shards, job.soft)
    number, groups = _partition(), len(job.splits)
    with Task(plan, job.beat, store, range(number, job.shards, groups), _attempt()) as task:
        task.take_feedback()
        intakes: dict[SourceSplit, Intake] = {}
        for piece, intake in _read(job, task, job.splits[number]):
            intakes[piece] = intake
            if _gathered(task) >= FLUSH_EVENTS or task.router.full:
                yield _batch(_deliveries(job, task, partials=task.router.full))
        yield _batch([*_deliveries(job, task), _report_row(job, task.finish(intakes.values()))])
    yield _batch(_end_marks(job))


def layer_stage(
    job: Job, layer: int, upstream: int, rows: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A layer of the shuffled lane: feed its functions, commit, send on what they emit."""
    plan = _unpacked(job.plan)
    store = _store(job.store, job.store_id, job.shards, job.soft)
    owned = range(_partition(), job.shards, job.tasks)
    last, ended = layer == len(plan.layers) - 1, 0
    inboxes: dict[tuple[int, int], Columns] = {}
    passing: list[Row] = []
    for batch in rows:
        for task_, function, shard, frame in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if function == END:
                ended += 1
            elif function == REPORT or plan.layer_of[function] != layer:
                passing.append((task_, function, shard, frame))
            else:
                events = Columns.unpack(frame)
                inboxes.setdefault((function, shard), Columns()).extend(events)
    if ended != upstream:
        reach("cut-off", job.beat.batch)
        raise RunError(
            f"layer {layer + 1}: the input was cut off after {ended} of {upstream} tasks; nothing "
            "was committed, Spark tries the task again"
        )
    with Task(plan, job.beat, store, owned, _attempt()) as task:
        task.run_layer(layer, inboxes, job.beat)
        task.commit()
        reach("between-layers", job.beat.batch)
        report = _report_row(job, task.finish())
        yield _batch([*passing, *_deliveries(job, task), report])
    if not last:
        yield _batch(_end_marks(job))


def _read(
    job: Job, task: Task, splits: Iterable[SourceSplit]
) -> Iterator[tuple[SourceSplit, Intake]]:
    """Read splits into the task's router; gives a split and its intake after each chunk of it."""
    sources = {source.name: source for source in task.plan.workflow.sources}
    for piece in splits:
        intake = Intake(sources[piece.source], task.router, job.beat.clock, job.beat.late)
        file = piece.split.path
        for chunk in read_split(piece.format, piece.split, intake.fields):
            if chunk.picked is not None and chunk.whole is not None:
                if intake.take_picked(*chunk.picked):
                    yield piece, intake
                    continue
                chunk = chunk.whole()
            intake.take(chunk.records, chunk.raw, file, chunk.line_of, chunk.stamps)
            for bad in chunk.bad:
                intake.refuse(bad.text, bad.error, file, bad.line)
            yield piece, intake


def _gathered(task: Task) -> int:
    return sum(map(len, task.router.placed.values()))


def _deliveries(job: Job, task: Task, *, partials: bool = True) -> Iterator[Row]:
    """What is to be sent on; `partials`: also what is still being merged."""
    for (function, shard), events in task.router.take(partials).items():
        yield shard % job.tasks, function, shard, events.pack()


def _end_marks(job: Job) -> list[Row]:
    return [(task, END, 0, b"") for task in range(job.tasks)]


def _report_row(job: Job, report: Report) -> Row:
    """The report as a row, its output staged in a file if it is much."""
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
    return 0, REPORT, 0, msgspec.msgpack.encode(report)


def _batch(rows: Iterable[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(columns[0], pa.int32()),
            pa.array(columns[1], pa.int32()),
            pa.array(columns[2], pa.int32()),
            pa.array(columns[3], pa.binary()),
        ],
        names=["task", "function", "shard", "frame"],
    )


def _drain(rows: Iterable[pa.RecordBatch]) -> None:
    for _ in rows:
        pass
