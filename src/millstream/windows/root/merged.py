"""The values of a window: merged from its panes, or moved on from an earlier window (iMR, 2.3.2).

Merging reads every pane of a window. Moving reads only the panes that leave and those that enter.
So a window is moved if its slide is under half of its range and values can be taken out again. It
can only be moved from a window whose panes have not changed since. If a pane has come in between,
the window is merged from its panes.

    moved                 the window that was closed last, and the number of nodes of each pane
    sums                  by key, the number of its panes, and its value over all of them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.errors import FunctionError
from millstream.model.place import FAILURES, described
from millstream.model.slate import Table
from millstream.windows.board.pane_marks import board, pane_in, tally

if TYPE_CHECKING:
    from millstream.windows.job import Job

SUMS, MOVED = "sums", "moved"
Sums = dict[str, list[Any]]
MOST_SUMS = 100_000
"""With more keys than this no sums are kept: the entry would be too large."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Stands in for a key's value: the error that `combine` raised."""

    error: str


class MovedWindow(msgspec.Struct, frozen=True):
    """The entry `moved`: the window whose sums are kept."""

    window: int
    nodes: dict[str, int]
    """By pane: the number of nodes that had marked it."""


def values(pane: int) -> str:
    """Returns the prefix of the entries of a pane's values. The name of the first of the nodes
    follows."""
    return board(pane).replace("board", "pane", 1) + "|"


def moves(job: Job) -> bool:
    """True if windows are moved on where possible."""
    return job.merging.unmerge is not None and 2 * job.span.slide < job.span.length


def oldest_needed(job: Job, table: Table, first: int) -> int:
    """Returns the oldest pane that is still needed, if no open window has a pane before `first`."""
    moved = _kept(table) if moves(job) else None
    return first if moved is None else min(first, job.span.panes_of(moved.window)[0])


def put(table: Table, pane: int, partials: Mapping[str, Any], nodes: Iterable[str]) -> None:
    """Stores the values that nodes have combined for a pane. It is one entry for all keys. They are
    merged once, when a window needs them."""
    if partials:
        table[values(pane) + min(nodes)] = partials


def merged(job: Job, table: Table, window: int) -> dict[str, Any]:
    """Returns the values of a window by key."""
    panes = job.span.panes_of(window)
    if not moves(job):
        return merged_anew(job, table, panes)
    try:
        sums = _moved(job, table, window)
    except FAILURES:  # `combine` fails on a key; merged anew, the other keys keep their values
        table.discard(SUMS)
        table.discard(MOVED)
        return merged_anew(job, table, panes)
    read = job.merging.read
    return {key: read(value) for key, (_, value) in sums.items()}


def merged_anew(job: Job, table: Table, panes: range) -> dict[str, Any]:
    """Merges the values of panes by key. A key on which `combine` fails has a `Failed`."""
    merging, whole, failed = job.merging, dict[str, Any](), dict[str, Any]()
    for _, partials in table.scan(values(panes[0]), values(panes[-1] + 1)):
        for key, partial in partials.items():
            try:
                value = merging.read(partial)
                whole[key] = merging.merge(whole[key], value) if key in whole else value
            except FAILURES as error:
                failed.setdefault(key, Failed(described(error)))
    return {**whole, **failed}


def by_pane(table: Table, panes: range) -> dict[str, dict[tuple[str, int], Any]]:
    """Returns the values of panes by key, separately for each node, for answers with bounds."""
    by_key: dict[str, dict[tuple[str, int], Any]] = {}
    for entry, partials in table.scan(values(panes[0]), values(panes[-1] + 1)):
        unit = entry.split("|", 2)[2], pane_in(entry)
        for key, partial in partials.items():
            by_key.setdefault(key, {})[unit] = partial
    return by_key


def _kept(table: Table) -> MovedWindow | None:
    stored = table.get(MOVED)
    return None if stored is None else msgspec.convert(stored, MovedWindow)


def _marked(table: Table, panes: range) -> dict[str, int]:
    """Counts the nodes that have marked each pane. A pane has changed if its count has."""
    if not panes:
        return {}
    tallies = table.scan(tally(panes[0]), tally(panes[-1] + 1))
    return {str(pane_in(entry)): marked for entry, (marked, *_) in tallies if marked}


def _moved(job: Job, table: Table, window: int) -> Sums:
    """Returns the sums of a window, computed from the kept ones if possible."""
    panes = job.span.panes_of(window)
    moved = _kept(table)
    before = range(0) if moved is None else job.span.panes_of(moved.window)
    marked = _marked(table, before), _marked(table, panes)
    shared = range(max(panes[0], before.start), min(panes[-1] + 1, before.stop))
    sums: Sums = table.get(SUMS, {})
    if not shared or moved is None or moved.nodes != marked[0]:
        sums, before, shared = {}, range(0), range(0)
    for pane in before:
        if pane not in shared:
            _change(job, table, sums, pane, -1)
    for pane in panes:
        if pane not in shared:
            _change(job, table, sums, pane, 1)
    if len(sums) > MOST_SUMS:
        table.discard(SUMS)
        table.discard(MOVED)
    else:
        table[SUMS] = sums
        table[MOVED] = MovedWindow(window, marked[1])
    return sums


def _change(job: Job, table: Table, sums: Sums, pane: int, sign: int) -> None:
    """Adds a pane's values to the sums (`sign` 1), or takes them out (-1)."""
    merging = job.merging
    assert merging.unmerge is not None
    for key, value in merged_anew(job, table, range(pane, pane + 1)).items():
        if isinstance(value, Failed):
            raise FunctionError(value.error)
        count, total = sums.get(key, [0, None])
        if count + sign == 0:
            del sums[key]
            continue
        if count == 0:
            new = value
        elif sign > 0:
            new = merging.merge(merging.read(total), value)
        else:
            new = merging.unmerge(merging.read(total), value)
        sums[key] = [count + sign, merging.write(new)]
