"""The tasks of a batch: thin shells around `engine.layers` that take rows and yield rows.

A batch is either one task that does everything, or a first stage that reads and maps, followed by a
shuffle by shard and a stage for each layer of updates. The runner calls these functions and moves
the rows (see `job`).

Feedback events are stored in the shards that they come from. The tasks of the first stage read
them, some shards each. On a cluster, where a shard's copy is on one host, separate tasks read them,
which run on the same hosts as the tasks of the layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import uuid4

import msgspec

from millstream.columnar.picked_fields import Fields
from millstream.counted_nouns import counted
from millstream.driver.inputs.jump_filter import without_jumps
from millstream.driver.inputs.source_inputs import log_chunks, read_split
from millstream.driver.inputs.topic_chunks import topic_chunks
from millstream.driver.job import END, REPORT, SEAT, BatchJob, Row, SourceSplit
from millstream.driver.job_store import bases_of, place_of, stage, store_of
from millstream.engine.columns import Columns
from millstream.engine.frames import frame_of, of_frame
from millstream.engine.intake import Intake
from millstream.engine.layers import Task, continued, run_whole, seen_times
from millstream.engine.plan import Plan
from millstream.engine.points import reach
from millstream.engine.progress import Report
from millstream.engine.retry_intake import RetryIntake
from millstream.engine.sink_rows import SinkRows
from millstream.errors import RunError
from millstream.kafka.topic import SourceTopic
from millstream.letters.retry_log import RETRIED, LetterRetry
from millstream.log.placed_blocks import LogObjects, placed_blocks
from millstream.model.source import Source
from millstream.sources.address import LOG
from millstream.sources.formats import Chunk
from millstream.sources.kafka_records import taken_source, topic_attributes
from millstream.sources.named_format import format_named

FLUSH_EVENTS = 65_536
"""The number of deliveries that a task of the first stage buffers before it sends them on."""
INLINE_ROWS = 2_000
"""The most output rows that are sent with a report; more are staged in a file."""
INLINE_BYTES = 4 * 1024 * 1024
"""The most bytes of dead letters that are sent with a report."""
_decode_seen = msgspec.msgpack.Decoder(dict[str, int]).decode


def whole_batch(plan: Plan, job: BatchJob, attempt: int) -> Report:
    """Runs a batch of the one-task lane: everything in this task."""
    with Task(plan, job.beat, store_of(job), range(job.shards), attempt) as task:
        task.take_feedback()
        intakes = dict(read for group in job.splits for read in _read(job, task, group))
        run_whole(task, intakes.values())
        task.report.bases = bases_of(job, range(job.shards))
        return _with_staged(job, task.finish(intakes.values()))


def first_tasks(plan: Plan, job: BatchJob, *, seated: bool) -> int:
    """Returns the number of tasks of the first stage; `seated`: separate tasks read feedback."""
    return len(job.splits) + (job.tasks if seated and _has_feedback(plan, job) else 0)


def first_stage(
    plan: Plan, job: BatchJob, number: int, attempt: int, *, seated: bool = False
) -> Iterator[Row]:
    """Runs a task of the first stage: reads, maps, and sends on events for later layers."""
    if number >= len(job.splits):
        return _feedback_stage(plan, job, number - len(job.splits), attempt)
    return _reading_stage(plan, job, number, attempt, seated)


def _has_feedback(plan: Plan, job: BatchJob) -> bool:
    return job.feedback and bool(plan.emitters)


def _reading_stage(
    plan: Plan, job: BatchJob, number: int, attempt: int, seated: bool
) -> Iterator[Row]:
    owned = range(number, job.shards, len(job.splits))
    if seated or not _has_feedback(plan, job):
        owned = range(0)
    with Task(plan, job.beat, store_of(job), owned, attempt) as task:
        task.take_feedback()
        intakes: dict[SourceSplit, Intake | RetryIntake] = {}
        for piece, intake in _read(job, task, job.splits[number], many=True):
            intakes[piece] = intake
            if _gathered(task) >= FLUSH_EVENTS or task.router.full:
                yield from _deliveries(job, task, partials=task.router.full)
        yield from _deliveries(job, task)
        yield report_row(_with_staged(job, task.finish(intakes.values())))
    yield from _end_marks(job, seen_times(intakes.values()))


def _feedback_stage(plan: Plan, job: BatchJob, partition: int, attempt: int) -> Iterator[Row]:
    """Sends on the feedback events in the shards of one task of the layers."""
    owned = range(partition, job.shards, job.tasks)
    with Task(plan, job.beat, store_of(job), owned, attempt) as task:
        task.take_feedback()
        yield from _deliveries(job, task)
        yield report_row(_with_staged(job, task.finish()))
    yield from _end_marks(job, {})


def layer_stage(
    plan: Plan,
    job: BatchJob,
    layer: int,
    upstream: int,
    partition: int,
    attempt: int,
    rows: Iterable[Row],
) -> Iterator[Row]:
    """Runs a task of a layer: feeds its functions, commits, and sends on what they emit."""
    owned = range(partition, job.shards, job.tasks)
    last, ended = layer == len(plan.layers) - 1, 0
    inboxes: dict[tuple[int, int], Columns] = {}
    seen: dict[str, int] = {}
    passing: list[Row] = []
    for task_number, (function, shard, frame) in rows:
        if function == END:
            ended += 1
            for source, highest in _decode_seen(frame).items():
                seen[source] = max(highest, seen.get(source, highest))
        elif function == SEAT:
            continue
        elif function == REPORT or plan.layer_of[function] != layer:
            passing.append((task_number, (function, shard, frame)))
        else:
            inboxes.setdefault((function, shard), Columns()).extend(of_frame(frame))
    if ended != upstream:
        reach("cut-off", job.beat.batch)
        raise RunError(
            f"layer {layer + 1}: the input was cut off after {ended} of "
            f"{counted(upstream, 'task')}; nothing was committed, and the task is retried"
        )
    beat = continued(plan, job.beat, seen)
    with Task(plan, beat, store_of(job), owned, attempt) as task:
        task.run_layer(layer, inboxes, beat)
        task.commit()
        reach("between-layers", job.beat.batch)
        task.report.bases = bases_of(job, owned)
        report = report_row(_with_staged(job, task.finish()))
        yield from passing
        yield from _deliveries(job, task)
        yield report
    if not last:
        yield from _end_marks(job, seen)


def report_row(report: Report) -> Row:
    """Packs a report as a row, on its way to the driver."""
    return 0, (REPORT, 0, msgspec.msgpack.encode(report))


def reports_in(rows: Iterable[Row]) -> list[Report]:
    """Returns the reports among the rows of the last stage."""
    return [
        msgspec.msgpack.decode(frame, type=Report)
        for _, (function, _, frame) in rows
        if function == REPORT
    ]


def _read(
    job: BatchJob, task: Task, splits: Iterable[SourceSplit], *, many: bool = False
) -> Iterator[tuple[SourceSplit, Intake | RetryIntake]]:
    """Reads splits into the task's router; yields the split and its intake after each chunk."""
    sources, beat = {source.name: source for source in task.plan.workflow.sources}, job.beat
    topics: dict[tuple[str, SourceTopic], list[SourceSplit]] = {}
    for piece in splits:
        if piece.source == RETRIED:
            yield piece, _read_letters(job, task, piece)
            continue
        if isinstance(piece.located, SourceTopic):
            topics.setdefault((piece.source, piece.located), []).append(piece)
            continue
        source = sources[piece.source]
        intake = Intake(source, task.router, beat.clock, beat.late, many=many)
        for chunk in _chunks(job, piece, intake):
            _take(intake, chunk, piece.split.path)
            yield piece, intake
    for (name, topic), pieces in topics.items():
        source = taken_source(sources[name], topic)

        def opened(source: Source = source, topic: SourceTopic = topic) -> Intake:
            attributes = topic_attributes(topic, source)
            return Intake(source, task.router, beat.clock, beat.late, attributes, many=many)

        for piece, intake, topic_chunk in topic_chunks(topic, pieces, opened, job.beat.clock):
            _take(intake, topic_chunk, piece.split.path)
            yield piece, intake


