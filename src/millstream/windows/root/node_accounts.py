"""Adds messages to the accounts of their nodes, and to the counts of a job over all of them."""

from __future__ import annotations

from msgspec.structs import astuple

from millstream.model.slate import Table
from millstream.windows.accounts import NodeAccount, account, account_in, account_of
from millstream.windows.board.scoreboard import Scoreboard
from millstream.windows.panes.pane_ledger import PanePart


def add_to_accounts(board: Scoreboard, part: PanePart, *, in_time: bool) -> None:
    """Adds a pane of some nodes, or a run of panes without records, with the late records that were
    found while it was made. `in_time`: a window still awaited it."""
    meta, span = board.meta, board.job.span
    for node, mark in part.marks.items():
        late = part.late.get(node, {})
        counts = account_of(mark, on_time=in_time)
        counts.read += sum(late.values())
        counts.late += sum(late.values())
        counts.behind = max(((part.pane - int(pane)) * span.pane for pane in late), default=0)
        counts.gaps *= part.until - part.pane
        _add(board.table, node, counts)
        meta.read += counts.read
        meta.late += counts.late
        meta.misdated += mark.misdated


def _add(table: Table, node: str, counts: NodeAccount) -> None:
    if any(astuple(counts)):
        table[account(node)] = account_in(table, node).plus(counts)
