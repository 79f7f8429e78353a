"""The progress of a run on stderr: a bar, live lines or occasional lines, and a summary.

On a terminal, a run over available input shows a bar, since it has an end; a continuous run shows
two lines that stay in place (see `live`). Elsewhere, as in a log, there are plain lines about every
five seconds, and one for the last batch. The clock is an argument.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from millstream.cli.live import LiveLines
from millstream.counted_nouns import counted
from millstream.notices import say

if TYPE_CHECKING:
    from millstream.driver.report import BatchSummary, RunSummary

SECONDS_BETWEEN_LINES = 5.0
SECONDS_OF_QUIET = 2.0
"""After this time without a batch, a line that was held back is shown."""
Cancel = Callable[[], None]


class Display(Protocol):
    """Takes the report of each batch. Call `close` before anything else is printed."""

    def __call__(self, report: BatchSummary) -> None: ...

    def running(self) -> None:
        """Takes the news that everything has started: batches run from now on."""

    def close(self) -> None: ...


def display(
    available_now: bool, clock: Callable[[], float], title: Callable[[], str] = str
) -> Display:
    """Returns the display for this terminal or log; `title` heads the lines of a continuous run."""
    if sys.stderr.isatty():
        return Bar() if available_now else LiveLines(title, clock)
    return Lines(clock, endless=not available_now)


def after(seconds: float, call: Callable[[], None]) -> Cancel:
    """Calls `call` after a time, unless it is cancelled or the process ends first."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer.cancel


class Lines:
    """A line at the first batch, then at most one every few seconds, and one after the last.

    A batch in which nothing happened has no line. An `endless` run says once that it has caught up,
    and shows no share of the input from then on while it keeps up.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        endless: bool = False,
        later: Callable[[float, Callable[[], None]], Cancel] = after,
    ) -> None:
        self._clock = clock
        self._endless = endless
        self._later = later
        self._lock = threading.Lock()
        self._shown: tuple[float, int] | None = None
        """The time of the batch that was last shown, and the number of events until then."""
        self._held: tuple[float, BatchSummary] | None = None
        """A batch that has not been shown yet, and its time."""
        self._cancel: Cancel | None = None
        self._waiting = 0
        self._caught_up = False

    def __call__(self, report: BatchSummary) -> None:
        with self._lock:
            now = self._clock()
            happened = report.events or report.late or report.dead_letters
            if happened or report.waiting != self._waiting:
                self._held, self._waiting = (now, report), report.waiting
                if self._shown is None or now - self._shown[0] >= SECONDS_BETWEEN_LINES:
                    self._show()
                elif self._cancel is None:
                    self._cancel = self._later(SECONDS_OF_QUIET, self._quiet)
            if self._endless and not self._caught_up and report.bytes_done >= report.bytes_total:
                self._caught_up = True
                say("running; waiting for input")

    def running(self) -> None:
        """Shows nothing: a run that has input soon shows its first batch."""

    def close(self) -> None:
        with self._lock:
            if self._cancel is not None:
                self._cancel()
            self._show()

    def _quiet(self) -> None:
        """Shows the held batch if no other has come for a while, else checks again later."""
        with self._lock:
            self._cancel = None
            if self._held is None:
                return
            rest = self._held[0] + SECONDS_OF_QUIET - self._clock()
            if rest > 0:
                self._cancel = self._later(rest, self._quiet)
            else:
                self._show()

    def _show(self) -> None:
        if self._held is None:
            return
        now, report = self._held
        first = (now - report.seconds, report.total_events - report.events)
        since, events = self._shown or first
        rate = (report.total_events - events) / (now - since) if now > since else 0.0
        self._shown, self._held = (now, report.total_events), None
        say(line(report, rate, endless=self._endless))


class Bar:
    """A progress bar over the bytes of all sources seen so far."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        self._progress: Any = Progress(
            TextColumn("millstream:"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,  # the summary replaces it; a copy would mix with the user's own output
        )
        self._task = self._progress.add_task("", total=None, words="starting Spark")
        self._progress.start()

    def __call__(self, report: BatchSummary) -> None:
        troubles = _troubles(
            report.total_late,
            report.total_dead_letters,
            report.total_dropped,
            report.total_diverted,
            report.total_evicted,
        )
        self._progress.update(
            self._task,
            total=max(report.bytes_total, 1),
            completed=report.bytes_done if report.bytes_total else 1,
            words=f"{counted(report.total_events, 'event')}{troubles}",
        )

    def running(self) -> None:
        self._progress.update(self._task, words="the first batch")

    def close(self) -> None:
        self._progress.stop()


def line(report: BatchSummary, rate: float, *, endless: bool = False) -> str:
    """Describes one batch, and the totals so far, in one line."""
    words = [
        f"batch {report.batch}",
        counted(report.total_events, "event")
        + (f" ({rate:,.0f}/s)" if rate >= 0.5 else "")
        + _troubles(
            report.total_late,
            report.total_dead_letters,
            report.total_dropped,
            report.total_diverted,
            report.total_evicted,
        ),
    ]
    if report.bytes_total and not (endless and report.bytes_done >= report.bytes_total):
        words.append(f"{report.bytes_done / report.bytes_total:.0%} of the input")
    if report.waiting:
        words.append(f"{report.waiting:,} waiting")
    if report.horizon is not None:
        words.append(f"horizon {moment(report.horizon)}")
    return ", ".join(words)


def summary(result: RunSummary) -> str:
    """Describes the whole run in one line."""
    speed = result.events / result.seconds if result.seconds > 0 else 0.0
    # With a few events only, the rate would measure the start of Spark.
    rate = f" ({counted(round(speed), 'event')}/s)" if speed >= 1 else ""
    events, batches = counted(result.events, "event"), counted(result.batches, "batch", "batches")
    retried = f", {result.retried:,} retried" if result.retried else ""
    return f"{events} in {batches}, {result.seconds:.1f} s{rate}{retried}" + _troubles(
        result.late, result.dead_letters, result.dropped, result.diverted, result.evicted
    )


def moment(ts: int) -> str:
    """Formats a ts for people; as a number if it is outside the calendar."""
    try:
        text = datetime.fromtimestamp(ts // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(ts)
    micros = ts % 1_000_000
    return f"{text}.{micros:06d}Z" if micros else f"{text}Z"


def _troubles(late: int, dead: int, dropped: int = 0, diverted: int = 0, evicted: int = 0) -> str:
    words = f", {late:,} late" if late else ""
    words += f", {dropped:,} dropped" if dropped else ""
    words += f", {diverted:,} diverted" if diverted else ""
    words += f", {counted(evicted, 'slate')} evicted" if evicted else ""
    return words + (f", {counted(dead, 'dead letter')}" if dead else "")


def end_hints(result: RunSummary, *, final: bool) -> Iterator[str]:
    """Yields hints after a run over available input: on what waits, or on the end of event time."""
    if result.waiting:
        waits = "event waits" if result.waiting == 1 else "events wait"
        them = "it" if result.waiting == 1 else "them"
        yield f"{result.waiting:,} {waits} for the horizon; --final lets {them} through"
    if result.timers and not final:
        yield "timers wait for event time to go on (open sessions, windows); --final fires them"
    if result.ended is not None:
        yield (
            f"event time was ended at {moment(result.ended)}: from now on, an event with a time up "
            "to that is late"
        )
