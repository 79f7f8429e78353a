"""The output of a closed window: a value for each key, and a summary (iMR, 3.1).

    {"from", "to", "why", "coverage", "completeness", "value"}        for each key, on NAME
    {"from", "to", "why", "coverage", "completeness", "histogram",    for each reducer, on
     "keys", "records", "bytes", "reducer", "missing", "accounts"}    NAME.windows

`coverage` counts panes: `area` is the share of all panes of all nodes, `time` the share of the
panes that any node responded for, `space` the share of the nodes that responded for any pane.
`missing` is the number of missing panes of nodes by cause (module `missing_panes`). The summary
also names the nodes.

`completeness` is based on what the nodes have counted:

- `records` and `bytes`: the share of the known records and bytes that are in the answer; null if it
  is not known. While late records are expected it is not known: a share of the window as large as
  `late` may still come.
- `unknown_panes`: how many panes of nodes have unknown contents, because nothing was heard of them
  or bytes of the log were gone.
- `late`: the share of late records, of any window, among all that the nodes had read by then.
- `misdated`: the share of records that were set aside because their time was implausible. Their
  windows are not known.

A corrected answer has a number: `correction`. Many windows in a row without records share one
summary, from the beginning of the first to the end of the last, with their number in `windows`. It
holds for each of them (`quiet_windows`). Answers that can be bounded have `bounds`, and the summary
has the bounds of their `total` and of a key that was not seen, `unseen` (`estimates`).

If `combine` or `reduce` fails on a key, its value is null and `error` says why. The summary counts
such keys as `failed`. The window is closed nevertheless, and the other keys have their answers.
Otherwise it would stay open for ever, and keep its panes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from millstream.codec import encode_value
from millstream.messages.answers import WindowAnswer, WindowCounts, WindowSummary
from millstream.messages.jobs import WindowCompleteness, WindowCoverage
from millstream.model.event import Emit, emit
from millstream.model.place import FAILURES, described
from millstream.windows.accounts import NodeAccount, WindowAccount, add_counts, reason
from millstream.windows.board.missing_panes import Missing
from millstream.windows.bounds.estimates import Estimate
from millstream.windows.coverage import Coverage
from millstream.windows.fidelity import Reason
from millstream.windows.panes.pane_mark import Marks
from millstream.windows.root.merged import Failed

if TYPE_CHECKING:
    from millstream.windows.job import Job


@dataclass(frozen=True)
class Closed:
    """A closed window, with all that is known of it."""

    job: Job
    name: str
    reducer: str
    number: int
    window: WindowAccount
    why: Reason
    coverage: Coverage
    boards: dict[int, Marks]
    values: dict[str, Any]
    """The combined values by key."""
    bounds: Estimate | None
    missing: Missing
    late: float
    """The share of late records among all that were read."""
    misdated: float
    """The share of records whose time was implausible."""
    late_expected: bool
    """True if late records of the window must be expected."""
    times: Callable[[], int]
    """Returns the time of the next answer."""
    windows: int = 1
    """The number of windows in a row that this answer holds for. If above 1, all are quiet
    (`quiet_windows`)."""

    def answers(self) -> Iterator[Emit]:
        """Yields the answers in the order of their keys, then the summary. Stores coverage and
        completeness in the window."""
        begin = self.job.span.bounds(self.number)[0]
        end = self.job.span.bounds(self.number + self.windows - 1)[1]
        known = self.coverage.ended() if self.why == "time" else self.coverage
        coverage = WindowCoverage(known.area, known.time, known.space, self.missing.panes)
        self.window.coverage, self.window.completeness = coverage, self.completeness()
        common: dict[str, Any] = {
            "start": begin,
            "to": end,
            "why": reason(self.why, coverage, self.window.completeness),
            "coverage": coverage,
            "completeness": self.window.completeness,
            "windows": self.windows if self.windows > 1 else UNSET,
            "correction": self.window.corrections or UNSET,
        }
        failed = 0
        for key in sorted(self.values):
            answer, error = self._answer(key)
            failed += error is not UNSET
            bound = UNSET if self.bounds is None else self.bounds.keys[key]
            value = WindowAnswer(**common, value=answer, error=error, bounds=bound)
            yield emit(self.name, key=key, value=value, ts=self.times())
        marks = [mark for marks in self.boards.values() for mark in marks.values()]
        summary = WindowSummary(
            **common,
            reducer=self.reducer,
            keys=len(self.values),
            records=sum(mark.records for mark in marks),
            bytes=sum(mark.bytes for mark in marks),
            histogram=known.histogram,
            missing=self.missing.named(),
            accounts=self.accounts(),
            failed=failed or UNSET,
            total=UNSET if self.bounds is None else self.bounds.total,
            unseen=UNSET if self.bounds is None else self.bounds.unseen,
        )
        yield emit(f"{self.name}.windows", key=str(begin), value=summary, ts=self.times())

    def _answer(self, key: str) -> tuple[Any, str | UnsetType]:
        """Returns the value of a key, or None and the error in its place."""
        value = self.values[key]
        if isinstance(value, Failed):
            return None, value.error
        try:
            answer = self.job.answer(key, value)
            if self.job.reduce is not None:
                # An answer that is not JSON must fail here, or the whole window would fail.
                encode_value(answer)
        except FAILURES as error:
            return None, described(error)
        return answer, UNSET

    def completeness(self) -> WindowCompleteness:
        """Computes the answer's share of what the nodes have counted."""
        marks = [mark for marks in self.boards.values() for mark in marks.values()]
        window, records = self.window, sum(mark.records for mark in marks)
        window.included, window.included_bytes = records, sum(mark.bytes for mark in marks)
        window.late_part, window.misdated_part = round(self.late, 6), round(self.misdated, 6)
        window.late_expected = self.late_expected
        return window.complete(
            records,
            window.included_bytes,
            self.missing.unknown,
            late_expected=self.late_expected,
        )

    def accounts(self) -> dict[str, WindowCounts]:
        """Counts by node where the records of the window went."""
        late = {(node, pane) for node, pane in self.window.after}
        sums: dict[str, list[int]] = {}
        for pane, marks in self.boards.items():
            for node, mark in marks.items():
                add_counts(sums.setdefault(node, [0] * 6), mark, on_time=(node, pane) not in late)
        return {node: _counts(sums[node]) for node in sorted(sums)}


def _counts(sums: list[int]) -> WindowCounts:
    """Returns the counts of a node from the sums of `add_counts`."""
    counts = NodeAccount(*sums)
    return WindowCounts(
        read=counts.read,
        on_time=counts.on_time,
        late=counts.late,
        shed=counts.shed,
        dead=counts.dead,
        gaps=counts.gaps or UNSET,
        residual=counts.residual,
    )
