"""Retries a sink that fails, while everything else waits.

A batch is committed before its sinks get it. If a sink cannot be written (a full disk, a missing
folder), it is retried with growing pauses, until it succeeds or the patience is used up. The other
sinks get the batch meanwhile. No further batch is committed, so nothing is lost and the sources
wait. The user is told once about the failure, and once when the sink works again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from millstream.errors import RunError, SinkError
from millstream.retry_pause import doubled
from millstream.settings.settings import Settings
from millstream.stores.trouble import Trouble, write_troubles
from millstream.wall_clock import wall_clock

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
Try = tuple[str, Callable[[], None]]
"""The name of a sink, and a function that gives it the batch. Repeating that changes nothing."""


class Stopped(Exception):  # not an error: it reports a requested stop
    """The application was asked to stop while a sink failed."""

    def __init__(self, error: SinkError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class SinkRetry:
    """Retries sinks for up to `seconds`, and reports failures.

    `wait` waits for some seconds and returns whether to go on; `record` gets the failing sinks.
    """

    seconds: float
    wait: Callable[[float], bool]
    clock: Callable[[], int]
    """The time in microseconds."""
    say: Callable[[str], None]
    record: Callable[[list[Trouble]], None]

    def through(self, tries: Sequence[Try]) -> None:
        """Tries each sink until all have succeeded.

        Raises RunError after `seconds`, and Stopped if `wait` says not to go on.
        """
        failing: dict[str, Trouble] = {}
        left = list(tries)
        for failures in count(1):
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
            oldest = min(failing.values(), key=lambda trouble: trouble.since)
            rest = self.seconds - (self.clock() - oldest.since) / 1e6
            if rest <= 0:
                raise RunError(
                    f"{oldest.error}; it was tried for {self.seconds:g} s (sink_patience). Fix it "
                    "and start again: the batch is kept, and will be published then"
                )
            if not self.wait(min(doubled(failures, FIRST_PAUSE, LONGEST_PAUSE), rest)):
                raise Stopped(SinkError(oldest.error))
            left = still

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
    """Returns the retry policy of a run: records failures in its store, with wall-clock times."""
    record = partial(write_troubles, settings.storage.store)
    record([])  # clears what a killed driver has left
    return SinkRetry(settings.delivery.sink_patience / 1e6, wait, wall_clock, say, record)
