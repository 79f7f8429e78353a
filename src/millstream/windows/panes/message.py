"""Messages from nodes to the root: one pane, or a run of panes, with a manifest for each node.

A message is JSON (iMR, 4.2). It has the same form from an agent, from a parent that has merged its
children's panes, and from the update that makes panes on Spark.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Mark = Literal["data", "empty", "lost"]
"""The state of a pane at a node: its values are in the message (`data`), it had no records
(`empty`), or it will never come (`lost`)."""

Why = Literal["shed", "drawn", "cancelled", "memory", "unreadable", "absent"]
"""The reason why a pane is lost.

- `shed`: there was no time for it.
- `drawn`: it was not drawn for the sample.
- `cancelled`: its windows were closed.
- `memory`: it did not fit into memory.
- `unreadable`: it had records, but all of them are dead letters.
- `absent`: the node began after it.
"""


Count = Annotated[int, msgspec.Meta(ge=0)]
PaneNumber = Annotated[str, msgspec.Meta(pattern="^-?[0-9]{1,20}$")]
"""A pane as a key of JSON."""


class PaneManifest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A node's report on a pane. Each record read is in exactly one of four counts: `records`,
    `shed`, `dead` or `late`."""

    mark: Mark
    why: Why | None
    records: Count
    """Records that are in the partials."""
    bytes: Count
    shed: Count
    """Records that were read and given up with the pane."""
    shed_bytes: Count
    dead: Count
    """Records that could not be read, or that `map` failed on."""
    late: dict[PaneNumber, Count]
    """Records that came while this pane was made, but belong to panes that were sent before: pane
    -> count."""
    total: Count
    """Records that the node has read since it began, counted by its reader."""
    first: int | None
    """The times of the first and the last record, in microseconds."""
    last: int | None
    gap: Annotated[int, msgspec.Meta(ge=-1)] = 0
    """Bytes of the log that are known to be lost and may have belonged to these panes. -1: their
    number is not known. Left out if none were lost."""
    misdated: Count = 0
    """Dead records whose time was implausible. They were read here, but their true time is not
    known. Left out if there were none."""
    claimed: dict[PaneNumber, Count] = {}
    """Misdated records, counted by the pane to which they claim to belong."""
    cut: bool = False
    """True if the end of the log ended a pane of counts, which may not be full. If the log
    continues after all, its next records are late for the pane. Left out if False."""


class Message(
    msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True, rename={"order": "_order"}
):
    """Panes from `pane` up to, but not including, `until`. If the two are equal there are no panes,
    and the message only says that the nodes are there. A run of more than one pane has no
    records."""

    order: str = ""
    """Set on the way to the ledger: messages with the same time are taken in the order of their
    panes (`reducers.order_of`)."""
    tree: str = ""
    """The topmost parent, or the node itself. The root ignores it, since nodes may move."""
    pane: int
    until: int
    nodes: dict[str, PaneManifest]
    partials: dict[str, Any]
    """The combined values of these nodes, by key."""
    span: str
    """The span of the job that made the message (`Span.text`). Under another span the same numbers
    would be other panes."""
    over: bool = False
    """True if the logs of these nodes end at `until`, which then equals `pane`. Nothing comes after
    that, unless their agents are started again and find more."""


def manifest(mark: Mark, total: int, *, why: Why | None = None) -> PaneManifest:
    """Returns the manifest of a pane without records."""
    return PaneManifest(
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
