"""The output of a closed window: a value for each key, and a summary (iMR, 3.1).

    {"from", "to", "why", "coverage", "completeness", "value"}        for each key, on NAME
    {"from", "to", "why", "coverage", "completeness", "histogram",    for each reducer, on
     "keys", "records", "bytes", "reducer", "missing", "accounts"}    NAME.windows

`coverage` counts panes: `area` is the share of all panes of all nodes, `time` the share of the
panes that any node responded for, `space` the share of the nodes that responded for any pane.
`missing` is the number of missing panes of nodes by cause (module `missing_panes`). The summary
also names the nodes.

`completeness` is based on what the nodes have counted:

- `records` and `bytes`: the share that the answer has of those that are known; null if the share
  cannot be told. While late records are expected it cannot: as large a share of this window may
  still be to come as `late` says.
- `unknown_panes`: how many panes of nodes have unknown contents, because nothing was heard of them
  or bytes of the log were gone.
- `late`: the share of late records, of any window, among all that the nodes had read by then.
- `misdated`: the share of records that were set aside because their time was implausible. Their
  windows are not known.

A corrected answer has a number: `correction`. Many windows in a row without records share one
summary, from the beginning of the first to the end of the last, with their number in `windows`; it
holds for each of them (`quiet_windows`). Answers that can be bounded have `bounds`, and the summary
has a bound of their `total` and of a key that was not seen (`estimates`).

If `combine` or `reduce` fails on a key, its value is null and `error` says why. The summary counts
such keys as `failed`. The window is closed all the same, and the other keys have their answers.
Otherwise it would stay open forever and keep its panes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.codec import encode_value
from millstream.model.event import Emit, emit
from millstream.model.place import described
from millstream.model.rules import FAILURES
from millstream.windows.accounts import (
    COUNTS,
    WindowAccount,
    add_counts,
    residual,
)
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
        known = self.coverage.at_best() if self.why == "time" else self.coverage
        self.window.coverage = {
            "area": known.area,
            "time": known.time,
            "space": known.space,
            "missing": self.missing.panes,
        }
        self.window.completeness = self.completeness()
        common: dict[str, Any] = {
            "from": begin,
            "to": end,
            "why": self.why,
            "coverage": self.window.coverage,
            "completeness": self.window.completeness,
        }
        if self.windows > 1:
            common["windows"] = self.windows
        if self.window.corrections:
            common["correction"] = self.window.corrections
        failed = 0
        for key in sorted(self.values):
            answer = self._answer(key)
            failed += "error" in answer
            bound = {} if self.bounds is None else {"bounds": self.bounds.keys[key]}
            value = {**common, **answer, **bound}
            yield emit(self.name, key=key, value=value, ts=self.times())
        marks = [mark for marks in self.boards.values() for mark in marks.values()]
        summary: dict[str, Any] = {
            "reducer": self.reducer,
            "keys": len(self.values),
            "records": sum(mark.records for mark in marks),
            "bytes": sum(mark.bytes for mark in marks),
            "histogram": known.histogram,
            "missing": self.missing.named(),
            "accounts": self.accounts(),
        }
        if failed:
            summary["failed"] = failed
        if self.bounds is not None:
            summary |= {"total": self.bounds.total, "unseen": self.bounds.unseen}
        value = {**common, **summary}
        yield emit(f"{self.name}.windows", key=str(begin), value=value, ts=self.times())

    def _answer(self, key: str) -> dict[str, Any]:
        """Returns the value of a key, or the error in its place."""
        value = self.values[key]
        if isinstance(value, Failed):
            return {"value": None, "error": value.error}
        try:
            answer = self.job.answer(key, value)
            if self.job.reduce is not None:
                encode_value(
                    answer
                )  # fails here if it is not JSON, else the whole window would fail
        except FAILURES as error:
            return {"value": None, "error": described(error)}
        return {"value": answer}

    def completeness(self) -> dict[str, int | float | None]:
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

    def accounts(self) -> dict[str, dict[str, int]]:
        """Counts by node where the records of the window went."""
        late = {(node, pane) for node, pane in self.window.after}
        sums: dict[str, list[int]] = {}
        for pane, marks in self.boards.items():
            for node, mark in marks.items():
                add_counts(sums.setdefault(node, [0] * 6), mark, on_time=(node, pane) not in late)
        by_node: dict[str, dict[str, int]] = {}
        for node in sorted(sums):
            *counts, gaps = sums[node]
            by_node[node] = dict(zip(COUNTS, counts, strict=True))
            if gaps:
                by_node[node]["gaps"] = gaps
            by_node[node]["residual"] = residual(by_node[node])
        return by_node
