"""The jobs over windows: GET /jobs, GET /jobs/{name}."""

from __future__ import annotations

from typing import Any

import msgspec


class NodeCounts(msgspec.Struct, frozen=True):
    """Where the records of a job's node went: read = on_time + late + shed + dead."""

    read: int
    on_time: int
    late: int
    shed: int
    dead: int
    residual: int
    """Records that are not accounted for: 0, unless Millstream has a bug."""
    gaps: int
    """Panes that have lost bytes."""
    misdated: int = 0
    """Those of `dead` that were set aside because their time was implausible."""


class JobSummary(msgspec.Struct, frozen=True):
    """A job in short: the accounts of its nodes, and the nodes that need attention."""

    nodes: dict[str, NodeCounts]
    silent: list[str]
    """Nodes from which nothing comes, while others go on."""
    warnings: list[str]
    residual: int
    open: int
    """Open windows."""
    closed: int


class JobsAnswer(msgspec.Struct, frozen=True):
    """All jobs, by name."""

    jobs: dict[str, JobSummary]


class PaneCell(msgspec.Struct, frozen=True):
    """The state of a pane at a node."""

    mark: str
    """data, empty (`why`: over, if its log has ended), lost (and why), awaited, or missing."""
    why: str | None
    records: int
    bytes: int
    shed: int
    gap: int
    """The bytes of its log that were gone; -1 if unknown."""
    late: int = 0
    """Records of it that came after it was sent."""


class PaneColumn(msgspec.Struct, frozen=True, rename={"start": "from"}):
    """A pane at all nodes, from `start` up to `to`."""

    pane: int
    start: int
    to: int
    nodes: dict[str, PaneCell]


class WindowCoverage(msgspec.Struct, frozen=True):
    """The shares of a window's panes that were received."""

    area: float
    time: float
    space: float
    missing: dict[str, int]
    """The missing panes of nodes, by cause."""


class WindowCompleteness(msgspec.Struct, frozen=True):
    """The shares of a window's records and bytes that are in its result. None: not known, as while
    late records are expected."""

    records: float | None
    bytes: float | None
    unknown_panes: int
    late: float
    misdated: float


class JobWindow(msgspec.Struct, frozen=True, rename={"start": "from"}):
    """A window of a job, from `start` up to `to`."""

    window: int
    start: int
    to: int
    state: str
    """open or closed."""
    why: str | None
    """Why it was closed."""
    corrections: int
    coverage: WindowCoverage
    completeness: WindowCompleteness
    account: NodeCounts


class ReducerChange(msgspec.Struct, frozen=True, rename={"start": "from"}):
    """The next number of reducers, and the position from which it holds."""

    reducers: int
    start: int


class JobAnswer(msgspec.Struct, frozen=True):
    """One job: its scoreboard, its windows, and the accounts of its nodes."""

    name: str
    batch: int
    agents: bool
    """True if agents make its panes."""
    axis: str
    range: int
    slide: int
    pane: int
    latency: str | None
    fidelity: str | None
    nodes: list[str]
    ended: dict[str, int | None]
    """The nodes whose logs have ended, and where; None: the log is empty."""
    reducers: int | None
    change: ReducerChange | None
    panes: list[PaneColumn]
    """The panes around the oldest open window."""
    windows: list[JobWindow]
    """The newest open windows, then the last closed ones."""
    open: int
    closed: int
    accounts: dict[str, NodeCounts]
    totals: NodeCounts
    """The sum of all accounts."""
    warnings: list[str]
    silent: list[str]

    @property
    def summary(self) -> JobSummary:
        return JobSummary(
            self.accounts,
            self.silent,
            self.warnings,
            self.totals.residual,
            self.open,
            self.closed,
        )


class DefinitionAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """From which an agent makes the panes of a job: a definition, or a package of code."""

    version: str
    definition: Any = None
    package: str | None = None
    """The hash of the package."""
