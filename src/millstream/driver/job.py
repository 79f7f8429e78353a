"""What the tasks of a batch are told, and the rows that pass between them.

Rows are `(task, (function, shard, frame))`: a frame holds thousands of deliveries to one function
in one shard, so that few, large rows are moved. Two kinds of rows are not deliveries: a task's
report, on its way to the driver, and the mark that ends a task's rows. A task that misses a mark
has been cut off from its input and must not commit: Spark ends the input of a cancelled task as if
it were complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from millstream.engine.beat import Beat
from millstream.sources.formats import Split
from millstream.stores.soft import Soft

REPORT, END = -1, -2
"""Stand in a row for the number of a function."""
Row = tuple[int, tuple[int, int, bytes]]
"""(the task that gets it, (function, shard, frame))."""


class SourceSplit(NamedTuple):
    """A piece of a source for one task to read."""

    source: str
    format: str
    split: Split


@dataclass(frozen=True, slots=True)
class Job:
    """One batch, as its tasks know it; the functions come from the runner."""

    beat: Beat
    store: Path
    run: str
    """Which run of a driver it is of: before the next one, another store may be put in this one's
    place."""
    shards: int
    tasks: int
    splits: tuple[tuple[SourceSplit, ...], ...]
    """What to read: one group for each task of the first stage."""
    soft: Soft | None = None
    """The layer that the batch goes to; None: it is flushed as it is committed."""


def grouped(splits: list[SourceSplit], tasks: int) -> tuple[tuple[SourceSplit, ...], ...]:
    """Splits dealt out to the tasks of the first stage, at least one group."""
    groups = max(1, min(tasks, len(splits)))
    return tuple(tuple(splits[number::groups]) for number in range(groups))
