"""Where every record went: read = on time + late + shed + dead letters (conservation).

Entries of the root's table, for the server and whoever wants to check:

    account|NODE     of a node, since it began
    window|WINDOW    of a window, the open ones and the last `KEPT` that are closed; see `Window`

An account also has `gaps`, if there are any: panes that bytes of the log may have been in which
were gone before the node had read them; and `behind`, how far late records were behind at most.

Each has the counts `read`, `on_time`, `late`, `shed` and `dead`; what `residual` leaves is 0, or
records were lost that nobody knows of. The counts come from two places: a node's manifests say
which records were combined, shed, dead or too late at the node; and how many its reader has read in
all is counted there apart, and compared where panes meet (`pane_ledger`). Records of a pane that
came when its windows were closed are late, too. What comes late changes a window after it is
closed.

Every reducer has these entries, since each may close a window at a moment of its own. A node's
account is kept by the reducers that its newest windows belong to: where their number was changed,
the accounts of the numbers add up to the node's. On Spark, where no agent reads the log, dead
letters are the engine's own: such a record is in no count here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.windows.message import Manifest

COUNTS = ("read", "on_time", "late", "shed", "dead")
KEPT = 100
_ZERO = 1 << 62
"""Added to a window's number, so that the order of texts is that of numbers."""

MARK, RECORDS, BYTES, WHY, SHED, SHED_BYTES, DEAD, LATE, READ, FIRST, LAST, GAP = range(12)
"""What stands where in a mark of the scoreboard."""
MISDATED = 12
"""Behind the others, if there are any."""


def account(node: str) -> str:
    """The entry of a node's account."""
    return f"account|{node}"


def window_entry(window: int) -> str:
    """The entry of a window."""
    return f"window|{window + _ZERO:020d}"


def window_in(entry: str) -> int:
    """The window that an entry is of."""
    return int(entry.partition("|")[2]) - _ZERO


def residual(counts: Mapping[str, int]) -> int:
    """Records that were read and are nowhere: 0, or something is wrong.

    >>> residual({"read": 7, "on_time": 3, "late": 1, "shed": 2, "dead": 1})
    0
    """
    return counts["read"] - sum(counts[one] for one in COUNTS[1:])


@dataclass
class Window:
    """A window as its entry has it: what was marked of it, and where its records went."""

    received: int = 0
    """Panes of nodes; so are the next four. See `coverage.Tally`."""
    lost: int = 0
    whole: int = 0
    hurt: int = 0
    some: int = 0
    whole_nodes: int = 0
    """Nodes; so are the next three. Not counted if the fidelity does not ask for them."""
    hurt_nodes: int = 0
    some_nodes: int = 0
    gone_nodes: int = 0
    read: int = 0
    on_time: int = 0
    late: int = 0
    shed: int = 0
    dead: int = 0
    why: str = ""
    """Why it was closed; empty: it is open. (Nothing here is null: that would be slow to store.)"""
    coverage: dict[str, Any] = field(default_factory=dict)
    """When it was closed, or corrected."""
    completeness: dict[str, float | None] = field(default_factory=dict)
    """As it is known now: what comes late makes it less."""
    included: int = 0
    """Records that the answer has."""
    included_bytes: int = 0
    bytes: int = 0
    """Of the records that are known: in panes that came, on time or not, and in those given up."""
    unsized: int = 0
    """Records whose bytes nobody has counted: those that were late at their node."""
    late_part: float = 0.0
    """Of all records that were read when it was closed, or corrected, the part that came late."""
    misdated_part: float = 0.0
    """So the part whose own time was not believed: nobody knows which windows they are of."""
    drawn: int = 0
    """Panes of nodes that are drawn, if the job's area is of drawn ones."""
    drawn_received: int = 0
    looked: int = 0
    """How many rounds of `Error` were looked at."""
    corrections: int = 0
    after: list[list[Any]] = field(default_factory=list)
    """[node, pane] of what came after it was closed, if it is still to be corrected."""

    def account_for(self, mark: list[Any], *, on_time: bool) -> None:
        """Count the records of a pane of a node in."""
        self.read += mark[READ]
        self.shed += mark[SHED]
        self.dead += mark[DEAD]
        self.late += mark[LATE]
        self.unsized += mark[LATE]
        self.bytes += mark[BYTES] + mark[SHED_BYTES]
        if on_time:
            self.on_time += mark[RECORDS]
        else:
            self.late += mark[RECORDS]
            self.know_better()

    def come_late(self, count: int) -> None:
        """Count records in that their node has read after it had sent their pane."""
        self.late += count
        self.read += count
        self.unsized += count
        self.know_better()

    def know_better(self) -> None:
        """More records are known than when the window was closed."""
        if self.completeness:
            unknown = int(self.completeness["unknown_panes"] or 0)
            self.completeness = self.complete(self.included, self.included_bytes, unknown)

    def complete(self, records: int, size: int, unknown: int) -> dict[str, float | None]:
        """Which part of what is known these records are, and their bytes; null: it is not known.
        Of panes that are `unknown` there may be more."""
        known = self.on_time + self.late + self.shed
        return {
            "records": _part(records, known, unknown),
            "bytes": None if self.unsized else _part(size, self.bytes, unknown),
            "unknown_panes": unknown,
            "late": self.late_part,
            "misdated": self.misdated_part,
        }


