"""Commits several shards in parallel: a commit mostly waits for the disk, which can serve several.

Measured with 16 shards and 400 events (docs/design/2026-11-17-batches-as-spark-jobs.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial

from millstream.stores.contract import Changes, ChangesRef, Fence, Store
from millstream.stores.read_rows import NOTHING_READ, ReadRows

THREADS = 4


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The thread pool of a process; the child of a fork gets its own."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix="commit")


def commit_each(
    store: Store,
    fence: Fence,
    changes: Mapping[int, Mapping[str, Changes]],
    read: Mapping[int, ReadRows] = NOTHING_READ,
) -> list[ChangesRef]:
    """Commit shards that are independent of each other."""
    each_at_once(
        partial(store.shard(number).commit, fence, functions, read.get(number))
        for number, functions in changes.items()
    )
    return []


def each_at_once(commits: Iterable[Callable[[], None]]) -> None:
    """Run all commits to their end; then raise the error of the first one that failed."""
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
