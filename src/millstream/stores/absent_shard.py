"""Stands in for a shard that a partial mirror does not have: reading it raises ShardElsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

from millstream.errors import ShardElsewhere
from millstream.stores.contract import NO_BATCH, Changes, Fence, ShardState
from millstream.stores.read_rows import ReadRows


class AbsentShard:
    """A shard that this mirror does not have; `here` are those that it has."""

    def __init__(self, number: int, here: Collection[int]) -> None:
        self._number = number
        self._here = here

    def before(self, batch: int) -> NoReturn:
        raise self._elsewhere()

    def at(self, committed: int) -> NoReturn:
        raise self._elsewhere()

    def commit(
        self, fence: Fence, changes: Mapping[str, Changes], read: ReadRows | None = None
    ) -> NoReturn:
        raise self._elsewhere()

    def roll_back(self, epoch: int, committed: int) -> NoReturn:
        raise self._elsewhere()

    @property
    def last_batch(self) -> int:
        return NO_BATCH

    def state(self) -> ShardState | None:
        return None

    def close(self) -> None:
        pass

    def _elsewhere(self) -> ShardElsewhere:
        return ShardElsewhere(
            f"shard {self._number} is not here: this mirror has only the shards "
            f"{named_shards(self._here)}; ask a server that has it, or one with all shards "
            "(millstream serve without --shards)"
        )


def named_shards(shards: Collection[int]) -> str:
    """Formats a set of shards as a user writes it.

    >>> named_shards([0, 1, 2, 5, 8, 9])
    '0-2,5,8-9'
    """
    runs: list[list[int]] = []
    for shard in sorted(shards):
        if runs and runs[-1][-1] == shard - 1:
            runs[-1].append(shard)
        else:
            runs.append([shard])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
