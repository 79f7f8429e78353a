"""Which panes and windows the root lets go of: those that no window needs any more."""

from __future__ import annotations

from millstream.windows.accounts import KEPT, window_entry, window_in
from millstream.windows.merged import oldest_needed, values
from millstream.windows.pane_marks import MOST_SHOWN, shown_panes
from millstream.windows.reducers import BEGINNING
from millstream.windows.scoreboard import Scoreboard


def let_go(board: Scoreboard) -> None:
    """Let go of panes that no window needs, and of windows that were closed long ago."""
    needed = _first_needed(board)
    first = board.first_pane(needed)
    _let_go(board, oldest_needed(board.job, board.table, first))


def _first_needed(board: Scoreboard) -> int:
    """The first window that may still need its panes. (A pane opens every window that it is in, so
    a window that is not open has none.)"""
    first: int = min(board.meta["open"], default=board.meta["closed"][-1][1])
    return first - board.job.corrections


def _let_go(board: Scoreboard, before: int) -> None:
    """Let go of the panes before one.

    The first panes of all stay for as long as a node might begin even earlier: then windows that
    begin before them need them.
    """
    meta, span, table = board.meta, board.job.span, board.table
    if not meta["final"] and board.places.counts.begun == len(board.nodes):
        meta["final"] = True
        meta["swept"] = BEGINNING  # the first panes may go now
    if meta.get("swept") == before:
        return
    # What lies before the last sweep is gone, and need not be looked for.
    last_before = -(-meta["first"] // (span.slide // span.pane)) - 1
    first = meta["first"] if meta["final"] else span.panes_of(last_before).stop
    swept = meta.get("swept", BEGINNING)
    first = max(first, swept)
    # A node that is far ahead may have had windows closed: then less is let go than before.
    meta["swept"], meta["kept"] = before, max(before, meta["kept"])
    shown = shown_panes(len(board.nodes))
    board.marks.let_go(first, before, shown)
    board.marks.let_go_late(swept, before)
    board.marks.let_go_past(swept - MOST_SHOWN, before - shown)
    for entry in [entry for entry, _ in table.scan(values(first), values(before))]:
        del table[entry]
    until = _first_needed(board) - KEPT
    begin = window_entry(meta.get("forgot", BEGINNING))
    for entry in [entry for entry, _ in table.scan(begin, window_entry(until))]:
        board.forget(window_in(entry))
    meta["forgot"] = until
