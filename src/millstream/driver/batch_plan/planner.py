"""Plans the next batch: how far it goes in each source, by the pace.

A plan names the positions between which its tasks read. It starts from the last commit's positions
and nothing else: a batch that was planned and not committed never happened, and the next driver
plans afresh.

A batch is due when a source has more, or when a batch without records would have something to do: a
timer, a waiting event, feedback (`engine.horizon.is_due`). So nothing gets stuck on an idle stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from millstream.driver.batch_plan.pace import divided, first_intake, slowed
from millstream.driver.inputs.input_shares import InputShare, grouped, parts_of
from millstream.driver.inputs.source_inputs import (
    Input,
    commit,
    open_input,
    open_log,
    position_of,
    register,
)
from millstream.driver.job import SourceSplit
from millstream.engine.final_phase import FinalStep, next_step
from millstream.engine.horizon import Lane, is_due, lane_of, pressure_of
from millstream.engine.progress import least
from millstream.letters.retry_log import RETRIED
from millstream.log.stream_logs import PlaceLogs
from millstream.model.workflow import Workflow
from millstream.settings.setting_parts import BatchSettings
from millstream.sources.address import LOG, Address
from millstream.sources.files import Position
from millstream.stores.home import Home
from millstream.stores.progress import Progress, SourceProgress, decoded
from millstream.wall_clock import wall_clock

COMMIT_SECONDS = 1.0
"""Interval at which committed positions are sent to the event logs."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The input of a batch, and when it was planned."""

    batch: int
    clock: int
    """Its wall time, for timers and idle sources."""
    final: bool
    """True if it lets all waiting events through because no more input will come."""
    positions: dict[str, Position]
    """For each source that it reads: the position at its end."""
    splits: tuple[tuple[SourceSplit, ...], ...]
    """What each task of the first stage reads. There is at least one, and it may read nothing."""
    bytes: int
    oldest: int | None
    """The arrival time of its oldest record, if known."""
    lane: Lane = "one-task"
    step: FinalStep | None = None
    """Its step of a final phase, if it is part of one."""


class Left(NamedTuple):
    """The amount of input that was taken in and that is left, as far as known."""

    bytes_done: int
    bytes_total: int
    records: int
    """Records in event logs that are not taken in yet."""