def _take(intake: Intake, chunk: Chunk, file: str) -> None:
    if chunk.picked is not None and chunk.whole is not None:
        if intake.take_picked(chunk.picked, chunk.stamps):
            return
        chunk = chunk.whole()
    intake.take(chunk.records, chunk.raw, file, chunk.line_of, chunk.stamps, chunk.keys)
    for bad in chunk.bad:
        intake.refuse(bad, file)


def _read_letters(job: BatchJob, task: Task, piece: SourceSplit) -> RetryIntake:
    """Takes in the dead letters that are retried."""
    intake = RetryIntake(Source(RETRIED), task.router, job.beat.clock)
    for chunk in _log_chunks(job, piece):
        letters = [msgspec.convert(record, LetterRetry).row for record in chunk.records]
        intake.take(letters, piece.split.path, chunk.line_of(0))
    return intake


def _log_chunks(job: BatchJob, piece: SourceSplit, fields: Fields | None = None) -> Iterator[Chunk]:
    if not isinstance(piece.located, LogObjects):
        return read_split(piece.format, piece.split, fields)
    start, stop = piece.split.start, piece.split.stop or 0
    return log_chunks(placed_blocks(piece.located, start, stop, lambda: place_of(job)), fields)


def _chunks(job: BatchJob, piece: SourceSplit, intake: Intake) -> Iterator[Chunk]:
    source, clock = intake.source, job.beat.clock
    if isinstance(piece.located, LogObjects):
        return _log_chunks(job, piece, intake.fields)
    if source.jump is not None and piece.format != LOG:
        return without_jumps(format_named(piece.format, source.text), piece.split, source, clock)
    return read_split(piece.format, piece.split, intake.fields, source.text)


def _gathered(task: Task) -> int:
    return sum(map(len, task.router.placed.values()))


def _deliveries(job: BatchJob, task: Task, *, partials: bool = True) -> Iterator[Row]:
    """Yields the deliveries to send on; `partials`: also partials that are still being merged."""
    for (function, shard), events in task.router.take(partials).items():
        yield shard % job.tasks, (function, shard, frame_of(events))


def _end_marks(job: BatchJob, seen: dict[str, int]) -> list[Row]:
    """Returns the marks for all tasks; `seen` has the greatest time of each source."""
    frame = msgspec.msgpack.encode(seen)
    return [(task, (END, 0, frame)) for task in range(job.tasks)]


def _with_staged(job: BatchJob, report: Report) -> Report:
    """Returns the report; if it has many output rows, moves them to a staged file."""
    if len(report.rows) > INLINE_ROWS or report.rows.letter_bytes > INLINE_BYTES:
        name = f"{job.beat.batch:012d}-{uuid4().hex}.rows"
        stage(job, name, msgspec.msgpack.encode(report.rows))
        report.rows, report.staged = SinkRows(), [name]
    return report
