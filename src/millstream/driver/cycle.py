"""The state machine of an application's batches: it is told what happened and says what to do.

DESIGN
------
A batch b passes these points, in this order:

1. *plan*: how far b goes in each source, from the last commit's positions.
2. *run*: b's tasks; each shard commits b. Large output is staged on disk by the tasks.
3. *stage*: the rest of its output is on disk.
4. *commit*: `progress` is written. This is the one moment that counts: readers see b from here on,
   and before it b never happened. A start undoes in every shard what came after it.
5. *publish*: the sinks get what is staged, and the staged files go. Again after a crash, a sink
   that has it already changes nothing.
6. *tell*: sources learn what is no longer needed of them, whoever watches learns of b.

Publishing and telling b run beside b + 1; b + 1 is committed only after b was published, so that
`progress` names one batch to publish after a crash. A batch that waits for that is whole and
staged; if the run ends first, it never happened.

With a flush interval, nothing is published after a commit: a *flush* does it for many batches at
once (see `flush`), while no batch runs.

Nothing here waits, reads a clock or does I/O. `driver` carries out what is said; a test cuts it
off after every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from millstream.driver.pace import rest_after
from millstream.driver.planner import BatchPlan
from millstream.engine.progress import Report
from millstream.stores.progress import Progress


@dataclass(frozen=True, slots=True)
class Began:
    """The store was recovered: `progress` is what stands."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class Planned:
    """What the next batch takes; None: there is nothing to do now."""

    plan: BatchPlan | None


@dataclass(frozen=True, slots=True)
class Woken:
    """While there was nothing to do, a source changed or time passed."""

    flush_due: bool


@dataclass(frozen=True, slots=True)
class Ran:
    """All tasks of the batch have succeeded."""

    plan: BatchPlan
    reports: list[Report]


@dataclass(frozen=True, slots=True)
class Staged:
    """All output is on disk; `after` is the progress that would commit the batch."""

    after: Progress


@dataclass(frozen=True, slots=True)
class Committed:
    """The batch is committed."""

    after: Progress
    flush_due: bool


@dataclass(frozen=True, slots=True)
class Published:
    """The sinks have the last committed batch."""


@dataclass(frozen=True, slots=True)
class LayerFlushed:
    """What was committed is flushed and published; `progress` is what stands."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The application is to stop."""


@dataclass(frozen=True, slots=True)
class PatienceEnded:
    """The running batch did not end in time after a stop was asked for."""


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step of the batch, or a flush, failed for good; None: it gave way to a stop."""

    error: Exception | None


@dataclass(frozen=True, slots=True)
class SideFailed:
    """Something beside the batches failed for good: a look at the sources, or telling."""

    error: Exception


@dataclass(frozen=True, slots=True)
class PublishFailed:
    """The sinks did not get the last committed batch; None: that gave way to a stop."""

    error: Exception | None


Happening: TypeAlias = (
    Began
    | Planned
    | Woken
    | Ran
    | Staged
    | Committed
    | Published
    | LayerFlushed
    | StopAsked
    | PatienceEnded
    | StepFailed
    | SideFailed
    | PublishFailed
)


@dataclass(frozen=True, slots=True)
class PlanNext:
    """Look for what the next batch takes: answered by Planned."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for input or time: answered by Woken, not sooner than `rest` seconds from now."""

    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Run a batch beside everything else: answered by Ran or StepFailed."""

    plan: BatchPlan
    before: Progress


@dataclass(frozen=True, slots=True)
class Cancel:
    """Let the running batch fail soon."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Put the output on disk: answered by Staged or StepFailed."""

    plan: BatchPlan
    reports: list[Report]
    before: Progress


@dataclass(frozen=True, slots=True)
class Commit:
    """Write the progress: answered by Committed or StepFailed."""

    after: Progress


@dataclass(frozen=True, slots=True)
class Publish:
    """Give the sinks a committed batch, beside everything else: Published or PublishFailed."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class Flush:
    """Flush what is committed; `ended`: nothing more is to come. LayerFlushed or StepFailed."""

    progress: Progress
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell sources and watchers of a committed batch. No answer but SideFailed."""

    before: Progress
    after: Progress


@dataclass(frozen=True, slots=True)
class End:
    """It is over; with the error that ended it, if one did."""

    error: Exception | None


Instruction: TypeAlias = (
    PlanNext | Wait | RunBatch | Cancel | Stage | Commit | Publish | Flush | Tell | End
)


class Phase(Enum):
    """What the next batch is at."""

    IDLE = "there is none"
    PLANNING = "it is being planned"
    RUNNING = "its tasks run"
    CANCELLED = "its tasks run, and are to fail"
    STAGING = "its output is being staged"
    STAGED = "it waits until the last one is published"
    COMMITTING = "it is being committed"
    FLUSHING = "there is none, and what is committed is being flushed"
    ENDED = "it is over"


