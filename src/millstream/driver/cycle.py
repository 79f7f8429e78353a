"""The state machine of an application's batches: takes what happened, returns instructions.

DESIGN
------
A batch b passes these points, in this order:

1. *plan*: decide how far b goes in each source, from the last commit's positions.
2. *run*: run b's tasks; each shard commits b. The tasks stage large output on disk.
3. *stage*: put the rest of the output on disk.
4. *commit*: write `progress`. This is the one moment that counts: readers see b from here on, and
   before it b never happened. A start undoes in every shard what came after it.
5. *publish*: give the sinks the staged output, then delete the staged files. This is repeated
   after a crash; a sink that already has the batch changes nothing.
6. *tell*: tell the sources what is no longer needed of them, and tell the watchers about b.

Publishing and telling b overlap with b + 1. But b + 1 is committed only after b was published, so
that `progress` names a single batch to publish after a crash. A batch that waits for this is
complete and staged; if the run ends first, it never happened.

With a flush interval, a commit is not followed by publishing: a *flush* publishes many batches at
once (see `flush`), while no batch runs.

This module does not wait, read a clock or do I/O. `driver` carries out the instructions; a test
interrupts it after every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from millstream.driver.batch_plan.pace import rest_after
from millstream.driver.batch_plan.planner import BatchPlan
from millstream.engine.progress import Report
from millstream.stores.progress import Progress


@dataclass(frozen=True, slots=True)
class Began:
    """The store was recovered; `progress` is its last committed batch."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class Planned:
    """The next batch was planned; None if there is nothing to do now."""

    plan: BatchPlan | None


@dataclass(frozen=True, slots=True)
class Woken:
    """A source changed, or time passed, while there was nothing to do."""

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
    """All sinks have the last committed batch."""


@dataclass(frozen=True, slots=True)
class LayerFlushed:
    """All committed batches are flushed and published, up to `progress`."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The application was asked to stop."""


@dataclass(frozen=True, slots=True)
class PatienceEnded:
    """The running batch did not end in time after the request to stop."""


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step of the batch, or a flush, failed permanently; None: it was abandoned for a stop."""

    error: Exception | None


@dataclass(frozen=True, slots=True)
class SideFailed:
    """Something outside the batches failed permanently: checking the sources, or telling."""

    error: Exception


@dataclass(frozen=True, slots=True)
class PublishFailed:
    """Publishing the last committed batch failed; None: it was abandoned for a stop."""

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
    """Plan the next batch: answered by Planned."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for input or time: answered by Woken, no sooner than `rest` seconds from now."""

    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Run a batch in its own thread: answered by Ran or StepFailed."""

    plan: BatchPlan
    before: Progress


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the running batch, so that it fails soon."""


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
    """Publish a committed batch in the background: answered by Published or PublishFailed."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class Flush:
    """Flush all committed batches: answered by LayerFlushed or StepFailed.

    `ended`: no further batch follows.
    """

    progress: Progress
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell sources and watchers about a committed batch: answered only if it fails (SideFailed)."""

    before: Progress
    after: Progress


@dataclass(frozen=True, slots=True)
class End:
    """The run has ended, with the error that ended it, if there was one."""

    error: Exception | None


Instruction: TypeAlias = (
    PlanNext | Wait | RunBatch | Cancel | Stage | Commit | Publish | Flush | Tell | End
)


class Phase(Enum):
    """The state of the next batch."""

    IDLE = "there is no batch"
    PLANNING = "it is being planned"
    RUNNING = "its tasks run"
    CANCELLED = "its tasks were cancelled and have not ended yet"
    STAGING = "its output is being staged"
    STAGED = "it waits until the previous batch is published"
    COMMITTING = "it is being committed"
    FLUSHING = "there is no batch, and the committed ones are being flushed"
    ENDED = "the run has ended"


@dataclass(slots=True)
class Cycle:
    """Decides what the driver does next. Used by one thread only."""

    available_now: bool
    """End when there is nothing left to do, instead of waiting for more input."""
    layered: bool
    """Batches are flushed together, by interval."""
    progress: Progress = field(default_factory=Progress)
    """The last committed batch."""
    phase: Phase = Phase.IDLE
    publishing: bool = False
    leaving: bool = False
    """No further batch will be run."""
    error: Exception | None = None
    _staged: Progress | None = None
    _ended: bool = False
    """The last flush was requested, or none is needed."""

    def told(self, happening: Happening) -> list[Instruction]:
        """Returns what to do now that this has happened."""
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
                    return self._next()  # not committed, so it never happened
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
                if self.phase is not Phase.CANCELLED:  # else it failed because we cancelled it
                    self.error = self.error or error
                if self.phase is Phase.FLUSHING:
                    self._ended = True  # the next start flushes
                self.leaving = True
                return self._next()
            case SideFailed(error):
                self.error = self.error or error
                self.leaving = True  # after the running batch
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
            return []  # Published or PublishFailed calls this again
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
        rest = 0.0 if self.leaving or self.available_now else rest_after(after.timing.last_seconds)
        if rest:
            self.phase = Phase.IDLE
            return [*instructions, Wait(rest), Tell(before, after)]
        # The next batch is started first: telling runs beside it.
        return [*instructions, *self._next(), Tell(before, after)]

    def _published(self) -> list[Instruction]:
        """Continues what waited for the sinks."""
        if self.phase is Phase.STAGED and self._staged is not None:
            self.phase = Phase.COMMITTING
            return [Commit(self._staged)]
        return self._next() if self.phase is Phase.IDLE and self.leaving else []

    def _unpublished(self) -> list[Instruction]:
        """Leaves the last committed batch to the next start to publish.

        No other batch may be committed, so the one that is running or waiting never happened.
        """
        if self.phase in (Phase.IDLE, Phase.STAGED):
            return self._next()
        return self._cancel()

    def _cancel(self) -> list[Instruction]:
        if self.phase is not Phase.RUNNING:
            return []
        self.phase = Phase.CANCELLED
        return [Cancel()]
