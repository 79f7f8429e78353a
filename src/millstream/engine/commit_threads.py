"""Commits several shards at once: a commit mostly waits for the disk, which serves many together.

Measured with 16 shards and 400 events (docs/design/2026-11-17-batches-as-spark-jobs.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

THREADS = 4


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads of a process; the child of a fork has its own."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix="commit")


def each_at_once(commits: Iterable[Callable[[], None]]) -> None:
    """Carry out all of them; then raise what the first one that failed has raised."""
    first, *others = [*commits] or [_nothing]
    if not others:
        return first()
    futures = [_threads(os.getpid()).submit(commit) for commit in (first, *others)]
    wait(futures)
    for future in futures:
        future.result()
    return None


def _nothing() -> None:
    pass
