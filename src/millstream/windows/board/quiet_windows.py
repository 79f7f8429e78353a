"""Closes many windows in a row without records at once, with one answer.

A log that is silent for weeks, or whose lines are not in order of time, can jump over tens of
thousands of windows. Its node reports them in one message. If no other node is awaited, each of
these windows would be opened, found complete and closed, with the same answer. If there are `MANY`
windows or more, they are closed as a range instead, with one answer for all (`windows` in `answers`
is their number). As long as they can be corrected, there is one entry for the range:

    quiet|WINDOW          named by the first window: `QuietRange`

If late records of a window in the range are found, the window is created with the marks that it
would have had, and corrected like any other.

A range leaves out windows that exist already, windows of records that were late or misdated, and
windows whose answer depends on which panes were drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from millstream.model.slate import Table
from millstream.windows.accounts import window_entry, window_in
from millstream.windows.board.board_meta import BoardMeta
from millstream.windows.board.board_windows import BoardWindows
from millstream.windows.board.node_places import NodePlaces
from millstream.windows.board.pane_marks import pane_in, tardy
from millstream.windows.fidelity import Error
from millstream.windows.panes.pane_ledger import PanePart
from millstream.windows.panes.pane_mark import Marks, PaneMark, stored_marks
from millstream.windows.reducers import schemes
from millstream.windows.span import Span

MANY = 100
"""The least number of windows that are closed as a range. Of fewer, each has its own answer."""


class QuietRange(msgspec.Struct, frozen=True):
    """Windows that were closed together."""

    until: int
    """The window after the last."""
    marks: Marks
    """The marks of the nodes, the same for each of the panes."""


def quiet_entry(window: int) -> str:
    """Returns the name of the entry of the range that begins with a window."""
    return window_entry(window).replace("window", "quiet", 1)


def quiet_ranges(board: BoardWindows, places: NodePlaces, part: PanePart) -> list[range]:
    """Returns the windows that a part shows to be quiet, and that need not be opened."""
    span, step = board.job.span, board.job.span.slide // board.job.span.pane
    # The first pane is always marked: records read before a run of panes are counted there.
    first, until = part.pane + 1, part.until
    windows = range(-(-first // step), (until - span.panes) // step + 1)
    if len(windows) < MANY or not _can_be(board, places, part, windows):
        return []
    ranges, begin = list[range](), windows.start
    for other in (*_others(board, windows), windows.stop):
        if other - begin >= MANY:
            ranges.append(range(begin, other))
        begin = max(begin, other + 1)
    return ranges


def panes_needed(span: Span, pane: int, until: int, quiet: Sequence[range]) -> Iterator[int]:
    """Yields the panes of a run that are needed by windows that are not quiet, and always the first
    pane.

    >>> [*panes_needed(Span("records", length=20, slide=10, pane=10), 0, 9, [range(2, 7)])]
    [0, 1, 2, 7, 8]
    """
    begin = pane
    for windows in quiet:
        # `end`: the first pane that no window before these needs; `begin`: the first that a window
        # after these needs.
        end = span.panes_of(windows.start - 1).stop
        yield from range(begin, end)
        begin = max(end, span.panes_of(windows.stop)[0])
    yield from range(begin, until)


def _can_be(board: BoardWindows, places: NodePlaces, part: PanePart, windows: range) -> bool:
    """True if all nodes are known to have nothing in the windows, provided these do not exist
    yet."""
    meta, job = board.meta, board.job
    panes = range(board.first_pane(windows.start), board.first_pane(windows[-1]) + 1)
    if isinstance(job.fidelity, Error) or job.drawn_part is not None:
        return False
    if meta.is_before(panes.start) or places.counts.end < part.until:
        return False
    if schemes(board.schedule, panes.start, panes[-1]) != [board.reducers]:
        return False
    if not all(_is_empty(mark) for mark in part.marks.values()):
        return False
    others = (places.get(node) for node in board.members.nodes if node not in part.marks)
    return all(place is not None and place.over <= panes.start for place in others)


def _is_empty(mark: PaneMark) -> bool:
    counts = (mark.records, mark.shed, mark.dead, mark.gap)
    return mark.mark == "empty" and not any(counts)


def _others(board: BoardWindows, windows: range) -> list[int]:
    """Returns the windows among these that exist, have existed or have late records, in order."""
    table, span, meta = board.table, board.job.span, board.meta
    numbers = {number for number in meta.open if number in windows}
    for first, end in meta.closed:
        numbers.update(range(max(first, windows.start), min(end, windows.stop)))
    entries = table.scan(window_entry(windows.start), window_entry(windows.stop))
    numbers.update(window_in(entry) for entry, _ in entries)
    if meta.tardy:
        panes = range(board.first_pane(windows.start), span.panes_of(windows[-1]).stop)
        for entry, _ in table.scan(tardy(panes.start), tardy(panes.stop)):
            numbers.update(span.windows_of(pane_in(entry)))
    return sorted(number for number in numbers if number in windows)


def put(table: Table, meta: BoardMeta, windows: range, marks: Marks) -> None:
    """Stores what is needed to correct a window of a range."""
    meta.quiet = True
    table[quiet_entry(windows.start)] = {"until": windows.stop, "marks": stored_marks(marks)}


def quiet_marks(table: Table, meta: BoardMeta, window: int) -> Marks | None:
    """Returns the marks of each pane of a window in a range. None: it is not in a range."""
    if not meta.quiet:
        return None
    rows = table.scan(quiet_entry(-(1 << 62)), quiet_entry(window + 1), reverse=True)
    for _, stored in rows:
        quiet_range = msgspec.convert(stored, QuietRange)
        return quiet_range.marks if window < quiet_range.until else None
    return None


def let_go_quiet(table: Table, meta: BoardMeta, before: int) -> None:
    """Deletes the ranges whose windows are all before one."""
    if not meta.quiet:
        return
    rows: Iterator[tuple[str, Any]] = table.scan(quiet_entry(-(1 << 62)), quiet_entry(before))
    kept = False
    for entry, stored in [*rows]:
        if msgspec.convert(stored, QuietRange).until <= before:
            del table[entry]
        else:
            kept = True
    if not kept and next(table.scan(quiet_entry(before), quiet_entry(1 << 62)), None) is None:
        meta.quiet = False
