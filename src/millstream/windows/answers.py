"""What a closed window says: a value for each key, with its completeness, and a summary (iMR, 3.1).

    {"from", "to", "why", "coverage", "completeness", "value"}        for each key, on NAME
    {"from", "to", "why", "coverage", "completeness", "histogram",    for each reducer, on
     "keys", "records", "bytes", "reducer", "accounts"}               NAME.windows

`coverage` is of panes: the part of all panes of all nodes (`area`), of the panes that any node
responded for (`time`), of the nodes that responded for any (`space`). `completeness` is of what the
nodes have counted: the part of the records, and of the bytes, that the answer has of those that are
known, and for how many panes of nodes nothing is known (`unknown_panes`). A corrected answer says
which one it is: `correction`. Answers that can be bounded have `bounds`, and the summary a bound of
their `total` and of a key that was not seen (`estimates`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.model.event import Emit, emit
from millstream.windows.accounts import (
    BYTES,
    RECORDS,
    SHED_BYTES,
    Window,
    added,
    counts_of,
    residual,
)
from millstream.windows.coverage import Coverage
from millstream.windows.estimates import Estimate
from millstream.windows.fidelity import Reason
from millstream.windows.job import Job
from millstream.windows.scoreboard import Marks


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

    def answers(self) -> Iterator[Emit]:
        """What it says, in the order of its keys, and the summary; notes it in the window."""
        begin, end = self.job.span.bounds(self.number)
        known = self.coverage.at_best() if self.why == "time" else self.coverage
        self.window.coverage = {"area": known.area, "time": known.time, "space": known.space}
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
        for key in sorted(self.values):
            answer = self.job.answer(key, self.values[key])
            bound = {} if self.bounds is None else {"bounds": self.bounds.keys[key]}
            yield emit(self.name, key=key, value={**told, "value": answer, **bound})
        marks = [mark for marks in self.boards.values() for mark in marks.values()]
        summary: dict[str, Any] = {
            "reducer": self.reducer,
            "keys": len(self.values),
            "records": sum(mark[RECORDS] for mark in marks),
            "bytes": sum(mark[BYTES] for mark in marks),
            "histogram": known.histogram,
            "accounts": self.accounts(),
        }
        if self.bounds is not None:
            summary |= {"total": self.bounds.total, "unseen": self.bounds.unseen}
        yield emit(f"{self.name}.windows", key=str(begin), value={**told, **summary})

    def completeness(self) -> dict[str, float]:
        """How much the answer has of what the nodes have counted."""
        marks = [mark for marks in self.boards.values() for mark in marks.values()]
        window, records = self.window, sum(mark[RECORDS] for mark in marks)
        size = sum(mark[BYTES] for mark in marks)
        window.included = records
        awaited = len(self.coverage.nodes) * len(self.coverage.panes) - len(marks)
        return {
            "records": _part(records, window.on_time + window.late + window.shed),
            "bytes": _part(size, size + sum(mark[SHED_BYTES] for mark in marks)),
            "unknown_panes": 0 if self.why == "time" else awaited,
        }

    def accounts(self) -> dict[str, dict[str, int]]:
        """By node, where the records of the window went."""
        late = {(node, pane) for node, pane in self.window.after}
        found: dict[str, dict[str, int]] = {}
        for pane, marks in self.boards.items():
            for node, mark in marks.items():
                counts = counts_of(mark, on_time=(node, pane) not in late)
                found[node] = added(found.get(node), counts)
        return {node: {**found[node], "residual": residual(found[node])} for node in sorted(found)}


def _part(some: int, known: int) -> float:
    return some / known if known else 1.0
