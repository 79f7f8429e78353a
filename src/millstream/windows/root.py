"""The root of a reducer: panes come in, windows go out (iMR, sections 2.3.2, 3.1 and 3.3).

An update with a table for each reducer. Its entries, in the order of their names:

    meta                  the windows that are closed, and what came too late
    board|PANE            the marks of a pane: by node, what came and how much
    pane|PANE|KEY         the values of a key in a pane, of all nodes, combined
    moved, sum|KEY        the window that was closed last, if windows are moved on (see `merged`)

When a pane comes, each open window that has it is looked at (`fidelity.closing`). What a closed
window says comes in the order of its keys; panes that no open window has go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.model.event import Emit, Event, SetTimer, Timer, emit, timer
from millstream.model.function import takes
from millstream.model.slate import Table
from millstream.windows.coverage import Coverage, Mark
from millstream.windows.fidelity import Reason, closing
from millstream.windows.job import Job
from millstream.windows.making import Message
from millstream.windows.merged import board, merged, oldest_needed, pane_in, values

Meta = dict[str, Any]


@dataclass(frozen=True)
class Root:
    """The update function of a job's root, and its timer function, `on_timer`."""

    job: Job
    name: str
    nodes: tuple[str, ...]
    by_time: bool
    """Whether event time tells that a window is over: then whoever was silent had nothing."""
    __signature__ = takes("event", "slate")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    def __call__(self, event: Event, table: Table) -> Iterator[Emit | SetTimer]:
        message, span = event.value, self.job.span
        meta = table.get("meta") or self._begun(message["pane"])
        touched: dict[int, None] = {}
        for pane in range(message["pane"], message["until"]):
            windows = [one for one in span.windows_of(pane) if self._is_open(meta, one)]
            marks = table.get(board(pane), {})
            if not windows or message["node"] in marks:
                meta["late_panes" if not windows else "repeated"] += 1
                meta["late_records"] += 0 if windows else message["records"]
                continue
            kept = ("mark", "records", "bytes")
            marks[message["node"]] = [message[one] for one in kept]
            table[board(pane)] = marks
            self._merge(table, pane, message)
            touched.update(dict.fromkeys(windows))
        ended = message["until"]
        for window in touched:
            yield from self._set(meta, window, ended)
            reason = closing(self.coverage(table, window), self.job.fidelity, overdue=False)
            if reason is not None:
                yield from self._close(table, meta, window, reason, event.key)
        self._forget(table, meta)
        table["meta"] = meta

    def on_timer(self, due: Timer, table: Table) -> Iterator[Emit]:
        """A window's time is over."""
        kind, _, number = due.name.partition(" ")
        meta, window = table["meta"], int(number)
        if self._is_open(meta, window):
            reason: Reason = "time" if kind == "time" else "latency"
            yield from self._close(table, meta, window, reason, due.key)
            self._forget(table, meta)
            table["meta"] = meta

    def coverage(self, table: Table, window: int) -> Coverage:
        """The scoreboard of a window."""
        panes = self.job.span.panes_of(window)
        marks: dict[tuple[str, int], Mark] = {}
        first, last = board(panes[0]), board(panes[-1] + 1)
        for entry, of in table.scan(first, last):
            marks.update({(node, pane_in(entry)): told[0] for node, told in of.items()})
        return Coverage(self.nodes, panes, marks)

    def _begun(self, pane: int) -> Meta:
        """Windows begin with the job's beginning, or with the first pane that comes."""
        span = self.job.span
        first = pane if span.begin is None else span.pane_of(span.begin)
        counts = dict.fromkeys(("late_panes", "late_records", "repeated"), 0)
        return {"next": -(-first * span.pane // span.slide), "closed": [], "known": [], **counts}

    def _is_open(self, meta: Meta, window: int) -> bool:
        return window >= meta["next"] and window not in meta["closed"]

    def _merge(self, table: Table, pane: int, message: Message) -> None:
        merging, prefix = self.job.merging, values(pane)
        for key, partial in message["partials"].items():
            known = table.get(prefix + key)
            if known is not None:
                partial = merging.write(merging.merge(merging.read(known), merging.read(partial)))
            table[prefix + key] = partial

    def _set(self, meta: Meta, window: int, ended: int) -> Iterator[SetTimer]:
        """The timers of a window: of its end in event time, and of its latency, from when the first
        node has ended it."""
        span, known = self.job.span, meta["known"]
        if self.by_time and f"time {window}" not in known:
            known.append(f"time {window}")
            # The last panes come a microsecond after they have ended.
            yield timer(at=span.bounds(window)[1] + 1, name=f"time {window}")
        over = ended > span.panes_of(window)[-1]
        if self.job.latency is not None and over and f"latency {window}" not in known:
            known.append(f"latency {window}")
            yield timer(after=self.job.latency, name=f"latency {window}", clock="wall")

    def _close(
        self, table: Table, meta: Meta, window: int, reason: Reason, reducer: str
    ) -> Iterator[Emit]:
        coverage = self.coverage(table, window)
        begin, end = self.job.span.bounds(window)
        told = {"from": begin, "to": end, "why": reason, "coverage": _shown(coverage, reason)}
        boards = list(table.scan(board(coverage.panes[0]), board(coverage.panes[-1] + 1)))
        nodes = {pane_in(entry): len(of) for entry, of in boards}
        found = merged(self.job, table, window, nodes)
        for key in sorted(found):
            answer = self.job.answer(key, found[key])
            yield emit(self.name, key=key, value={**told, "value": answer})
        summary = {
            "reducer": reducer,
            "keys": len(found),
            "records": sum(told[1] for _, of in boards for told in of.values()),
            "bytes": sum(told[2] for _, of in boards for told in of.values()),
            "histogram": coverage.histogram,
        }
        yield emit(f"{self.name}.windows", key=str(begin), value={**told, **summary})
        meta["closed"].append(window)

    def _forget(self, table: Table, meta: Meta) -> None:
        """Let go of panes that no open window has, and of what was closed before them."""
        span, before = self.job.span, meta["next"]
        while meta["next"] in meta["closed"]:
            meta["closed"].remove(meta["next"])
            meta["next"] += 1
        if meta["next"] == before:
            return
        meta["known"] = [one for one in meta["known"] if int(one.partition(" ")[2]) >= meta["next"]]
        first = oldest_needed(self.job, table, span.panes_of(meta["next"])[0])
        for start, stop in (("board|", board(first)), ("pane|", values(first))):
            for entry in [entry for entry, _ in table.scan(start, stop)]:
                del table[entry]


def _shown(coverage: Coverage, reason: Reason) -> dict[str, float]:
    if reason == "time":  # whoever was silent had nothing
        coverage = coverage.at_best()
    return {"area": coverage.area, "time": coverage.time, "space": coverage.space}
