"""The entry `meta` of a reducer's scoreboard: what is known of all its panes, windows and nodes."""

from __future__ import annotations

import msgspec

from millstream.windows.reducers import BEGINNING, NEVER, Schedule


class PlaceCounts(msgspec.Struct):
    """Counts over all nodes of the job (`node_places`)."""

    heard: int = 0
    """Nodes that have sent anything."""
    begun: int = 0
    """Nodes that have said where they begin."""
    latest: int = BEGINNING
    """No node begins after this pane."""
    ended: int = 0
    """Logs that have ended."""
    earliest: int = NEVER
    """No log has ended before this pane."""
    end: int = NEVER
    """The end of the last log, if the logs of all nodes that have sent anything have ended."""


class BoardMeta(msgspec.Struct, kw_only=True, rename={"from_": "from"}):
    """The entry `meta`."""

    first: int | None = None
    """The first pane that any node has reported."""
    final: bool = False
    """True if no pane can come before `first`."""
    open: list[int] = []
    """The open windows, in order."""
    closed: list[list[int]] = []
    """Ranges of closed windows, in order: [first, window after the last]."""
    job: str = ""
    """A hash of the job's nodes."""
    places: PlaceCounts = msgspec.field(default_factory=PlaceCounts)
    kept: int = BEGINNING
    """Panes before this one were deleted."""
    swept: int = BEGINNING
    """The same as of the last sweep; lowered when an earlier pane comes again."""
    forgot: int = BEGINNING
    """Windows before this one were deleted."""
    schedule: Schedule = []
    repeated: int = 0
    read: int = 0
    """Records of all nodes, for any window, as are the next two."""
    late: int = 0
    misdated: int = 0
    tardy: bool = False
    """True once there are late records. Before that they are not searched for."""
    late_counted: bool = False
    """True if the counts of panes and windows tell apart the panes of which records came late.
    Those of an earlier version do not."""
    unordered: bool = False
    """True once a node has read a record of a pane that it had sent, or of one before its first.
    (Panes that come late do not count: where one is awaited, its window lacks it.)"""
    quiet: bool = False
    """True if there are ranges of quiet windows (`quiet_windows`)."""
    said: list[int] = []
    """The times of the first and the last answer of the current batch."""
    legacy: int = BEGINNING
    """Panes up to this one may be missing in the ledger: they came before there was one."""
    from_: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """Stored by an earlier version only, as are the next two: the first pane of each node."""
    at: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """The pane that each node had reached."""
    nodes: list[str] | msgspec.UnsetType = msgspec.UNSET

    def is_before(self, pane: int) -> bool:
        """True if nothing of the pane can come any more, since it is before the first."""
        return self.final and self.first is not None and pane < self.first

    def expects_late(self, nodes: int) -> bool:
        """True if records have come late, and a log of the `nodes` goes on from which more may
        come."""
        return self.unordered and self.places.ended < nodes

    def part_of(self, count: int) -> float:
        """Returns the share of `count` records among all that were read."""
        return count / self.read if self.read else 0.0
