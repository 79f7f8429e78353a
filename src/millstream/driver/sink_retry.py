"""Trying a sink again that fails, while everything else waits.

A batch is committed before its sinks get it. If one of them cannot be written (a full disk, a
folder that is gone), it is tried again, with pauses that grow, until it can be or patience ends.
The other sinks get the batch meanwhile. No further batch is committed, so nothing is lost and the
sources wait. What is wrong is said once, and so is that it works again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from millstream.driver.planner import clock
from millstream.errors import RunError, SinkError
from millstream.settings import Settings
from millstream.stores.trouble import Trouble, write_troubles

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
Try = tuple[str, Callable[[], None]]
"""What a sink is called, and what gives it the batch: again, it changes nothing."""


class Stopped(Exception):  # not an error: it tells that a stop was asked for
    """The application was asked to stop while a sink failed."""

    def __init__(self, error: SinkError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class SinkRetry:
    """How long a sink is tried again, and who is told.

    `wait` takes seconds and says whether to go on; `record` is given the sinks that fail.
    """

    seconds: float
    wait: Callable[[float], bool]
    clock: Callable[[], int]
    """The time in microseconds."""
    say: Callable[[str], None]
    record: Callable[[list[Trouble]], None]

    def through(self, tries: Sequence[Try]) -> None:
        """Try each until all have succeeded; RunError after `seconds`, Stopped when asked to."""
        failing: dict[str, Trouble] = {}
        left, pause = list(tries), FIRST_PAUSE
        while True:
            still: list[Try] = []
            for name, attempt in left:
                try:
                    attempt()
                except SinkError as error:
                    still.append((name, attempt))
                    self._failed(failing, name, error)
                else:
                    self._worked(failing, name)
            if not still:
                return
            oldest = min(failing.values(), key=lambda one: one.since)
            rest = self.seconds - (self.clock() - oldest.since) / 1e6
            if rest <= 0:
                raise RunError(
                    f"{oldest.error}; it was tried for {self.seconds:g} s (sink_patience). Mend it "
                    "and start again: the batch is kept, and is published then"
                )
            if not self.wait(min(pause, rest)):
                raise Stopped(SinkError(oldest.error))
            left, pause = still, min(2 * pause, LONGEST_PAUSE)

    def _failed(self, failing: dict[str, Trouble], name: str, error: SinkError) -> None:
        known = failing.get(name)
        failing[name] = Trouble(name, known.since if known else self.clock(), str(error))
        if known != failing[name]:
            self.record(list(failing.values()))
        if known is None and self.seconds > 0:
            self.say(
                f"{error}; trying again for up to {self.seconds:g} s, and no further batch is "
                "committed meanwhile"
            )

    def _worked(self, failing: dict[str, Trouble], name: str) -> None:
        known = failing.pop(name, None)
        if known is not None:
            self.record(list(failing.values()))
            seconds = (self.clock() - known.since) / 1e6
            self.say(f"{name} works again, after {seconds:.0f} s")


def sink_retry_of(
    settings: Settings, wait: Callable[[float], bool], say: Callable[[str], None]
) -> SinkRetry:
    """The retries of a run: what fails is recorded in its store, by the clock of the wall."""
    record = partial(write_troubles, settings.store)
    record([])  # what a driver that was killed has left
    return SinkRetry(settings.sink_patience / 1e6, wait, clock, say, record)
