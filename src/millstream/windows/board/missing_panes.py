"""Counts the panes of nodes that a window has not received, by cause.

    absent       the node's log begins later, or nothing was ever heard of the node
    awaited      the node is there, but has not sent the pane yet
    gap          bytes of the log that may have been in the pane are gone; the rest of it counts
    late         records of the pane came after it was sent; the rest of it counts
    shed         there was no time for it
    drawn        it was not drawn for the sample
    cancelled    its windows were closed when the node came to it
    memory       it did not fit into memory
    unreadable   it had records, but all of them are dead letters

The contents of the panes that are `UNKNOWN` are not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millstream.messages.answers import MissingPanes
from millstream.windows.board.pane_marks import state_of
from millstream.windows.board.scoreboard import Scoreboard
from millstream.windows.members import MOST_NAMED
from millstream.windows.panes.pane_mark import PaneMark

UNKNOWN = ("absent", "awaited", "gap", "unreadable")


@dataclass(frozen=True, slots=True)
class Missing:
    """Panes that were not received."""

    causes: Mapping[str, Mapping[str, int]]
    """The number of panes by cause and node."""

    @property
    def panes(self) -> dict[str, int]:
        """The number of panes by cause, over all nodes."""
        return {cause: sum(nodes.values()) for cause, nodes in self.causes.items()}

    @property
    def unknown(self) -> int:
        """The number of panes with unknown contents."""
        return sum(sum(self.causes.get(cause, {}).values()) for cause in UNKNOWN)

    def named(self) -> dict[str, MissingPanes]:
        """Returns by cause the number of panes and their nodes: the first few, and how many
        more."""
        return {
            cause: MissingPanes(
                panes=sum(nodes.values()),
                nodes=sorted(nodes)[:MOST_NAMED],
                more=max(0, len(nodes) - MOST_NAMED),
            )
            for cause, nodes in self.causes.items()
        }


def missing_of(board: Scoreboard, number: int, *, ended: bool) -> Missing:
    """Returns the panes that a window lacks now. `ended`: a silent node had no records."""
    span, causes = board.job.span, dict[str, dict[str, int]]()
    window, panes = board.window(number), span.panes_of(number)
    late = board.marks.late(panes)
    if window is not None and window.received == len(board.nodes) * span.panes and not late:
        return Missing({})
    boards = board.boards(panes)
    places = dict(board.places.all())
    for pane in panes:
        marks = boards.get(pane, {})
        for node in board.nodes:
            mark = marks.get(node)
            if mark is not None:
                cause = None if state_of(mark) == "received" else cause_of(mark)
            elif node not in places:
                cause = None if ended else "absent"
            else:
                state = places[node].silent(pane)
                cause = "absent" if state == "lost" else None
                if state is None and not ended:
                    cause = "awaited"
            if cause is None and node in late.get(pane, {}):
                cause = "late"
            if cause is not None:
                nodes = causes.setdefault(cause, {})
                nodes[node] = nodes.get(node, 0) + 1
    return Missing({cause: causes[cause] for cause in sorted(causes)})


def cause_of(mark: PaneMark) -> str:
    """Returns the reason why a pane with a mark was not received."""
    if mark.mark == "lost":
        return mark.why or "shed"
    return "gap" if mark.gap else "late"
