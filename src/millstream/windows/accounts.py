"""Accounts for every record: read = on time + late + shed + dead letters (conservation).

These entries of the root's table are for the server and for checks:

    account|NODE     counts of a node since it began
    window|WINDOW    counts of a window: of all open ones and of the last `KEPT` closed ones
                     (see `WindowAccount`)

An account may also have `gaps`, the number of panes that may have lost bytes of the log before the
node read them, `behind`, the longest time by which a late record was behind, and `misdated`, those
of the `dead` whose time was implausible.

Each entry has the counts `read`, `on_time`, `late`, `shed` and `dead`. Their `residual` is 0 unless
records were lost unnoticed. The counts come from two places. A node's manifests say which records
were combined, shed, dead or too late at the node. The number of records that its reader has read is
counted separately and compared where panes meet (`pane_ledger`). Records of a pane that came after
its windows were closed are late, too. Late records change the entry of a window after it is closed.

Every reducer has these entries, since each may close a window at a different moment. A node's
account is kept by the reducers that its newest windows belong to. If the number of reducers was
changed, the accounts under all numbers add up to the node's. On Spark, where no agent reads the
log, the engine counts the dead letters. Such records are in none of these counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from millstream.messages.jobs import WindowCompleteness, WindowCoverage
from millstream.model.slate import Table
from millstream.windows.fidelity import Reason
from millstream.windows.panes.pane_mark import PaneMark

COUNTS = ("read", "on_time", "late", "shed", "dead")
KEPT = 100
_ZERO = 1 << 62
"""Added to a window's number, so that text sorts as the numbers do."""


def account(node: str) -> str:
    """Returns the name of a node's account entry."""
    return f"account|{node}"


def window_entry(window: int) -> str:
    """Returns the name of a window's entry."""
    return f"window|{window + _ZERO:020d}"


def window_in(entry: str) -> int:
    """Returns the window that an entry belongs to."""
    return int(entry.partition("|")[2]) - _ZERO


def residual(counts: Mapping[str, int]) -> int:
    """Returns how many records were read and are in no other count. Anything but 0 is an error.

    >>> residual({"read": 7, "on_time": 3, "late": 1, "shed": 2, "dead": 1})
    0
    """
    return counts["read"] - sum(counts[name] for name in COUNTS[1:])


class NodeAccount(msgspec.Struct, omit_defaults=True):
    """The entry of a node, or what a pane adds to it."""

    read: int
    on_time: int
    late: int
    shed: int
    dead: int
    gaps: int = 0
    behind: int = 0
    misdated: int = 0
    """Those of `dead` that were set aside because their time was implausible."""

    @property
    def residual(self) -> int:
        """The records that were read and are in no other count."""
        return self.read - self.on_time - self.late - self.shed - self.dead

    def plus(self, more: NodeAccount) -> NodeAccount:
        return NodeAccount(
            self.read + more.read,
            self.on_time + more.on_time,
            self.late + more.late,
            self.shed + more.shed,
            self.dead + more.dead,
            self.gaps + more.gaps,
            max(self.behind, more.behind),
            self.misdated + more.misdated,
        )


def account_in(table: Mapping[str, Any] | Table, node: str) -> NodeAccount:
    """Returns a node's account in a table; all counts are 0 if it has none."""
    stored = table.get(account(node))
    return NodeAccount(0, 0, 0, 0, 0) if stored is None else msgspec.convert(stored, NodeAccount)


class MarkCounts(msgspec.Struct):
    """Counts of a window's marks; see `CoverageTally`. They are fields of the window's entry."""

    received: int = 0
    """Counts panes of nodes, as do the next five fields."""
    lost: int = 0
    tardy: int = 0
    """Those that have come, and of which records came late."""
    whole: int = 0
    hurt: int = 0
    some: int = 0
    whole_nodes: int = 0
    """Counts nodes, as do the next three fields. 0 if the fidelity does not need them."""
    hurt_nodes: int = 0
    some_nodes: int = 0
    gone_nodes: int = 0


