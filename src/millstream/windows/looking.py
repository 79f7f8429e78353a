"""What is asked of a window at the root, beyond its counts: its bounds, which `estimates` works out
from the scoreboard, when `Error` looks at them, and how many panes are drawn for it.

`Error` looks when a round is complete for all nodes, and once for each round: looks at other
moments would be chances to fail that its intervals do not allow for. Each reducer looks at the
total of its own keys.
"""

from __future__ import annotations

from millstream.windows.accounts import Window, manifest_of
from millstream.windows.drawing import rank
from millstream.windows.estimates import Estimate, estimate
from millstream.windows.fidelity import Area, Error, Fidelity, rounds
from millstream.windows.merged import by_pane
from millstream.windows.message import Manifest, manifest
from millstream.windows.scoreboard import Scoreboard
from millstream.windows.shedding import drawn_panes
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
    return estimate(board.job, board.nodes, panes, known, values, final=not board.dated)


def near(board: Scoreboard, number: int, window: Window) -> bool:
    """Whether `Error` looks now, and finds the answer near enough."""
    job = board.job
    if not isinstance(job.fidelity, Error) or _too_few(board, window):
        return False
    panes = job.span.panes_of(number)
    done = rounds_done(job, board.nodes, panes, manifests(board, number, ended=False))
    if done <= window.looked:
        return False
    window.looked = done
    found = bounds(board, number)
    return found is not None and job.fidelity.look(found.total)


def asked(board: Scoreboard, number: int, window: Window) -> Fidelity | None:
    """The fidelity that is asked of a window.

    A window that does not begin with a block has parts of two, of which a little more or less may
    be drawn than the job says. All that is drawn is then all that is asked: no more will come.
    """
    job, span = board.job, board.job.span
    if not isinstance(job.fidelity, Area) or not job.fidelity.drawn or span.slide == span.length:
        return job.fidelity
    if not window.drawn:
        most, panes = drawn_panes(job.fidelity.part, span.panes), span.panes_of(number)
        drawn = sum(
            rank(job.seed, node, pane, span.panes) < most for node in board.nodes for pane in panes
        )
        window.drawn = drawn / (len(board.nodes) * len(panes))
    part = min(job.fidelity.part, window.drawn)
    return Area(part, drawn=True) if part else None


def _too_few(board: Scoreboard, window: Window) -> bool:
    """Whether the next round cannot be complete, by the counts alone. (Windows that do not begin
    with a block have other parts of the rounds: those are looked at one by one.)"""
    span = board.job.span
    ends = rounds(span.panes)
    if window.looked >= len(ends) or span.slide != span.length:
        return window.looked >= len(ends)
    return window.received + window.lost < len(board.nodes) * ends[window.looked]
