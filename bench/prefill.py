"""Fills a store with slates, quickly and by the shard contract.

A run over one event makes the store and commits batch 0. The slates are then put as a repeat of
that batch: to a shard it is a later attempt of the same task, which replaces what the first one
did. So shards, progress and Spark's checkpoint agree, and the next run goes on with batch 1.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench import on_millstream
from bench.data import START, scattered_key, size_of
from millstream.codec import shards_of
from millstream.durable import read_record
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.layout import pack_slate, slates_of

UPDATE = "count"
ATTEMPT = 1 << 40
"""Higher than that of any task of the run."""


def prefill(single: str, store: str, slates: int, active: int) -> dict[str, Any]:
    """A store of the counter with so many slates, none of them of the `active` first keys."""
    on_millstream.run_all("counter", "arrival", single, store, batches=1)
    began = time.perf_counter()
    home = Home.open(Path(store))
    batch, epoch = home.committed(), int(read_record(home.path / "epoch") or b"0")
    if batch != 0:
        raise AssertionError(f"the first run must commit one batch, 0; it committed up to {batch}")
    count, prefix = home.facts.shards, slates_of(UPDATE)
    row = pack_slate(START, b'{"count":1}', {})
    keys: list[list[bytes]] = [[] for _ in range(count)]
    scattered = [scattered_key(number) for number in range(active, active + slates)]
    for key, shard in zip(scattered, shards_of(UPDATE, scattered, count), strict=True):
        keys[shard].append(prefix + key.encode())
    del scattered
    opened = home.store()
    for number, some in enumerate(keys):
        changes = dict.fromkeys(some, row)
        opened.shard(number).commit(Fence(epoch, batch, ATTEMPT), {UPDATE: changes})
        some.clear()
    opened.close()
    return {"seconds": time.perf_counter() - began, "bytes": size_of(home.path / "shards")}
