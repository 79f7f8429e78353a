"""A world for the cycle: shards, staging, a record and a sink, which a crash leaves as they are.

Records are numbers. A batch takes the next few; its shards add them up, its sink gets each of them.
What runs beside the batches (tasks, publishing, flushes) completes when `choose` says so, and the
process may be cut off before and after every single step. Then a new driver recovers as the real
one does, with a new cycle over what is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from millstream.driver import cycle
from millstream.driver.batch_plan.planner import BatchPlan
from millstream.engine.progress import Report
from millstream.stores.progress import Progress, SourceProgress

SHARDS = 2


class CutOff(Exception):
    """The process ends here."""


@dataclass
class Shard:
    """Remembers one batch back, as the contract says."""

    rows: dict[int, int] = field(default_factory=dict)
    """Each record with the batch that brought it."""
    last: int = -1

    def commit(self, batch: int, records: list[int]) -> None:
        assert batch in (self.last, self.last + 1) or self.last < batch
        self.rows = {record: by for record, by in self.rows.items() if by != batch}
        assert not set(records) & set(self.rows), "a record is counted twice"
        self.rows |= dict.fromkeys(records, batch)
        self.last = max(self.last, batch)

    def roll_back(self, committed: int) -> None:
        assert self.last <= committed + 1, "a shard is further ahead than it remembers"
        self.rows = {record: by for record, by in self.rows.items() if by <= committed}


@dataclass
class Disk:
    """The durable state, which outlives the process."""

    records: int
    progress: Progress = field(default_factory=Progress)
    shards: list[Shard] = field(default_factory=lambda: [Shard() for _ in range(SHARDS)])
    staged: dict[str, list[int]] = field(default_factory=dict)
    published: dict[int, list[int]] = field(default_factory=dict)
    flushed: int = -1

    def publish(self, batch: int, names: list[str]) -> None:
        """Give the sink a batch; again, it changes nothing."""
        if all(name in self.staged for name in names):
            rows = [record for name in names for record in self.staged[name]]
            assert batch in self.published or not set(rows) & self.seen, "output is doubled"
            self.published.setdefault(batch, rows)
        for name in names:
            self.staged.pop(name, None)

    @property
    def seen(self) -> set[int]:
        return {record for rows in self.published.values() for record in rows}

    @property
    def counted(self) -> set[int]:
        return {record for shard in self.shards for record in shard.rows}


@dataclass
class World:
    """A process over a disk."""

    disk: Disk
    choose: Callable[[int], int]
    """Chooses which of a number of possible steps happens next."""
    cut_after: int
    """The number of steps for which the process lives."""
    layered: bool = False
    fails: frozenset[str] = frozenset()
    """Steps that fail for good: `run`, `stage`, `publish`, `flush`, `tell`."""
    stop_after: int = 1 << 30
    rests: bool = False
    """True for a live application, which rests after each batch and is stopped when it has
    everything."""
    steps: int = 0
    pending: list[tuple[str, Callable[[], cycle.Happening | None]]] = field(default_factory=list)
    flushes: int = 0
    """Flushes that have failed."""
    ended: bool = False
    error: Exception | None = None

    def live(self) -> None:
        """Recover, and carry out what the cycle says until it ends or the process is cut off."""
        self.recover()
        machine = cycle.Cycle(available_now=not self.rests, layered=self.layered)
        todo = deque(machine.told(cycle.Began(self.disk.progress)))
        asked = False
        while not self.ended or todo:
            if self.steps >= self.stop_after and not asked:
                asked = True
                todo.extend(machine.told(cycle.StopAsked()))
                todo.extend(machine.told(cycle.PatienceEnded()))
            happened = None
            if todo and (not self.pending or self.choose(2)):
                happened = self.carry_out(todo.popleft(), machine)
            elif self.pending:
                _, complete = self.pending.pop(self.choose(len(self.pending)))
                self.step()
                happened = complete()
            else:
                assert self.ended, f"the cycle hangs in {machine.phase}"
            if happened is not None:
                todo.extendleft(reversed(machine.told(happened)))
        assert {name for name, _ in self.pending} <= {"rest"}, "it ended while something ran"

    def step(self) -> None:
        self.steps += 1
        if self.steps > self.cut_after:
            raise CutOff

    def recover(self) -> None:
        disk = self.disk
        for shard in disk.shards:
            self.step()
            shard.roll_back(disk.progress.batch)
        self.step()
        self.catch_up(disk.progress)

    def catch_up(self, progress: Progress) -> None:
        if self.layered:
            for batch, names in progress.unpublished:
                self.step()
                self.disk.publish(batch, names)
            progress.unpublished = []
        else:
            self.disk.publish(progress.batch, progress.staged)
        self.disk.staged.clear()

    def carry_out(
        self, instruction: cycle.Instruction, machine: cycle.Cycle
    ) -> cycle.Happening | None:
        self.step()
        match instruction:
            case cycle.PlanNext(progress):
                return cycle.Planned(self.plan(progress))
            case cycle.RunBatch(plan, _):
                self.begin("run", lambda: self.run(plan))
            case cycle.Cancel():
                pass  # the tasks may have ended by themselves
            case cycle.Stage(plan, _, before):
                return self.stage(plan, before)
            case cycle.Commit(after):
                return self.commit(after)
            case cycle.Publish(progress):
                self.begin("publish", lambda: self.publish(progress))
            case cycle.Flush(progress, _):
                self.begin("flush", lambda: self.flush(progress))
            case cycle.Tell(before, after):
                assert after.batch == before.batch + 1
                if "tell" in self.fails:
                    return cycle.SideFailed(RuntimeError("a source is gone"))
            case cycle.End(error):
                self.ended, self.error = True, error
            case cycle.Wait(rest):
                assert self.rests, "nothing is to be waited for"
                if rest:
                    self.begin("rest", lambda: woken(machine))
                else:
                    self.stop_after = 0
        return None

    def begin(self, name: str, complete: Callable[[], cycle.Happening | None]) -> None:
        beside = {known for known, _ in self.pending}
        assert name not in beside, f"two of {name} at once"
        assert "flush" not in beside, f"{name} beside a flush"
        self.pending.append((name, complete))

    def plan(self, progress: Progress) -> BatchPlan | None:
        start = taken(progress)
        until = min(self.disk.records, start + 2 + self.choose(2))
        if until == start:
            return None
        positions = {"numbers": [until, 0]}
        return BatchPlan(progress.batch + 1, 0, False, positions, ((),), until - start, None)

    def batch_records(self, plan: BatchPlan) -> list[int]:
        until = plan.positions["numbers"][0]
        return list(range(until - plan.bytes, until))

    def run(self, plan: BatchPlan) -> cycle.Happening:
        for number, shard in enumerate(self.disk.shards):
            self.step()
            if "run" in self.fails and number:
                return cycle.StepFailed(RuntimeError("a task failed"))
            records = [one for one in self.batch_records(plan) if one % SHARDS == number]
            shard.commit(plan.batch, records)
        return cycle.Ran(plan, [Report()])

    def stage(self, plan: BatchPlan, before: Progress) -> cycle.Happening:
        if "stage" in self.fails:
            return cycle.StepFailed(RuntimeError("the disk is full"))
        name = f"{plan.batch}-{self.steps}"
        self.disk.staged[name] = self.batch_records(plan)
        self.step()
        until = plan.positions["numbers"]
        sources = {"numbers": SourceProgress(position=until)}
        unpublished = [*before.unpublished, (plan.batch, [name])] if self.layered else []
        after = Progress(batch=plan.batch, sources=sources, staged=[name], unpublished=unpublished)
        after.timing.last_seconds = 0.01 if self.rests else 0.0
        return cycle.Staged(after)

    def commit(self, after: Progress) -> cycle.Happening:
        disk = self.disk
        assert after.batch == disk.progress.batch + 1
        assert self.layered or disk.progress.batch < 0 or disk.progress.batch in disk.published
        disk.progress = after
        self.step()
        return cycle.Committed(after, flush_due=self.layered and self.choose(2) == 0)

    def publish(self, progress: Progress) -> cycle.Happening:
        if "publish" in self.fails:
            return cycle.PublishFailed(RuntimeError("the sink is gone"))
        self.disk.publish(progress.batch, progress.staged)
        self.step()
        return cycle.Published()

    def flush(self, progress: Progress) -> cycle.Happening:
        if "flush" in self.fails:
            self.flushes += 1
            return cycle.StepFailed(RuntimeError("the sink is gone"))
        self.disk.flushed = progress.batch
        for batch, names in progress.unpublished:
            self.step()
            self.disk.publish(batch, names)
        progress.unpublished = []
        return cycle.LayerFlushed(progress)


def woken(machine: cycle.Cycle) -> cycle.Happening | None:
    """A rest is over, if it still matters."""
    return cycle.Woken(flush_due=False) if machine.phase is cycle.Phase.IDLE else None


def taken(progress: Progress) -> int:
    """Returns the number of records of the batches up to this one."""
    source = progress.sources.get("numbers")
    return source.position[0] if source is not None and source.position else 0


def lived(
    disk: Disk,
    cut_after: int,
    choose: Callable[[int], int] = lambda options: options - 1,
    *,
    layered: bool = False,
    fails: frozenset[str] = frozenset(),
    stop_after: int = 1 << 30,
    rests: bool = False,
) -> World:
    """A process that has lived so long, or until it ended."""
    world = World(disk, choose, cut_after, layered, fails, stop_after, rests)
    try:
        world.live()
    except CutOff:
        pass
    return world