class WindowAccount(MarkCounts):
    """The entry of a window: counts of its marks, and where its records went."""

    read: int = 0
    on_time: int = 0
    late: int = 0
    shed: int = 0
    dead: int = 0
    misdated: int = 0
    why: str = ""
    """The reason for which it was closed, apart from late records (see `reason`); empty while it
    is open. (No field here is null: that would be slow to store.)"""
    coverage: WindowCoverage | UnsetType = UNSET
    """The coverage as known now: late records lower it."""
    completeness: WindowCompleteness | UnsetType = UNSET
    """The completeness as known now: late records lower it."""
    included: int = 0
    """Records that are in the answer."""
    included_bytes: int = 0
    bytes: int = 0
    """Bytes of all known records: in panes that came, on time or not, and in panes given up."""
    unsized: int = 0
    """Records whose bytes were not counted: those that were late at their node."""
    late_part: float = 0.0
    """The share of late records among all that were read when the window was closed, or last
    corrected."""
    misdated_part: float = 0.0
    """The same share of records with an implausible time. Their windows are not known."""
    late_expected: bool = False
    """True if late records of the window were expected when its completeness was computed."""
    drawn: int = 0
    """Drawn panes of nodes, if the job's fidelity is an area of drawn panes."""
    drawn_received: int = 0
    looked: int = 0
    """The number of rounds of `Error` that were looked at."""
    corrections: int = 0
    after: list[tuple[str, int]] = []
    """The node and the pane of each pane that came after closing, as long as the window is still
    corrected."""

    def account_for(self, mark: PaneMark, *, on_time: bool) -> None:
        """Counts the records of a pane of a node."""
        self.read += mark.read
        self.shed += mark.shed
        self.dead += mark.dead
        self.misdated += mark.misdated
        self.late += mark.late
        self.unsized += mark.late
        self.bytes += mark.bytes + mark.shed_bytes
        if on_time:
            self.on_time += mark.records
        else:
            self.late += mark.records
            self.know_better()

    def come_late(self, count: int, *, late_expected: bool) -> None:
        """Counts records that their node read after it had sent their pane. `late_expected`: more
        of them are expected."""
        self.late += count
        self.read += count
        self.unsized += count
        self.late_expected = late_expected
        self.know_better()

    def know_better(self) -> None:
        """Updates the completeness: more records are known than when the window was closed."""
        if self.completeness is not UNSET:
            self.completeness = self.completed(self.completeness, late_expected=self.late_expected)

    def lower(self, late: Mapping[int, Collection[str]], nodes: int, panes: range) -> None:
        """Updates the coverage of a closed window of which the panes of nodes in `late` are known
        to lack records. One of them is known since the last time."""
        before = self.coverage
        if before is UNSET:
            return
        area = max(0.0, before.area - 1 / (nodes * len(panes)))
        missing = {**before.missing, "late": before.missing.get("late", 0) + 1}
        time, space = before.time, before.space
        if missing.keys() == {"late"}:  # all others have responded
            counts = Counter(node for pane in panes for node in late.get(pane, ()))
            time = sum(len(late.get(pane, ())) < nodes for pane in panes) / len(panes)
            space = 1 - sum(count == len(panes) for count in counts.values()) / nodes
        sorted_missing = dict(sorted(missing.items()))
        self.coverage = WindowCoverage(area, time, space, sorted_missing)

    def completed(self, before: WindowCompleteness, *, late_expected: bool) -> WindowCompleteness:
        """Returns the completeness of a closed window, given that of before."""
        unknown = before.unknown_panes
        return self.complete(
            self.included, self.included_bytes, unknown, late_expected=late_expected
        )

    def complete(
        self, records: int, size: int, unknown: int, *, late_expected: bool
    ) -> WindowCompleteness:
        """Returns the share of the known records that these `records` are, and the same for their
        bytes. null: the share is not known, as it is while late records are expected. The panes
        counted in `unknown` may hold more records."""
        known = self.on_time + self.late + self.shed
        unsized = late_expected or self.unsized
        return WindowCompleteness(
            records=None if late_expected else _part(records, known, unknown),
            bytes=None if unsized else _part(size, self.bytes, unknown),
            unknown_panes=unknown,
            late=self.late_part,
            misdated=self.misdated_part,
        )


def reason(why: Reason, coverage: WindowCoverage, completeness: WindowCompleteness) -> Reason:
    """Returns the reason for closing a window that is shown with its coverage and completeness. All
    panes may have come while records are late, or expected to be."""
    late = bool(coverage.missing) or completeness.records != 1.0
    return "late" if why == "complete" and late else why


def window_of(stored: Mapping[str, Any]) -> WindowAccount:
    """Decodes a window's entry, also one of an earlier version."""
    if "nodes" in stored:
        stored = {**stored, "drawn": 0}  # it was a share; `scoreboard` recounts the open windows
    for name, added in _ADDED.items():
        part = stored.get(name)
        if part == {}:  # of an open window, which has none
            stored = {key: value for key, value in stored.items() if key != name}
        elif part is not None and not part.keys() >= added.keys():
            stored = {**stored, name: {**added, **part}}
    return msgspec.convert(stored, WindowAccount)


_ADDED: dict[str, dict[str, Any]] = {
    "coverage": {"missing": {}},
    "completeness": {"late": 0.0, "misdated": 0.0},
}
"""What was added to these parts of a window's entry after windows were stored without it."""


def _part(some: int, known: int, unknown: int) -> float | None:
    if known:
        return some / known
    return None if unknown else 1.0


def add_counts(sums: list[int], mark: PaneMark, *, on_time: bool) -> None:
    """Adds the counts of a pane of a node to `sums`: `COUNTS`, then the gaps."""
    sums[0] += mark.read
    sums[1 if on_time else 2] += mark.records
    sums[2] += mark.late
    sums[3] += mark.shed
    sums[4] += mark.dead
    sums[5] += mark.gap != 0


def account_of(mark: PaneMark, *, on_time: bool) -> NodeAccount:
    """Returns the counts of a pane of a node."""
    sums = [0] * 6
    add_counts(sums, mark, on_time=on_time)
    counts = NodeAccount(*sums)
    counts.misdated = mark.misdated
    return counts
