"""A window's values from its panes: merged anew, or moved on from the window before (iMR, 2.3.2).

Merging touches every pane of a window, moving only those that leave and those that enter. So a
window is moved if its slide is under half of its range and a value can be taken out again. It can
be moved only from one whose panes have not changed since: where one has come in between, it is
merged anew.

    moved                 the window that was closed last, and how many nodes each of its panes had
    sums                  by key, in how many of its panes it is, and its value over all of them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from millstream.errors import FunctionError
from millstream.model.place import described
from millstream.model.rules import FAILURES
from millstream.model.slate import Table
from millstream.windows.job import Job
from millstream.windows.pane_marks import board, pane_in, tally

SUMS = "sums"
Sums = dict[str, list[Any]]
MOST_SUMS = 100_000
"""Of more keys than that no sums are kept: one entry would be too large."""


@dataclass(frozen=True, slots=True)
class Failed:
    """In place of a key's value: what `combine` has raised."""

    error: str


def values(pane: int) -> str:
    """How the entries of a pane's values begin; the node follows, of several the first."""
    return board(pane).replace("board", "pane", 1) + "|"


def moves(job: Job) -> bool:
    """Whether windows are moved on, as far as they can be."""
    return job.merging.unmerge is not None and 2 * job.span.slide < job.span.length


def oldest_needed(job: Job, table: Table, first: int) -> int:
    """The oldest pane that is still needed if no open window has one before `first`."""
    moved = table.get("moved") if moves(job) else None
    return first if moved is None else min(first, job.span.panes_of(moved["window"])[0])


def put(table: Table, pane: int, partials: Mapping[str, Any], nodes: Iterable[str]) -> None:
    """Keep what nodes have combined of a pane. It is one entry, whatever the number of its keys:
    they are put together once, when a window needs them."""
    if partials:
        table[values(pane) + min(nodes)] = partials


def merged(job: Job, table: Table, window: int) -> dict[str, Any]:
    """The values of a window's keys."""
    panes = job.span.panes_of(window)
    if not moves(job):
        return merged_anew(job, table, panes)
    try:
        sums = _moved(job, table, window)
    except FAILURES:  # of a key that `combine` fails on; merged anew, the others are none the worse
        table.discard(SUMS)
        table.discard("moved")
        return merged_anew(job, table, panes)
    read = job.merging.read
    return {key: read(value) for key, (_, value) in sums.items()}


def merged_anew(job: Job, table: Table, panes: range) -> dict[str, Any]:
    """The values of the keys of panes; of one that `combine` fails on, that it has."""
    merging, found, failed = job.merging, dict[str, Any](), dict[str, Any]()
    for _, partials in table.scan(values(panes[0]), values(panes[-1] + 1)):
        for key, partial in partials.items():
            try:
                value = merging.read(partial)
                found[key] = merging.merge(found[key], value) if key in found else value
            except FAILURES as error:
                failed.setdefault(key, Failed(described(error)))
    return {**found, **failed}


def by_pane(table: Table, panes: range) -> dict[str, dict[tuple[str, int], Any]]:
    """The values of the keys of panes, each as its node has told it; for answers with bounds."""
    found: dict[str, dict[tuple[str, int], Any]] = {}
    for entry, partials in table.scan(values(panes[0]), values(panes[-1] + 1)):
        unit = entry.split("|", 2)[2], pane_in(entry)
        for key, partial in partials.items():
            found.setdefault(key, {})[unit] = partial
    return found


def _marked(table: Table, panes: range) -> dict[str, int]:
    """How many nodes have marked each of the panes: what was told of it has changed if that has."""
    if not panes:
        return {}
    tallies = table.scan(tally(panes[0]), tally(panes[-1] + 1))
    return {str(pane_in(entry)): marked for entry, (marked, *_) in tallies if marked}


def _moved(job: Job, table: Table, window: int) -> Sums:
    """The sums of a window, from those of the window before as far as that goes."""
    panes = job.span.panes_of(window)
    moved = table.get("moved")
    before = range(0) if moved is None else job.span.panes_of(moved["window"])
    marked = _marked(table, before), _marked(table, panes)
    shared = range(max(panes[0], before.start), min(panes[-1] + 1, before.stop))
    sums: Sums = table.get(SUMS, {})
    if not shared or moved["nodes"] != marked[0]:
        sums, before, shared = {}, range(0), range(0)
    for pane in before:
        if pane not in shared:
            _change(job, table, sums, pane, -1)
    for pane in panes:
        if pane not in shared:
            _change(job, table, sums, pane, 1)
    if len(sums) > MOST_SUMS:
        table.discard(SUMS)
        table.discard("moved")
    else:
        table[SUMS] = sums
        table["moved"] = {"window": window, "nodes": marked[1]}
    return sums


def _change(job: Job, table: Table, sums: Sums, pane: int, sign: int) -> None:
    """Put a pane's values into the sums, or take them out."""
    merging = job.merging
    assert merging.unmerge is not None
    for key, given in merged_anew(job, table, range(pane, pane + 1)).items():
        if isinstance(given, Failed):
            raise FunctionError(given.error)
        count, total = sums.get(key, [0, None])
        if count + sign == 0:
            del sums[key]
            continue
        if count == 0:
            new = given
        elif sign > 0:
            new = merging.merge(merging.read(total), given)
        else:
            new = merging.unmerge(merging.read(total), given)
        sums[key] = [count + sign, merging.write(new)]
