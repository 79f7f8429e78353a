"""The terminal display of a continuous run: two lines that stay in place.

    retail is running: http://127.0.0.1:8470
    4,012 events/s   latency 0.21 s   behind 0   slates 1,204   dead letters 0   batch 482

They change at most twice a second. Rates are over the last few seconds. The clock is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from millstream.driver.report import BatchSummary

WINDOW = 5.0
"""The seconds over which a rate is computed."""


class EventRate:
    """The events per second, from the totals of the last few seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, total: int, before: int) -> None:
        """Adds the totals after and before a batch."""
        now = self._clock()
        if not self._seen:
            self._seen.append((now, before))
        self._seen.append((now, total))

    def __call__(self) -> float:
        """Returns the present rate, which falls while nothing comes."""
        now = self._clock()
        while len(self._seen) > 1 and self._seen[1][0] < now - WINDOW:
            self._seen.popleft()
        if len(self._seen) < 2:
            return 0.0
        (_, first), (_, last) = self._seen[0], self._seen[-1]
        since = max(self._seen[0][0], now - WINDOW)
        return (last - first) / max(1.0, now - since)


class LiveLines:
    """The display. `title` is called at each refresh, because the address is known later."""

    def __init__(
        self, title: Callable[[], str], clock: Callable[[], float], console: Console | None = None
    ) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._title = title
        self._rate = EventRate(clock)
        self._is_running = False
        self._report: BatchSummary | None = None
        self._latency: float | None = None
        self._waited = 0.0
        self._live = RichLive(
            console=console or Console(stderr=True),
            get_renderable=self.lines,
            refresh_per_second=2,
            transient=True,  # the summary replaces the lines
            redirect_stdout=False,
            redirect_stderr=True,  # a warning of the planner goes above the lines
        )
        self._live.start()

    def __call__(self, report: BatchSummary) -> None:
        self._report = report
        self._rate.add(report.total_events, report.total_events - report.events)
        if report.latency is not None:
            self._latency, self._waited = report.latency, report.waited

    def running(self) -> None:
        self._is_running = True

    def close(self) -> None:
        self._live.stop()

    def lines(self) -> Text:
        """Returns the two lines in their present state."""
        from rich.text import Text

        text = Text(f"{self._title()}\n", no_wrap=True, overflow="ellipsis")
        report = self._report
        if report is None:
            state = "waiting for the first batch" if self._is_running else "starting"
            return text.append(f"{state} ...", style="dim")
        latency = "-" if self._latency is None else f"{self._latency:.2f} s"
        latency += f" ({self._waited:.2f} s waiting for the horizon)" if self._waited else ""
        text.append(f"{self._rate():,.0f}", style="bold").append(" events/s", style="dim")
        figures = [("latency", latency), ("behind", f"{report.behind:,}")]
        figures.append(("slates", f"{report.slates:,}"))
        figures.append(("dead letters", f"{report.total_dead_letters:,}"))
        figures += [("late", f"{report.total_late:,}")] if report.total_late else []
        figures += [("waiting", f"{report.waiting:,}")] if report.waiting else []
        figures.append(("batch", f"{report.batch:,}"))
        for name, value in figures:
            alarm = name == "dead letters" and report.total_dead_letters
            text.append(f"   {name} ", style="dim")
            text.append(value, style="bold red" if alarm else "bold")
        return text
