"""The engine in memory with what goes wrong on a cluster: tasks tried again, drivers that die."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from engine.in_process import InProcess

from bench.crashing import Crash, CrashingStore
from millstream.engine.columns import Columns
from millstream.engine.final_phase import FinalStep
from millstream.engine.layers import Task
from millstream.engine.progress import Report
from millstream.engine.router import Placed
from millstream.errors import StaleCommit
from millstream.model.event import Event


@dataclass
class Retried(InProcess):
    """Every task runs more than once before it counts.

    An earlier attempt sees `share` tenths of its input, as a cancelled task does whose input ends
    as if it were complete, and commits; in the shuffled plan one more commits after its successor
    has, and is refused.
    """

    share: int = 5

    def _one_task(self, beat: Any, events: Sequence[Event]) -> list[Report]:
        super()._one_task(beat, events[: len(events) * self.share // 10])
        return super()._one_task(beat, events)

    def _layer_task(self, beat: Any, layer: int, owned: Any, inboxes: Placed) -> Task:
        super()._layer_task(beat, layer, owned, self._part(inboxes))
        with self._task(beat, owned) as cancelled:
            cancelled.run_layer(layer, self._part(inboxes), beat)
            whole = super()._layer_task(beat, layer, owned, dict(inboxes))
            if cancelled._cells and owned:
                with pytest.raises(StaleCommit):
                    cancelled.commit()
        return whole

    def _part(self, inboxes: Placed) -> Placed:
        return {
            place: Columns.slice(columns, 0, len(columns) * self.share // 10)
            for place, columns in inboxes.items()
        }


@dataclass
class Crashing(InProcess):
    """The driver dies in every batch, after `commits` commits of shards, and starts again."""

    commits: int = 0

    def batch(
        self, events: Sequence[Event], *, final: bool = False, step: FinalStep | None = None
    ) -> None:
        store, clock = self.store, self.clock
        assert isinstance(store, CrashingStore)
        store.left = self.commits
        try:
            super().batch(events, final=final, step=step)
        except Crash:
            store.left = None
            self.epoch += 1
            self.clock = clock  # the offset log replays the batch with its clock
            for number in range(self.shards):
                store.shard(number).roll_back(self.epoch, self.progress.batch)
            super().batch(events, final=final, step=step)
        store.left = None
