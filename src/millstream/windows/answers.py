"""What a closed window says: a value for each key, with its completeness, and a summary (iMR, 3.1).

    {"from", "to", "why", "coverage", "completeness", "value"}        for each key, on NAME
    {"from", "to", "why", "coverage", "completeness", "histogram",    for each reducer, on
     "keys", "records", "bytes", "reducer", "missing", "accounts"}    NAME.windows

`coverage` is of panes: the part of all panes of all nodes (`area`), of the panes that any node
responded for (`time`), of the nodes that responded for any (`space`), and by cause how many panes
of nodes are `missing` (module `missing`); the summary says of which nodes. `completeness` is of
what the nodes have counted: the part of the records, and of the bytes, that the answer has of those
that are known, null if that cannot be said, and of how many panes of nodes it is not known what
they hold, since nothing was told or bytes of the log were gone (`unknown_panes`); and of all
records that the nodes had read by then, the part that came late, for whatever window (`late`): as
much of this one may be still to come; and the part that was set aside, since its own time was not
believed (`misdated`): of what window they are nobody knows. A corrected answer says which one it
is: `correction`. Answers that can be bounded have `bounds`, and the summary a bound of their
`total` and of a key that was not seen (`estimates`).

A key that `combine` or `reduce` fails on has the value null and says why: `error`; the summary says
how many there are: `failed`. The window is closed and the other keys have their answers: else it
would stay open for good, and its panes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.codec import encode_value
from millstream.model.event import Emit, emit
from millstream.model.place import described
from millstream.model.rules import FAILURES
from millstream.windows.accounts import (
    BYTES,
    COUNTS,
    RECORDS,
    Window,
    add_counts,
    residual,
)
from millstream.windows.coverage import Coverage
from millstream.windows.estimates import Estimate
from millstream.windows.fidelity import Reason
from millstream.windows.job import Job
from millstream.windows.merged import Failed
from millstream.windows.missing import Missing
from millstream.windows.pane_marks import Marks


@dataclass(frozen=True)
class Closed:
    """A window that is closed, and all that is known of it."""

    job: Job
    name: str
    reducer: str
    number: int
    window: Window
    why: Reason
    coverage: Coverage
    boards: dict[int, Marks]
    values: dict[str, Any]
    """By key, combined."""
    bounds: Estimate | None
    missing: Missing
    late: float
    """Of all records that were read, the part that came late."""
    misdated: float
    """And the part whose own time was not believed."""
    times: Callable[[], int | None]
    """The time of the next answer; None: the earliest that there can be."""

    def answers(self) -> Iterator[Emit]:
        """What it says, in the order of its keys, and the summary; notes it in the window."""
        begin, end = self.job.span.bounds(self.number)
        known = self.coverage.at_best() if self.why == "time" else self.coverage
        self.window.coverage = {
            "area": known.area,
            "time": known.time,
            "space": known.space,
            "missing": self.missing.panes,
        }
        self.window.completeness = self.completeness()
        told: dict[str, Any] = {
            "from": begin,
            "to": end,
            "why": self.why,
            "coverage": self.window.coverage,
            "completeness": self.window.completeness,
        }
        if self.window.corrections:
            told["correction"] = self.window.corrections
        failed = 0
        for key in sorted(self.values):
            answer = self._answer(key)
            failed += "error" in answer
            bound = {} if self.bounds is None else {"bounds": self.bounds.keys[key]}
            value = {**told, **answer, **bound}
            yield emit(self.name, key=key, value=value, ts=self.times())
        marks = [mark for marks in self.boards.values() for mark in marks.values()]
        summary: dict[str, Any] = {
            "reducer": self.reducer,
            "keys": len(self.values),
            "records": sum(mark[RECORDS] for mark in marks),
            "bytes": sum(mark[BYTES] for mark in marks),
            "histogram": known.histogram,
            "missing": self.missing.named(),
            "accounts": self.accounts(),
        }
        if failed:
            summary["failed"] = failed
        if self.bounds is not None:
            summary |= {"total": self.bounds.total, "unseen": self.bounds.unseen}
        value = {**told, **summary}
        yield emit(f"{self.name}.windows", key=str(begin), value=value, ts=self.times())

    def _answer(self, key: str) -> dict[str, Any]:
        """The value of a key, or why there is none."""
        value = self.values[key]
        if isinstance(value, Failed):
            return {"value": None, "error": value.error}
        try:
            answer = self.job.answer(key, value)
            if self.job.reduce is not None:
                encode_value(answer)  # what is no JSON fails here, or the whole window would
        except FAILURES as error:
            return {"value": None, "error": described(error)}
        return {"value": answer}

    def completeness(self) -> dict[str, float | None]:
        """How much the answer has of what the nodes have counted."""
        marks = [mark for marks in self.boards.values() for mark in marks.values()]
        window, records = self.window, sum(mark[RECORDS] for mark in marks)
        window.included, window.included_bytes = records, sum(mark[BYTES] for mark in marks)
        window.late_part, window.misdated_part = round(self.late, 6), round(self.misdated, 6)
        return window.complete(records, window.included_bytes, self.missing.unknown)

    def accounts(self) -> dict[str, dict[str, int]]:
        """By node, where the records of the window went."""
        late = {(node, pane) for node, pane in self.window.after}
        sums: dict[str, list[int]] = {}
        for pane, marks in self.boards.items():
            for node, mark in marks.items():
                add_counts(sums.setdefault(node, [0] * 6), mark, on_time=(node, pane) not in late)
        found: dict[str, dict[str, int]] = {}
        for node in sorted(sums):
            *counts, gaps = sums[node]
            found[node] = dict(zip(COUNTS, counts, strict=True))
            if gaps:
                found[node]["gaps"] = gaps
            found[node]["residual"] = residual(found[node])
        return found
