"""What nodes tell the root: a pane, or a run of panes, with a manifest of each node (iMR, 4.2).

A message is JSON, the same from an agent, from a parent that has merged its children's panes, and
from the update that makes panes on Spark.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Mark = Literal["data", "empty", "lost"]
"""What became of a pane at a node: it is in the message; there was nothing; it will never come."""

Why = Literal["shed", "drawn", "cancelled", "memory", "absent"]
"""Why a pane is lost: there was no time for it; it was not drawn for the sample; its windows were
closed; it would not fit; the node began after it."""


class Manifest(TypedDict):
    """What a node says of a pane. Each record that it has read is in one of the four counts."""

    mark: Mark
    why: Why | None
    records: int
    """That are in the partials."""
    bytes: int
    shed: int
    """Records that were read and given up with the pane."""
    shed_bytes: int
    dead: int
    """Records that could not be read, or that `map` failed on."""
    late: dict[str, int]
    """Records that came while this pane was made, of panes that had been sent: pane -> count."""
    total: int
    """How many records the node has read since it began, counted by its reader."""
    first: int | None
    """Times of the first and of the last record, in microseconds."""
    last: int | None
    gap: NotRequired[int]
    """Bytes of the log that are known to be lost and may have been of these panes, or -1: nobody
    knows how many. No field: none was lost."""
    misdated: NotRequired[int]
    """Of the dead ones, those whose own time was not believed: they were read here, and nobody
    knows when they were. No field: there were none."""
    claimed: NotRequired[dict[str, int]]
    """Of the misdated ones, by pane, those that say that they are of it: perhaps they are."""


class Message(TypedDict):
    """Panes from `pane` up to `until`, which is not in it; none if they are equal: then it only
    says that the nodes are there. A run of more than one is of panes without records."""

    tree: NotRequired[str]
    """The topmost parent, or the node itself. The root ignores it: nodes may move."""
    pane: int
    until: int
    nodes: dict[str, Manifest]
    partials: dict[str, Any]
    """What `combine` has made of the values of these nodes, by key."""
    span: str
    """Of the job that made it (`Span.text`): by another job's the numbers say other panes."""
    over: NotRequired[bool]
    """Whether the logs of these nodes end at `until`, which is `pane` then: nothing comes from
    there on, unless their agents are started again and find more."""


def manifest(mark: Mark, total: int, *, why: Why | None = None) -> Manifest:
    """The manifest of a pane without records."""
    return Manifest(
        mark=mark,
        why=why,
        records=0,
        bytes=0,
        shed=0,
        shed_bytes=0,
        dead=0,
        late={},
        total=total,
        first=None,
        last=None,
    )
