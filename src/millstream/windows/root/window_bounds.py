"""Checks of a window at the root that need more than its counts.

They are the bounds of a window, which `estimates` computes from the scoreboard, the decision when
`Error` looks at them, and the check that all drawn panes have come.

`Error` looks when a round is complete for all nodes, once for each round. Each look is an occasion
to fail, and its intervals allow only for these. Each reducer looks at the total of its own keys, as
far as their records come in time: waiting would not make late records known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from millstream.windows.accounts import WindowAccount
from millstream.windows.board.scoreboard import Scoreboard
from millstream.windows.bounds.estimates import Estimate, estimate
from millstream.windows.bounds.strata import rounds_done
from millstream.windows.fidelity import Error, Fidelity, rounds
from millstream.windows.panes.message import PaneManifest, manifest
from millstream.windows.root.merged import by_pane

if TYPE_CHECKING:
    from millstream.windows.job import Job


def manifests(
    board: Scoreboard, window: int, *, ended: bool
) -> dict[tuple[str, int], PaneManifest]:
    """Returns what is known of the panes of a window. `ended`: a silent node had no records."""
    panes = board.job.span.panes_of(window)
    known: dict[tuple[str, int], PaneManifest] = {}
    for node in board.nodes if ended else ():
        known.update({(node, pane): manifest("empty", 0) for pane in panes})
    silent = {"lost": manifest("lost", 0, why="absent"), "received": manifest("empty", 0)}
    known.update({(node, pane): silent[state] for node, pane, state in board.silent(panes)})
    for pane, marks in board.boards(panes).items():
        known.update({(node, pane): mark.manifest(pane) for node, mark in marks.items()})
    return known


def bounds(
    board: Scoreboard, window: int, *, ended: bool = False, in_time: bool = False
) -> Estimate | None:
    """Computes the bounds of a window's answers. None: the job's values have no bounds. `in_time`:
    the bounds are on what comes in time, even if records come late."""
    if board.job.kind is None:
        return None
    panes = board.job.span.panes_of(window)
    values = by_pane(board.table, panes)
    known = manifests(board, window, ended=ended)
    boards, tardy = board.boards(panes), board.marks.late(panes)
    late = sum(
        count
        for pane, counts in tardy.items()
        for node, count in counts.items()
        if node not in boards.get(pane, {})
    )
    final = not (board.dated or ended or _is_unfilled(board, panes, known))
    more_expected = board.late_expected and not in_time
    return estimate(
        board.job, board.nodes, panes, known, values, final=final, late=late, tardy=more_expected
    )


def _is_unfilled(
    board: Scoreboard, panes: range, known: Mapping[tuple[str, int], PaneManifest]
) -> bool:
    """True if a window of counts is closed before it is full, by the end of a log. If the log
    continues after all, its next records would have been in it."""
    ended = board.places.counts.earliest < panes.stop
    counts = board.job.span.axis in ("records", "bytes")
    return counts and (ended or any(entry.cut for entry in known.values()))


def near(board: Scoreboard, number: int, window: WindowAccount) -> bool:
    """True if a window has what its fidelity requires beyond the counts. For an area of drawn
    panes: all drawn panes. For `Error`: a bound that is near enough, if it looks now."""
    job = board.job
    if job.drawn_part is not None:
        return 0 < window.drawn == window.drawn_received
    if not isinstance(job.fidelity, Error) or _too_few(board, window):
        return False
    panes = job.span.panes_of(number)
    done = rounds_done(job, board.nodes, panes, manifests(board, number, ended=False))
    if done <= window.looked:
        return False
    window.looked = done
    answer_bounds = bounds(board, number, in_time=True)
    return answer_bounds is not None and job.fidelity.look(answer_bounds.total)


def asked(job: Job) -> Fidelity | None:
    """Returns the fidelity that the counts of a window must meet. An area of drawn panes requires
    nothing of them: a pane that was not drawn and had no records counts as received, but is not
    part of the sample."""
    return None if job.drawn_part is not None else job.fidelity


def _too_few(board: Scoreboard, window: WindowAccount) -> bool:
    """True if the counts alone show that the next round cannot be complete. (Windows that do not
    begin with a block have other shares of the rounds: their panes are checked one by one.)"""
    span = board.job.span
    ends = rounds(span.panes)
    if window.looked >= len(ends) or span.slide != span.length:
        return window.looked >= len(ends)
    return window.received + window.lost + window.tardy < len(board.nodes) * ends[window.looked]