@dataclass(slots=True)
class Cycle:
    """Decides; belongs to one thread."""

    available_now: bool
    """End when there is nothing to do, and do not wait for more."""
    layered: bool
    """Batches are flushed together."""
    progress: Progress = field(default_factory=Progress)
    """The last committed batch."""
    phase: Phase = Phase.IDLE
    publishing: bool = False
    leaving: bool = False
    """No further batch is to be run."""
    error: Exception | None = None
    _staged: Progress | None = None
    _ended: bool = False
    """The last flush was asked for, or none is needed."""

    def told(self, happening: Happening) -> list[Instruction]:
        """What to do now that this happened."""
        if self.phase is Phase.ENDED:
            return []
        match happening:
            case Began(progress):
                self.progress = progress
                return self._next()
            case Planned(plan):
                return self._planned(plan)
            case Woken(flush_due):
                return self._flush() if flush_due and not self.leaving else self._next()
            case Ran(plan, reports):
                if self.phase is Phase.CANCELLED:
                    return self._next()  # it never happened
                self.phase = Phase.STAGING
                return [Stage(plan, reports, self.progress)]
            case Staged(after):
                return self._commit_or_wait(after)
            case Committed(after, flush_due):
                return self._committed(after, flush_due)
            case Published():
                self.publishing = False
                return self._published()
            case LayerFlushed(progress):
                self.progress = progress
                return self._next()
            case StopAsked():
                self.leaving = True
                return self._next() if self.phase is Phase.IDLE else []
            case PatienceEnded():
                return self._cancel()
            case StepFailed(error):
                if self.phase is not Phase.CANCELLED:  # else it was we who let it fail
                    self.error = self.error or error
                if self.phase is Phase.FLUSHING:
                    self._ended = True  # the next start flushes
                self.leaving = True
                return self._next()
            case SideFailed(error):
                self.error = self.error or error
                self.leaving = True  # after the batch that runs
                return self._next() if self.phase is Phase.IDLE else []
            case PublishFailed(error):
                self.publishing = False
                self.error = self.error or error
                self.leaving = True
                return self._unpublished()

    def _next(self) -> list[Instruction]:
        """Between two batches: plan the next one, or leave."""
        self.phase = Phase.IDLE
        if not self.leaving:
            self.phase = Phase.PLANNING
            return [PlanNext(self.progress)]
        if self.publishing:
            return []  # Published or PublishFailed comes back here
        if self.layered and not self._ended:
            self._ended = True
            self.phase = Phase.FLUSHING
            return [Flush(self.progress, ended=True)]
        self.phase = Phase.ENDED
        return [End(self.error)]

    def _planned(self, plan: BatchPlan | None) -> list[Instruction]:
        if self.leaving:
            return self._next()
        if plan is not None:
            self.phase = Phase.RUNNING
            return [RunBatch(plan, self.progress)]
        if self.available_now:
            self.leaving = True
            return self._next()
        self.phase = Phase.IDLE
        return [Wait()]

    def _flush(self) -> list[Instruction]:
        self.phase = Phase.FLUSHING
        return [Flush(self.progress)]

    def _commit_or_wait(self, after: Progress) -> list[Instruction]:
        if self.publishing:
            self.phase, self._staged = Phase.STAGED, after
            return []
        self.phase = Phase.COMMITTING
        return [Commit(after)]

    def _committed(self, after: Progress, flush_due: bool) -> list[Instruction]:
        before, self.progress = self.progress, after
        instructions: list[Instruction] = []
        if after.staged and not self.layered:
            self.publishing = True
            instructions.append(Publish(after))
        if flush_due and not self.leaving:
            return [*instructions, Tell(before, after), *self._flush()]
        rest = 0.0 if self.leaving or self.available_now else rest_after(after.last_seconds)
        if rest:
            self.phase = Phase.IDLE
            return [*instructions, Wait(rest), Tell(before, after)]
        # The next batch is started first: telling runs beside it.
        return [*instructions, *self._next(), Tell(before, after)]

    def _published(self) -> list[Instruction]:
        """What waited for the sinks goes on."""
        if self.phase is Phase.STAGED and self._staged is not None:
            self.phase = Phase.COMMITTING
            return [Commit(self._staged)]
        return self._next() if self.phase is Phase.IDLE and self.leaving else []

    def _unpublished(self) -> list[Instruction]:
        """The last committed batch is left to the next start, and no other may be committed: the
        one that runs or waits never happened."""
        if self.phase in (Phase.IDLE, Phase.STAGED):
            return self._next()
        return self._cancel()

    def _cancel(self) -> list[Instruction]:
        if self.phase is not Phase.RUNNING:
            return []
        self.phase = Phase.CANCELLED
        return [Cancel()]
