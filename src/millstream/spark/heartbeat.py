"""The heartbeat: the one streaming source of a query. It plans batches and reads nothing.

An offset holds the batch's clock, the position of each source, the clock when the run began and
whether it is to let all events through. Spark writes it to its offset log before the batch runs and
replays it after a crash, so a batch has its inputs and its time for ever. What lies between two
positions is read by the batch's own tasks, which spares the way through the JVM; Spark never runs
this source's `read`.

A new offset is due when a source has more, or when a batch without records would have something to
do: a timer, a waiting event, feedback (`engine.horizon.is_due`), so that nothing hangs on an idle
stream.

This runs in a process of its own that Spark starts; it knows the driver's progress from the store.
"""

from __future__ import annotations

import base64
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)

from millstream.checkpoint import with_check
from millstream.engine.horizon import is_due, pressure_of
from millstream.engine.pace import divided, first_intake, slowed
from millstream.model.workflow import Workflow
from millstream.sources.address import Address
from millstream.spark.inputs import open_input
from millstream.spark.pickling import dumps, loads
from millstream.stores.home import Home
from millstream.stores.progress import Progress, decoded

PATIENCE = 0.25
"""Seconds that a look for something new may take before Spark is told that there is nothing."""
PAUSE = 0.02
Offset = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Planned:
    """What the heartbeat must know; sent to its process."""

    store: Path
    workflow: Workflow
    sources: dict[str, Address]
    batch_bytes: int
    target: float
    """How long a batch is to take, in seconds."""
    available_now: bool
    final: bool
    started: int | None
    """The clock when the run began; None: idle time does not count."""

    def to_option(self) -> str:
        return base64.b64encode(dumps(self, self.workflow)).decode()

    @classmethod
    def from_option(cls, option: str) -> Planned:
        planned: Planned = loads(base64.b64decode(option))
        return planned


def clock() -> int:
    return time.time_ns() // 1_000


class HeartbeatReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the next batch whenever Spark asks."""

    def __init__(self, planned: Planned) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver to handle
        self._planned = planned
        self._home = Home.open(planned.store)
        self._inputs = {
            name: open_input(self._home, name, address, write=True)
            for name, address in planned.sources.items()
        }

    def initialOffset(self) -> Offset:
        return with_check({"clock": 0, "positions": {}, "final": False, "started": None})

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._refresh()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        planned = self._planned
        progress = decoded(self._home.read_progress())
        deadline = time.monotonic() + PATIENCE
        while True:
            if not planned.available_now:
                self._refresh()
            now = max(clock(), start["clock"] + 1)
            pressure = pressure_of(planned.workflow, progress, now, planned.started)
            positions = self._take(start["positions"], progress, pressure)
            if positions != start["positions"]:
                return self._offset(now, positions, final=False)
            for final in (False, True) if planned.final else (False,):
                if is_due(planned.workflow, progress, now, planned.started, final):
                    return self._offset(now, positions, final=final)
            if planned.available_now or time.monotonic() > deadline:
                return start
            time.sleep(PAUSE)

    def _offset(self, now: int, positions: dict[str, Any], *, final: bool) -> Offset:
        started = self._planned.started
        return with_check(
            {"clock": now, "positions": positions, "final": final, "started": started}
        )

    def _refresh(self) -> None:
        for name, source in self._inputs.items():
            for warning in source.look():
                print(f"millstream: source {name!r}: {warning}", file=sys.stderr, flush=True)

    def _take(
        self, positions: dict[str, Any], progress: Progress, pressure: float
    ) -> dict[str, Any]:
        """How far the next batch takes each source; nowhere while the pressure is full."""
        taken = dict(positions)
        if pressure >= 1.0:
            return taken
        starts = {
            name: positions.get(name) or source.begin for name, source in self._inputs.items()
        }
        planned = self._planned
        intake = first_intake(progress.intake, planned.batch_bytes, planned.target)
        waiting = {
            name: source.bytes_between(starts[name], source.end)
            for name, source in self._inputs.items()
        }
        in_step = planned.workflow.order == "event-time"
        parts = divided(slowed(intake, pressure), waiting, in_step=in_step)
        for name, source in self._inputs.items():
            start = starts[name]
            until = source.take(start, max(1, parts[name]))
            if until != start:
                taken[name] = until
        return taken

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return iter(())

    def stop(self) -> None:
        for source in self._inputs.values():
            source.close()


class Heartbeat(DataSource):
    """The data source of that name, for Spark."""

    @classmethod
    def name(cls) -> str:
        return "millstream_heartbeat"

    def schema(self) -> str:
        return "beat int"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return HeartbeatReader(Planned.from_option(self.options["planned"]))
