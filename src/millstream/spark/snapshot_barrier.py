"""Opens the shards as of one committed batch in many tasks at once, while batches continue.

A shard remembers one batch back, so all tasks must open theirs within the time of a batch or two, a
few hundred milliseconds; Spark's own barrier takes up to a second. So the driver and the tasks,
which share the store's disk, communicate by small files in a folder:

    answer-0-3        task 3 is ready
    word-1            the driver: open your shards as of this batch
    answer-1-3        task 3: open, stale, or an error
    word-2            the driver: go, end, or another batch to try
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from millstream.errors import MillstreamError, RunError, StaleRead
from millstream.stores.contract import View

TRIES = 20
PAUSE = 0.005
PATIENCE = 120.0
"""The most seconds to wait for the other side, such as for all tasks to be ready."""
READY, OPEN, STALE, GO, END = "ready", "open", "stale", "go", "end"


def lead(folder: Path, tasks: int, committed: Callable[[], int], over: Callable[[], bool]) -> None:
    """Gets the tasks to open one committed batch. Runs in the driver; the tasks return the result.

    `over` returns True if the tasks will not answer any more.
    """
    for turn in range(TRIES + 1):
        answers = [_hear(folder / f"answer-{turn}-{task}", over) for task in range(tasks)]
        if all(answer == OPEN for answer in answers):
            return _say(folder / f"word-{turn + 1}", GO)
        if turn == TRIES or any(answer not in (READY, OPEN, STALE) for answer in answers):
            return _say(folder / f"word-{turn + 1}", END)
        _say(folder / f"word-{turn + 1}", str(committed()))
    return None


def follow(
    folder: Path, task: int, opened: ExitStack, open_at: Callable[[ExitStack, int], Sequence[View]]
) -> tuple[Sequence[View], int]:
    """Opens a task's views, in agreement with all tasks; returns them and their common batch.

    `opened` then closes the views. Raises StaleRead if batches come too fast, or the error of
    `open_at`.
    """
    _say(folder / f"answer-0-{task}", READY)
    failed: MillstreamError | None = None
    views: Sequence[View] = ()
    batch, attempt = -1, ExitStack()
    for turn in count(1):
        word = _hear(folder / f"word-{turn}", lambda: False)
        if word == GO:
            opened.enter_context(attempt)
            return views, batch
        attempt.close()
        if word == END:
            raise failed or StaleRead("no batch could be read by all tasks")
        batch, attempt, answer = int(word), ExitStack(), OPEN
        try:
            views = open_at(attempt, batch)
        except MillstreamError as error:
            failed = error
            answer = STALE if isinstance(error, StaleRead) else str(error)
        _say(folder / f"answer-{turn}-{task}", answer)
    raise AssertionError


def _say(file: Path, word: str) -> None:
    """Writes a word for the other side; each word is written only once."""
    if file.exists():
        raise RunError(f"{file.name} was said before: Spark tries a task of the dump again")
    hidden = file.with_name(f".{file.name}.{os.getpid()}")
    hidden.write_text(word)
    hidden.rename(file)


def _hear(file: Path, over: Callable[[], bool]) -> str:
    deadline = time.monotonic() + PATIENCE
    while not file.exists():
        if over() or time.monotonic() > deadline:
            raise RunError(f"no {file.name}: a task of the dump did not start, or has ended")
        time.sleep(PAUSE)
    return file.read_text()