def window_of(stored: dict[str, Any]) -> Window:
    """A window as its entry has it, also one of an earlier version."""
    if stored.pop("nodes", None) is not None:
        stored["drawn"] = 0  # it was a part; `scoreboard` counts what is open anew
    return Window(**stored)


def _part(some: int, known: int, unknown: int) -> float | None:
    if known:
        return some / known
    return None if unknown else 1.0


def mark_of(manifest: Manifest, read: int) -> list[Any]:
    """A node's mark of a pane. `read` is what was read while the pane was made; the records among
    them that came late are of other panes."""
    return [
        manifest["mark"],
        manifest["records"],
        manifest["bytes"],
        manifest["why"] or "",
        manifest["shed"],
        manifest["shed_bytes"],
        manifest["dead"],
        0,
        read - sum(manifest["late"].values()),
        manifest["first"] or 0,
        manifest["last"] or 0,
        manifest.get("gap", 0),
        *([manifest["misdated"]] if manifest.get("misdated") else []),
    ]


def manifest_of(mark: list[Any], pane: int) -> Manifest:
    """The manifest that a mark was made of, as far as it is kept; the late records are those of
    this pane."""
    told = Manifest(
        mark=mark[MARK],
        why=mark[WHY] or None,
        records=mark[RECORDS],
        bytes=mark[BYTES],
        shed=mark[SHED],
        shed_bytes=mark[SHED_BYTES],
        dead=mark[DEAD],
        late={str(pane): mark[LATE]} if mark[LATE] else {},
        total=0,
        first=mark[FIRST] if mark[RECORDS] else None,
        last=mark[LAST] if mark[RECORDS] else None,
    )
    if mark[GAP]:
        told["gap"] = mark[GAP]
    if misdated_in(mark):
        told["misdated"] = misdated_in(mark)
    return told


def misdated_in(mark: Sequence[Any]) -> int:
    """Records of a pane whose own time was not believed."""
    return int(mark[MISDATED]) if len(mark) > MISDATED else 0


def add_counts(sums: list[int], mark: list[Any], *, on_time: bool) -> None:
    """Add the counts of a pane of a node: `COUNTS`, and the gaps after them."""
    sums[0] += mark[READ]
    sums[1 if on_time else 2] += mark[RECORDS]
    sums[2] += mark[LATE]
    sums[3] += mark[SHED]
    sums[4] += mark[DEAD]
    sums[5] += mark[GAP] != 0


def counts_of(mark: list[Any], *, on_time: bool) -> dict[str, int]:
    """The counts of a pane of a node."""
    sums = [0] * 6
    add_counts(sums, mark, on_time=on_time)
    return dict(zip((*COUNTS, "gaps"), sums, strict=True))


def added(known: Mapping[str, int] | None, more: Mapping[str, int]) -> dict[str, int]:
    """Counts put together; gaps, and how far late records were behind, only if there are any."""
    known = known or {}
    gaps = known.get("gaps", 0) + more.get("gaps", 0)
    behind = max(known.get("behind", 0), more.get("behind", 0))
    counts = {one: known.get(one, 0) + more[one] for one in COUNTS}
    rest = {"gaps": gaps, "behind": behind}
    return {**counts, **{name: value for name, value in rest.items() if value}}