class Planner:
    """Plans what batches take from the sources of a run. Used by one thread only."""

    def __init__(
        self,
        home: Home,
        workflow: Workflow,
        batches: BatchSettings,
        sources: dict[str, Address],
        say: Callable[[str], None],
        clock: Callable[[], int] = wall_clock,
        logs: PlaceLogs | None = None,
    ) -> None:
        """`logs`: set if the store is in a place."""
        self._home = home
        self._workflow = workflow
        self._batches = batches
        self._sources = sources
        self._say = say
        self._clock = clock
        self._next_commit = 0.0
        self._untold: Progress | None = None
        """A commit that the sources have not been told yet.

        After the last batch no other batch follows to do it.
        """
        self.spread = False
        """True if the shards are on several hosts, according to the runner."""
        self.tasks = 1
        """The number of tasks that may read a batch."""
        self.started = None if batches.available_now else clock()
        """The clock at the start of the run; None: idle time does not count."""
        self._inputs: dict[str, Input] = {}
        texts = {source.name: source.text for source in workflow.sources}
        progress = Progress() if logs is None else decoded(home.read_progress())
        for name, address in sources.items():
            position = position_of(progress, name)
            self._inputs[name] = open_input(
                home,
                name,
                address,
                texts[name],
                write=True,
                logs=logs,
                position=position,
                wait=batches.available_now,
            )
        position = position_of(progress, RETRIED)
        self._inputs[RETRIED] = open_log(home, str(home.log_of(RETRIED).absolute()), logs, position)

    def check(self, progress: Progress) -> None:
        """Raises an error if the sources lack the positions of `progress`; changes nothing."""
        for name, source in self._inputs.items():
            position = position_of(progress, name)
            if position is not None:
                source.bytes_between(source.begin, position)

    @property
    def streams(self) -> list[str]:
        """The streams whose logs in the store's place are read."""
        streams = dict.fromkeys(source.stream for source in self._inputs.values())
        return [stream for stream in streams if stream]

    def watch(self, changed: Callable[[], None]) -> None:
        """Has `changed` called for new records that change no folder."""
        for source in self._inputs.values():
            source.watch(changed)

    def look(self) -> None:
        """Checks the sources for new records, and sends them a commit that is still due."""
        if self._untold is not None:
            self.commit(self._untold)
        for name, source in self._inputs.items():
            for warning in source.look():
                self._say(f"source {name!r}: {warning}")

    @property
    def folders(self) -> list[str]:
        """The folders that change when there are new records."""
        return [folder for source in self._inputs.values() for folder in source.folders]

    def next(self, progress: Progress) -> BatchPlan | None:
        """Plans the batch after `progress` from what the last `look` found; None if none is due."""
        now = max(self._clock(), progress.clock + 1)
        for name, source in self._inputs.items():
            source.learn(progress.sources.get(name, SourceProgress()).record_bytes)
        if progress.final is not None:  # a final phase was begun, in this run or an earlier one
            return self._final_plan(progress, now)
        pressure = pressure_of(self._workflow, progress, now, self.started)
        taken = self._take(progress, pressure)
        if taken:
            return self._plan(progress, now, taken, final=False)
        for final in (False, True) if self._batches.final else (False,):
            if is_due(self._workflow, progress, now, self.started, final):
                return self._plan(progress, now, taken, final=final)
        return self._final_plan(progress, now) if self._batches.final else None

    def _final_plan(self, progress: Progress, now: int) -> BatchPlan | None:
        """Plans the next batch of the final phase, if there is one."""
        step = next_step(self._workflow, progress)
        if step is None:
            return None
        return replace(self._plan(progress, now, {}, final=True), step=step)

    def _take(self, progress: Progress, pressure: float) -> dict[str, Position]:
        """Returns the new position of each source that has more; nothing while pressure is full."""
        if pressure >= 1.0:
            return {}
        starts = {name: self._start(progress, name) for name in self._inputs}
        target = self._batches.batch_seconds / 1e6
        intake = first_intake(progress.timing.intake, self._batches.batch_bytes, target)
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
        starts = {name: self._start(progress, name) for name in taken}
        sizes = {
            name: self._inputs[name].bytes_between(starts[name], until)
            for name, until in taken.items()
        }
        size, oldest = sum(sizes.values()), None
        shares: list[tuple[int, list[SourceSplit]]] = []
        for name, until in taken.items():
            source, start = self._inputs[name], starts[name]
            oldest = least(oldest, source.stamp_at(start))
            for share in source.shares(start, until, parts_of(sizes[name], self.tasks)):
                shares.append((share.bytes, self._located(name, share)))
        lane = lane_of(
            self._workflow,
            self._batches.lane,
            size,
            progress.waiting,
            self._batches.small_bytes,
            progress.timing.pace,
            spread=self.spread,
        )
        splits = grouped(shares, self.tasks)
        return BatchPlan(progress.batch + 1, now, final, taken, splits, size, oldest, lane)

    def _located(self, name: str, share: InputShare) -> list[SourceSplit]:
        source, kind = self._inputs[name], LOG if name == RETRIED else self._sources[name].format
        return [SourceSplit(name, kind, split, source.located(split)) for split in share.splits]

    def left(self, progress: Progress) -> Left:
        """Returns how far the sources have been taken in."""
        done = total = records = 0
        for name, source in self._inputs.items():
            position = position_of(progress, name)
            if position is not None:
                done += source.bytes_between(source.begin, position)
                total += source.bytes_between(source.begin, source.end)
                records += source.records_after(position) or 0
        return Left(done, total, records)

    def register(self, progress: Progress) -> None:
        """Registers the application as a reader of the event logs, before it reads from them."""
        for name, source in self._inputs.items():
            if name != RETRIED:  # this log is kept for ever
                register(self._home, name, source, position_of(progress, name))

    def commit(self, progress: Progress) -> None:
        """Tells the event logs what is no longer needed. Rate-limited, so this lags behind."""
        now = time.monotonic()
        self._untold = progress
        if now < self._next_commit:
            return
        self._next_commit, self._untold = now + COMMIT_SECONDS, None
        for name, source in self._inputs.items():
            if name != RETRIED:
                commit(self._home, name, source, position_of(progress, name))

    def close(self) -> None:
        """Sends a commit that is still due, and closes the sources."""
        if self._untold is not None:
            self._next_commit = 0.0
            self.commit(self._untold)
        for source in self._inputs.values():
            source.close()
