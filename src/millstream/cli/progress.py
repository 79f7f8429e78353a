"""What a run shows of itself on stderr: a bar, or a line now and then, and a summary.

A run over what is there has an end, so a terminal gets a bar; a run that goes on, and any log, gets
plain lines about every five seconds. The clock is an argument.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from millstream.spark.report import BatchSummary, RunSummary

SECONDS_BETWEEN_LINES = 5.0


class Display(Protocol):
    """Takes the report of each batch; `close` before anything else is printed."""

    def __call__(self, report: BatchSummary) -> None: ...

    def close(self) -> None: ...


def display(available_now: bool, clock: Callable[[], float]) -> Display:
    """The display that fits where we are."""
    if available_now and sys.stderr.isatty():
        return Bar()
    return Lines(clock)


class Lines:
    """A line at the first batch, then at most one every few seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last: float | None = None
        self._events = 0

    def __call__(self, report: BatchSummary) -> None:
        now = self._clock()
        if self._last is not None and now - self._last < SECONDS_BETWEEN_LINES:
            return
        if self._last is None:
            rate = report.events / report.seconds if report.seconds > 0 else 0.0
        else:
            rate = (report.total_events - self._events) / (now - self._last)
        self._last, self._events = now, report.total_events
        say(line(report, rate))

    def close(self) -> None:
        pass


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
        )
        self._task = self._progress.add_task("", total=None, words="starting Spark")
        self._progress.start()

    def __call__(self, report: BatchSummary) -> None:
        troubles = _troubles(report.total_late, report.total_dead_letters)
        self._progress.update(
            self._task,
            total=max(report.bytes_total, 1),
            completed=report.bytes_done if report.bytes_total else 1,
            words=f"{report.total_events:,} events{troubles}",
        )

    def close(self) -> None:
        self._progress.stop()


def line(report: BatchSummary, rate: float) -> str:
    """One batch, and all so far, in one line."""
    words = [
        f"batch {report.batch}",
        f"{report.total_events:,} events ({rate:,.0f}/s)"
        + _troubles(report.total_late, report.total_dead_letters),
    ]
    if report.bytes_total:
        words.append(f"{report.bytes_done / report.bytes_total:.0%} of the input")
    if report.waiting:
        words.append(f"{report.waiting:,} waiting")
    if report.horizon is not None:
        words.append(f"horizon {moment(report.horizon)}")
    return ", ".join(words)


def summary(result: RunSummary) -> str:
    """The whole run in one line."""
    speed = result.events / result.seconds if result.seconds > 0 else 0.0
    rate = f" ({speed:,.0f} events/s)" if speed >= 1 else ""  # a few events: it is Spark's start
    events = "event" if result.events == 1 else "events"
    batches = "batch" if result.batches == 1 else "batches"
    return (
        f"{result.events:,} {events} in {result.batches:,} {batches}, {result.seconds:.1f} s{rate}"
        f"{_troubles(result.late, result.dead_letters)}"
    )


def moment(ts: int) -> str:
    """A ts as people read it; as a number where the calendar ends."""
    try:
        text = datetime.fromtimestamp(ts // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(ts)
    micros = ts % 1_000_000
    return f"{text}.{micros:06d}Z" if micros else f"{text}Z"


def say(message: str) -> None:
    click.echo(f"millstream: {message}", err=True)


def _troubles(late: int, dead: int) -> str:
    words = f", {late:,} late" if late else ""
    return words + (f", {dead:,} dead letter{'' if dead == 1 else 's'}" if dead else "")
