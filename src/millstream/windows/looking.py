"""What is asked of a window at the root, beyond its counts: its bounds, which `estimates` works out
from the scoreboard, when `Error` looks at them, and whether all panes that are drawn are there.

`Error` looks when a round is complete for all nodes, and once for each round: looks at other
moments would be chances to fail that its intervals do not allow for. Each reducer looks at the
total of its own keys.
"""

from __future__ import annotations

from millstream.windows.accounts import Window, manifest_of
from millstream.windows.estimates import Estimate, estimate
from millstream.windows.fidelity import Error, Fidelity, rounds
from millstream.windows.job import Job
from millstream.windows.merged import by_pane
from millstream.windows.message import Manifest, manifest
from millstream.windows.scoreboard import Scoreboard
from millstream.windows.strata import rounds_done


def manifests(board: Scoreboard, window: int, *, ended: bool) -> dict[tuple[str, int], Manifest]:
    """What is known of the panes of a window; `ended`: who was silent had nothing."""
    panes = board.job.span.panes_of(window)
    known: dict[tuple[str, int], Manifest] = {}
    for node in board.nodes if ended else ():
        known.update({(node, pane): manifest("empty", 0) for pane in panes})
    silent = {"lost": manifest("lost", 0, why="absent"), "received": manifest("empty", 0)}
    known.update({(node, pane): silent[state] for node, pane, state in board.silent(panes)})
    for pane, marks in board.boards(panes).items():
        known.update({(node, pane): manifest_of(mark, pane) for node, mark in marks.items()})
    return known


def bounds(board: Scoreboard, window: int, *, ended: bool = False) -> Estimate | None:
    """The bounds of a window's answers; None: the job's values have none."""
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
    final = not board.dated
    return estimate(board.job, board.nodes, panes, known, values, final=final, late=late)


def near(board: Scoreboard, number: int, window: Window) -> bool:
    """Whether a window has what its fidelity asks for beyond the counts: of an area of drawn panes,
    all that are drawn; of `Error`, a bound that is near enough, if it looks now."""
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
    found = bounds(board, number)
    return found is not None and job.fidelity.look(found.total)


def asked(job: Job) -> Fidelity | None:
    """What is asked of the counts of a window. An area of drawn panes asks nothing of them: a pane
    that was not drawn and had no records counts as received, but is no part of the sample."""
    return None if job.drawn_part is not None else job.fidelity


def _too_few(board: Scoreboard, window: Window) -> bool:
    """Whether the next round cannot be complete, by the counts alone. (Windows that do not begin
    with a block have other parts of the rounds: those are looked at one by one.)"""
    span = board.job.span
    ends = rounds(span.panes)
    if window.looked >= len(ends) or span.slide != span.length:
        return window.looked >= len(ends)
    return window.received + window.lost < len(board.nodes) * ends[window.looked]
