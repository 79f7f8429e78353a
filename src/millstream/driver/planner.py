"""What the next batch takes in: how far it goes in each source, by the pace, and what it is told.

A plan names the positions between which its tasks read. It is made from the last commit's positions
and from nothing else: a batch that was planned and not committed never happened, and the next
driver plans afresh.

A batch is due when a source has more, or when one without records would have something to do: a
timer, a waiting event, feedback (`engine.horizon.is_due`), so that nothing hangs on an idle stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from millstream.driver.inputs import Input, commit, open_input, position_of, register
from millstream.driver.job import SourceSplit
from millstream.driver.pace import divided, first_intake, slowed
from millstream.engine.final_phase import FinalStep, next_step
from millstream.engine.horizon import Lane, is_due, lane_of, pressure_of
from millstream.engine.progress import least
from millstream.model.workflow import Workflow
from millstream.settings import Settings
from millstream.sources.address import Address
from millstream.sources.files import Position
from millstream.stores.home import Home
from millstream.stores.progress import Progress

SPLIT_BYTES = 8 << 20
"""How large a piece of a file one task reads at a time."""
COMMIT_SECONDS = 1.0
"""How often the event logs are told what was committed."""


def clock() -> int:
    """The wall time in microseconds."""
    return time.time_ns() // 1_000


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What a batch takes in, and when it was planned."""

    batch: int
    clock: int
    """Its wall time, for timers and idle sources."""
    final: bool
    """Whether it lets all waiting events through: nothing is to come."""
    positions: dict[str, Position]
    """How far each source is taken in at its end."""
    splits: list[SourceSplit]
    bytes: int
    oldest: int | None
    """When its oldest record came in, if that is known."""
    lane: Lane = "one-task"
    step: FinalStep | None = None
    """What it does in a final phase, if it is part of one."""


class Left(NamedTuple):
    """How far the sources have been taken in, as far as is known."""

    bytes_done: int
    bytes_total: int
    records: int
    """Records in event logs that are to come."""


class Planner:
    """The sources of a run, and what batches take from them. Belongs to one thread."""

    def __init__(
        self,
        home: Home,
        workflow: Workflow,
        settings: Settings,
        sources: dict[str, Address],
        say: Callable[[str], None],
        clock: Callable[[], int] = clock,
    ) -> None:
        self._home = home
        self._workflow = workflow
        self._settings = settings
        self._sources = sources
        self._say = say
        self._clock = clock
        self._next_commit = 0.0
        self.started = None if settings.available_now else clock()
        """The clock when the run began; None: idle time does not count."""
        self._inputs: dict[str, Input] = {}
        texts = {source.name: source.text for source in workflow.sources}
        for name, address in sources.items():
            self._inputs[name] = open_input(home, name, address, texts[name], write=True)

    def check(self, progress: Progress) -> None:
        """Refuse positions that the sources do not have; changes nothing."""
        for name, source in self._inputs.items():
            position = position_of(progress, name)
            if position is not None:
                source.bytes_between(source.begin, position)

    def look(self) -> None:
        """See what is new in the sources."""
        for name, source in self._inputs.items():
            for warning in source.look():
                self._say(f"source {name!r}: {warning}")

    @property
    def folders(self) -> list[str]:
        """Where something changes when there is more."""
        return [folder for source in self._inputs.values() for folder in source.folders]

    def next(self, progress: Progress) -> BatchPlan | None:
        """The batch after `progress`, of what the last look has found; None if there is none."""
        now = max(self._clock(), progress.clock + 1)
        if progress.final is not None:  # it was begun, by this start or an earlier one
            return self._final_plan(progress, now)
        pressure = pressure_of(self._workflow, progress, now, self.started)
        taken = self._take(progress, pressure)
        if taken:
            return self._plan(progress, now, taken, final=False)
        for final in (False, True) if self._settings.final else (False,):
            if is_due(self._workflow, progress, now, self.started, final):
                return self._plan(progress, now, taken, final=final)
        return self._final_plan(progress, now) if self._settings.final else None

    def _final_plan(self, progress: Progress, now: int) -> BatchPlan | None:
        """The next batch of the final phase, if there is one."""
        step = next_step(self._workflow, progress, asked=True)
        if step is None:
            return None
        return replace(self._plan(progress, now, {}, final=True), step=step)

    def _take(self, progress: Progress, pressure: float) -> dict[str, Position]:
        """How far the next batch takes each source that has more; none while pressure is full."""
        if pressure >= 1.0:
            return {}
        starts = {name: self._start(progress, name) for name in self._inputs}
        target = self._settings.batch_seconds / 1e6
        intake = first_intake(progress.intake, self._settings.batch_bytes, target)
        waiting = {
            name: source.bytes_between(starts[name], source.end)
            for name, source in self._inputs.items()
        }
        in_step = self._workflow.order == "event-time"
        parts = divided(slowed(intake, pressure), waiting, in_step=in_step)
        ends = {
            name: source.take(starts[name], max(1, parts[name]))
            for name, source in self._inputs.items()
        }
        return {name: end for name, end in ends.items() if end != starts[name]}

    def _start(self, progress: Progress, name: str) -> Position:
        return position_of(progress, name) or self._inputs[name].begin

    def _plan(
        self, progress: Progress, now: int, taken: dict[str, Position], *, final: bool
    ) -> BatchPlan:
        splits: list[SourceSplit] = []
        size, oldest = 0, None
        for name, until in taken.items():
            source, start = self._inputs[name], self._start(progress, name)
            size += source.bytes_between(start, until)
            oldest = least(oldest, source.stamp_at(start))
            kind = self._sources[name].format
            pieces = source.splits(start, until, SPLIT_BYTES)
            splits.extend(SourceSplit(name, kind, split) for split in pieces)
        lane = lane_of(
            self._workflow,
            self._settings.lane,
            size,
            progress.waiting,
            self._settings.small_bytes,
            progress.pace,
        )
        return BatchPlan(progress.batch + 1, now, final, taken, splits, size, oldest, lane)

    def left(self, progress: Progress) -> Left:
        """How far the sources have been taken in."""
        done = total = records = 0
        for name, source in self._inputs.items():
            position = position_of(progress, name)
            if position is not None:
                done += source.bytes_between(source.begin, position)
                total += source.bytes_between(source.begin, source.end)
                records += source.records_after(position) or 0
        return Left(done, total, records)

    def register(self, progress: Progress) -> None:
        """Make the application known to the event logs, before anything is taken from them."""
        for name, source in self._inputs.items():
            register(self._home, name, source, position_of(progress, name))

    def commit(self, progress: Progress) -> None:
        """Tell the event logs what is no longer needed of them; that may lag behind, and does."""
        now = time.monotonic()
        if now < self._next_commit:
            return
        self._next_commit = now + COMMIT_SECONDS
        for name, source in self._inputs.items():
            commit(self._home, name, source, position_of(progress, name))

    def close(self) -> None:
        """Let go of the sources."""
        for source in self._inputs.values():
            source.close()
