"""Deletes panes and windows at the root when they are no longer needed."""

from __future__ import annotations

from millstream.windows.accounts import KEPT, window_entry, window_in
from millstream.windows.board.pane_marks import MOST_SHOWN, shown_panes
from millstream.windows.board.quiet_windows import let_go_quiet
from millstream.windows.board.scoreboard import Scoreboard
from millstream.windows.reducers import BEGINNING
from millstream.windows.root.merged import oldest_needed, values


def let_go(board: Scoreboard) -> None:
    """Deletes panes that no window needs, and windows that were closed long ago."""
    needed = _first_needed(board)
    first = board.first_pane(needed)
    _let_go(board, oldest_needed(board.job, board.table, first))


def _first_needed(board: Scoreboard) -> int:
    """Returns the first window that may still need its panes. (A pane opens every window that it is
    in, so a window that is not open has no panes.)"""
    first: int = min(board.meta.open, default=board.meta.closed[-1][1])
    return first - board.job.corrections


def _let_go(board: Scoreboard, before: int) -> None:
    """Deletes the panes before one.

    The very first panes stay for as long as a node might begin even earlier: windows that begin
    before them would then need them.
    """
    meta, span, table = board.meta, board.job.span, board.table
    if not meta.final and board.places.counts.begun == len(board.nodes):
        meta.final = True
        meta.swept = BEGINNING  # the first panes may be deleted now
    if meta.swept == before:
        return
    assert meta.first is not None  # a window is closed only after a pane has come
    # Everything before the last sweep is already deleted.
    last_before = -(-meta.first // (span.slide // span.pane)) - 1
    first = meta.first if meta.final else span.panes_of(last_before).stop
    swept = meta.swept
    first = max(first, swept)
    # A node that is far ahead may have closed windows: then `before` is lower than last time.
    meta.swept, meta.kept = before, max(before, meta.kept)
    shown = shown_panes(len(board.nodes))
    board.marks.let_go(first, before, shown)
    board.marks.let_go_past(swept - MOST_SHOWN, before - shown)
    for entry in [entry for entry, _ in table.scan(values(first), values(before))]:
        del table[entry]
    until = _first_needed(board) - KEPT
    begin = window_entry(meta.forgot)
    for entry in [entry for entry, _ in table.scan(begin, window_entry(until))]:
        board.forget(window_in(entry))
    board.marks.let_go_late(min(before, board.first_pane(until)))
    meta.forgot = until
    let_go_quiet(table, meta, _first_needed(board))
