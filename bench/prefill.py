"""Fills a store with slates, quickly, through the shard contract.

A run over one event creates the store and commits batch 0. The slates are then put as a repeat of
that batch: to a shard it is a later attempt of the same task, which replaces the first one. So
shards and progress agree, and the next run continues with batch 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bench import on_millstream
from bench.data import START, scattered_key, size_of
from millstream.codec import shards_of
from millstream.durable import read_record
from millstream.stores.contract import Fence
from millstream.stores.function_counts import FunctionCounts
from millstream.stores.home import Home
from millstream.stores.layout import pack_slate, slates_of
from millstream.stores.progress import Progress

UPDATE = "count"
AT_ONCE = 1_000_000
ATTEMPT = 1 << 40
"""An attempt number higher than that of any task of the run."""


def prefill(single: str, store: str, slates: int, active: int) -> dict[str, Any]:
    """Makes a store of the counter with `slates` slates, none of the first `active` keys."""
    on_millstream.run_all("counter", "arrival", single, store, batches=1)
    began = time.perf_counter()
    home = Home.open(Path(store))
    batch, epoch = home.committed(), int(read_record(home.path / "epoch") or b"0")
    if batch != 0:
        raise AssertionError(f"the first run must commit one batch, 0; it committed up to {batch}")
    scattered = (scattered_key(number) for number in range(active, active + slates))
    _put(home, scattered, Fence(epoch, batch, ATTEMPT))
    return {"seconds": time.perf_counter() - began, "bytes": size_of(home.path / "shards")}


def fill_store(
    store: Path, slates: int, app: str = "bench", key: Callable[[int], str] = scattered_key
) -> None:
    """Makes a store with `slates` slates without a run: only for reading, not for running."""
    home = Home.make(store, app, None, {UPDATE: "dict"})
    _put(home, (key(number) for number in range(slates)), Fence(home.raise_epoch(), 0, 0))
    home.write_progress(Progress(batch=0, functions={UPDATE: FunctionCounts(slates=slates)}))


def _put(home: Home, keys: Iterator[str], fence: Fence) -> None:
    """Put a slate for each key. Keys are processed in groups: many millions take a lot of memory,
    and all keys of a shard must be in memory for its one commit."""
    count, prefix = home.facts.shards, slates_of(UPDATE)
    row = pack_slate(START, b'{"count":1}', {})
    rows: list[list[bytes]] = [[] for _ in range(count)]
    while some := [*islice(keys, AT_ONCE)]:
        for key, shard in zip(some, shards_of(UPDATE, some, count), strict=True):
            rows[shard].append(prefix + key.encode())
    opened = home.store()
    for number, shard_keys in enumerate(rows):
        opened.shard(number).commit(fence, {UPDATE: dict.fromkeys(shard_keys, row)})
        shard_keys.clear()
    opened.close()
