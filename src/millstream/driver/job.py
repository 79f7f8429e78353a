"""The job that is sent to the tasks of a batch, and the rows that pass between tasks.

Rows are `(task, (function, shard, frame))`: a frame holds thousands of deliveries to one function
in one shard, so that few, large rows are moved. Three kinds of rows are not deliveries: a task's
report, on its way to the driver; the mark that ends a task's rows, with the greatest time of each
source that its task, and those before it, have read; and on a cluster a task's seat, which keeps it
on its host. A task that misses a mark has lost part of its input and must not commit: Spark ends
the input of a cancelled task as if it were complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from millstream.engine.beat import Beat
from millstream.kafka.topic import SourceTopic
from millstream.log.placed_blocks import LogObjects
from millstream.sources.formats import InputSplit
from millstream.stores.shared.manifest import Lineage
from millstream.stores.soft import Soft

REPORT, END, SEAT = -1, -2, -3
"""These take the place of a function's number in rows that are not deliveries."""
Row = tuple[int, tuple[int, int, bytes]]
"""(receiving task, (function, shard, frame))."""


class SourceSplit(NamedTuple):
    """A piece of a source for one task to read."""

    source: str
    format: str
    split: InputSplit
    located: LogObjects | SourceTopic | None = None
    """Its location, if it is part of an event log in the store's place, or of a topic."""


@dataclass(frozen=True, slots=True)
class SharedJob:
    """The part of a batch's job that concerns a shared store."""

    place: str
    """Its address."""
    id: str
    cache: str
    """The folder for copies on the hosts; empty: each host's default (`cache_folder`)."""
    lineages: tuple[Lineage, ...]
    """The last committed change of each shard."""
    bases: frozenset[int] = frozenset()
    """Shards that need a new base."""


@dataclass(frozen=True, slots=True)
class BatchJob:
    """One batch, as sent to its tasks. The functions come from the runner."""

    beat: Beat
    store: Path
    run: str
    """The id of the driver's run. Between two runs the store may have been replaced by another."""
    shards: int
    tasks: int
    splits: tuple[tuple[SourceSplit, ...], ...]
    """The input: one group of splits for each task of the first stage."""
    soft: Soft | None = None
    """The layer that the batch is written to; None: each commit is flushed."""
    shared: SharedJob | None = None
    """None if the store is a folder on this machine."""
    feedback: bool = True
    """True if the previous batch may have left feedback events in the shards."""
