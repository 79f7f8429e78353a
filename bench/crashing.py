"""A store whose process dies during the commits of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millstream.stores.commit_threads import commit_each
from millstream.stores.contract import (
    Changes,
    ChangesRef,
    Fence,
    Layer,
    Shard,
    ShardState,
    Store,
    View,
)
from millstream.stores.read_rows import NOTHING_READ, ReadRows


class Crash(Exception):  # simulates the end of the process
    """The process has died."""


@dataclass
class CrashingShard:
    """A shard whose process dies before a commit once the store's commits are used up."""

    shard: Shard
    store: CrashingStore

    def before(self, batch: int) -> View:
        return self.shard.before(batch)

    def at(self, committed: int) -> View:
        return self.shard.at(committed)

    def commit(
        self, fence: Fence, changes: Mapping[str, Changes], read: ReadRows | None = None
    ) -> None:
        if self.store.left is not None:
            if self.store.left == 0:
                raise Crash
            self.store.left -= 1
        self.shard.commit(fence, changes, read)

    def roll_back(self, epoch: int, committed: int) -> bool:
        return self.shard.roll_back(epoch, committed)

    @property
    def last_batch(self) -> int:
        return self.shard.last_batch

    def state(self) -> ShardState | None:
        return self.shard.state()

    def close(self) -> None:
        self.shard.close()


@dataclass
class CrashingStore:
    """A store that lets `left` more commits pass; None: all of them."""

    store: Store
    left: int | None = None

    @property
    def shards(self) -> int:
        return self.store.shards

    @property
    def layer(self) -> Layer | None:
        return self.store.layer

    def shard(self, number: int) -> CrashingShard:
        return CrashingShard(self.store.shard(number), self)

    def commit(
        self,
        fence: Fence,
        changes: Mapping[int, Mapping[str, Changes]],
        read: Mapping[int, ReadRows] = NOTHING_READ,
    ) -> list[ChangesRef]:
        return commit_each(self, fence, changes, read)

    def close(self) -> None:
        self.store.close()
