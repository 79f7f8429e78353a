"""What a job over windows publishes: the answer of each key, and a summary of each window.

A field that is `UNSET` is left out. What the fields mean is in `millstream.windows.root.answers`,
and what bounds mean in `millstream.windows.bounds.estimates`.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from millstream.messages.jobs import WindowCompleteness, WindowCoverage

Number = int | float
MaybeNumber = Number | None


class KnownBound(msgspec.Struct, frozen=True, rename={"units": "of"}):
    """A bound over the panes of which something is known: `panes` of `units` panes of nodes."""

    low: MaybeNumber
    high: MaybeNumber
    panes: int
    units: int


class BoundPanes(msgspec.Struct, frozen=True):
    """The panes of nodes that a bound is made from, and those that it allows for."""

    received: int
    left_out: int
    """Left out at random."""
    lost: int
    unknown: int
    """Those of which nothing is known."""


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate, and the range in which the truth is. None: nothing can be said."""

    value: MaybeNumber
    low: MaybeNumber
    high: MaybeNumber
    confidence: float | None
    method: str
    final: bool
    """False: it bounds what came in time."""
    on_time_confidence: float | UnsetType = UNSET
    known: KnownBound | UnsetType = UNSET
    panes: BoundPanes | UnsetType = UNSET
    """In a summary's total."""
    bucket: Any = UNSET
    """The bucket of a histogram that this is the bound of."""
    buckets: list[Bound] | UnsetType = UNSET


class ClosedWindow(msgspec.Struct, frozen=True, kw_only=True, rename={"start": "from"}):
    """A closed window, from `start` up to `to`: what its answers and its summary have in common."""

    start: int
    to: int
    why: str
    """Why it was closed."""
    coverage: WindowCoverage
    completeness: WindowCompleteness
    windows: int | UnsetType = UNSET
    """The number of windows in a row that it stands for."""
    correction: int | UnsetType = UNSET


class WindowAnswer(ClosedWindow, frozen=True, kw_only=True):
    """The answer of a key, on the stream of the job."""

    value: Any
    error: str | UnsetType = UNSET
    """Why there is no value."""
    bounds: Bound | UnsetType = UNSET


class MissingPanes(msgspec.Struct, frozen=True):
    """The panes of nodes that are missing for one cause."""

    panes: int
    nodes: list[str]
    """The first few nodes."""
    more: int
    """The number of the others."""


class WindowCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Where the records of a node went that are in a window."""

    read: int
    on_time: int
    late: int
    shed: int
    dead: int
    gaps: int | UnsetType = UNSET
    residual: int


class WindowSummary(ClosedWindow, frozen=True, kw_only=True):
    """The summary of a window at a reducer, on the stream NAME.windows."""

    reducer: str
    keys: int
    records: int
    bytes: int
    histogram: list[int]
    """The number of nodes that have responded, for each pane."""
    missing: dict[str, MissingPanes]
    accounts: dict[str, WindowCounts]
    failed: int | UnsetType = UNSET
    """The number of keys whose value failed."""
    total: Bound | UnsetType = UNSET
    unseen: Bound | UnsetType = UNSET
