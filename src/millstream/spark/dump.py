"""Dumps an update's slates through Spark: one part file for each task.

A task owns some shards, as in a batch, and writes their slates in key order. All tasks must read
the same committed batch, while the application may keep running, and a shard remembers only one
batch back. So all tasks start at once and open their shards together (`snapshot_barrier`); if one
is too late, they all try a newer batch. An open view does not change, so from then on each task can
take its time.

The folder is new, and is removed if the dump fails; the caller renames it when everything is on
disk. Files that a failed attempt has left in it are removed.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import SparkContext, TaskContext
from pyspark.errors import PySparkException

from millstream.column_types import ColumnType
from millstream.durable import sync
from millstream.errors import MillstreamError, RunError, StaleRead, StoreError
from millstream.sinks.slate_files import SUFFIXES, write_slates
from millstream.spark.context import close_context, open_context
from millstream.spark.snapshot_barrier import STALE, follow, lead
from millstream.stores.contract import View
from millstream.stores.home import Home
from millstream.stores.reader import slates_in

LOOK_SECONDS = 0.5
TOGETHER = ".together"


@dataclass(frozen=True, slots=True)
class Dumping:
    """The job that is sent to each task of a dump."""

    store: Path
    update: str
    form: str
    record: ColumnType | None
    """The type of the slates, for Parquet columns."""
    folder: Path
    """The folder to which the parts are written, under random names."""
    tasks: int


@dataclass(frozen=True, slots=True)
class Dumped:
    """The result of a dump."""

    batch: int
    slates: int
    parts: int


def dump(
    store: Path,
    update: str,
    form: str,
    folder: Path,
    *,
    record: ColumnType | None = None,
    context: SparkContext | None = None,
    stop: threading.Event | None = None,
    written: Callable[[int], None] | None = None,
) -> Dumped:
    """Writes every slate of an update, as of one committed batch, to files in `folder`.

    The folder is emptied first. `record` is the type of the slates, for Parquet columns. `written`
    is called now and then with the number of bytes written so far. Raises StaleRead if the
    application commits faster than the tasks can open their shards.
    """
    home = Home.open(store)
    if update not in home.facts.updates:
        raise StoreError(f"{store}: no slates of update {update!r} are there")
    opened = context or open_context("dump", "local[*]", "1g")
    complete = False
    try:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / TOGETHER).mkdir(parents=True)
        tasks = min(opened.defaultParallelism, home.facts.shards)
        dumping = Dumping(store.absolute(), update, form, record, folder.absolute(), tasks)
        parts = _collected(opened, dumping, home, stop or threading.Event(), written)
        dumped = _finish(dumping, parts)
        complete = True
        return dumped
    except OSError as error:
        raise RunError(f"cannot write {folder}: {error.strerror or error}") from None
    finally:
        if not complete:
            shutil.rmtree(folder, ignore_errors=True)
        if context is None:
            close_context(opened)


@dataclass(frozen=True, slots=True)
class _DumpedPart:
    task: int
    batch: int
    slates: int
    file: str
    error: str


def _collected(
    context: SparkContext,
    dumping: Dumping,
    home: Home,
    stop: threading.Event,
    written: Callable[[int], None] | None,
) -> list[_DumpedPart]:
    """Runs the tasks; returns what each of them wrote, in task order."""
    done = threading.Event()

    def over() -> bool:
        return done.is_set() or stop.is_set()

    def watch() -> None:
        try:
            lead(dumping.folder / TOGETHER, dumping.tasks, home.committed, over)
        except MillstreamError:
            pass  # the task that has ended reports the reason
        while not done.wait(LOOK_SECONDS):
            if stop.is_set():
                context.cancelAllJobs()
            elif written is not None:
                written(sum(file.stat().st_size for file in dumping.folder.glob("*.tmp")))

    watcher = threading.Thread(target=watch, name="millstream-dump", daemon=True)
    watcher.start()
    numbers = context.parallelize(range(dumping.tasks), dumping.tasks)
    # A barrier stage: its tasks all start at once, or not at all.
    parts = numbers.barrier().mapPartitions(partial(_write_part, dumping))
    try:
        written_parts: list[_DumpedPart] = parts.collect()
    except (Py4JError, PySparkException) as error:
        if stop.is_set():
            raise RunError("the dump was stopped; nothing of it is left") from None
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise RunError(f"Spark ended the dump: {lines[-1] if lines else error}") from None
    finally:
        done.set()
        watcher.join()
    return sorted(written_parts, key=lambda part: part.task)


def _finish(dumping: Dumping, parts: list[_DumpedPart]) -> Dumped:
    """Renames the parts to their final names; raises the error of a task that failed."""
    for part in parts:
        if part.error == STALE:
            raise StaleRead(
                f"{dumping.store}: the application commits batches faster than the dump can begin; "
                "say --no-spark, which is slower but begins at once, or stop the application for "
                "as long as the dump takes"
            )
        if part.error:
            raise StoreError(part.error)
    keep = {part.file: f"part-{part.task:05d}{SUFFIXES[dumping.form]}" for part in parts}
    shutil.rmtree(dumping.folder / TOGETHER)
    for path in dumping.folder.iterdir():
        if path.name in keep:
            path.rename(path.with_name(keep[path.name]))
        else:
            path.unlink()  # left by a failed attempt
    sync(dumping.folder)
    return Dumped(parts[0].batch, sum(part.slates for part in parts), len(parts))


def _write_part(dumping: Dumping, numbers: Iterable[int]) -> Iterator[_DumpedPart]:
    """Writes the slates of this task's shards, in a worker.

    An error is returned, not raised: Spark's retry would not help.
    """
    context = TaskContext.get()
    assert context is not None
    task, batch, slates, name, error = context.partitionId(), -1, 0, "", ""
    try:
        home = Home.open(dumping.store)
        shards = range(task, home.facts.shards, dumping.tasks)
        with ExitStack() as opened:
            store = home.store()
            opened.callback(store.close)

            def open_at(attempt: ExitStack, batch: int) -> list[View]:
                return [attempt.enter_context(store.shard(n).at(batch)) for n in shards]

            views, batch = follow(dumping.folder / TOGETHER, task, opened, open_at)
            kind, name = home.facts.updates[dumping.update], f"{uuid4().hex}.tmp"
            stored = slates_in(views, home.facts.stored(dumping.update), kind, batch)
            lines = ((slate.key, slate.value, slate.ts) for slate in stored)
            slates = write_slates(dumping.form, dumping.folder / name, lines, dumping.record)
    except StaleRead:
        error = STALE
    except (MillstreamError, OSError) as failed:
        error = str(failed)
    yield _DumpedPart(task, batch, slates, name, error)
