"""A window's values from its panes: merged anew, or moved on from the window before (iMR, 2.3.2).

Merging touches every pane of a window, moving only those that leave and those that enter. So a
window is moved if its slide is under half of its range and a value can be taken out again. It can
be moved only from one that had the same of the panes that both have: where a pane has come in
between, it is merged anew.

    moved                 the window that was closed last, and how many nodes each of its panes had
    sum|KEY               in how many of its panes a key is, and the key's value over all of them
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.model.slate import Table
from millstream.windows.job import Job

_ZERO = 1 << 62
"""Added to a pane's number, so that the order of texts is that of numbers."""
SUM = "sum|"


def board(pane: int) -> str:
    """The entry of a pane's marks."""
    return f"board|{pane + _ZERO:020d}"


def values(pane: int) -> str:
    """How the entries of a pane's values begin; the key follows."""
    return f"pane|{pane + _ZERO:020d}|"


def pane_in(entry: str) -> int:
    """The pane that an entry is of."""
    return int(entry.split("|", 2)[1]) - _ZERO


def moves(job: Job) -> bool:
    """Whether windows are moved on, as far as they can be."""
    return job.merging.unmerge is not None and 2 * job.span.slide < job.span.length


def oldest_needed(job: Job, table: Table, first: int) -> int:
    """The oldest pane that is still needed if no open window has one before `first`."""
    moved = table.get("moved") if moves(job) else None
    return first if moved is None else min(first, job.span.panes_of(moved["window"])[0])


def merged(job: Job, table: Table, window: int, nodes: Mapping[int, int]) -> dict[str, Any]:
    """The values of a window's keys; `nodes` says of how many nodes each of its panes is."""
    panes = job.span.panes_of(window)
    if not moves(job):
        return _merged_anew(job, table, panes)
    moved = table.get("moved")
    before = range(0) if moved is None else job.span.panes_of(moved["window"])
    had = {} if moved is None else {int(pane): count for pane, count in moved["nodes"].items()}
    shared = range(max(panes[0], before.start), min(panes[-1] + 1, before.stop))
    if not shared or any(had.get(pane, 0) != nodes.get(pane, 0) for pane in shared):
        for entry in [entry for entry, _ in table.scan(SUM, SUM + "\U0010ffff")]:
            del table[entry]
        before = shared = range(0)
    for pane in before:
        if pane not in shared:
            _change(job, table, pane, -1)
    for pane in panes:
        if pane not in shared:
            _change(job, table, pane, 1)
    counts = {str(pane): count for pane, count in nodes.items()}
    table["moved"] = {"window": window, "nodes": counts}
    read = job.merging.read
    return {entry[len(SUM) :]: read(kept[1]) for entry, kept in table.scan(SUM, SUM + "\U0010ffff")}


def _merged_anew(job: Job, table: Table, panes: range) -> dict[str, Any]:
    merging, found = job.merging, dict[str, Any]()
    for entry, partial in table.scan(values(panes[0]), values(panes[-1] + 1)):
        key, read = entry.split("|", 2)[2], merging.read(partial)
        found[key] = merging.merge(found[key], read) if key in found else read
    return found


def _change(job: Job, table: Table, pane: int, sign: int) -> None:
    """Put a pane's values into the sums, or take them out."""
    merging = job.merging
    assert merging.unmerge is not None
    prefix = values(pane)
    for entry, partial in list(table.scan(prefix, values(pane + 1))):
        kept = SUM + entry[len(prefix) :]
        count, total = table.get(kept, [0, None])
        if count + sign == 0:
            del table[kept]
            continue
        given = merging.read(partial)
        if count == 0:
            new = given
        elif sign > 0:
            new = merging.merge(merging.read(total), given)
        else:
            new = merging.unmerge(merging.read(total), given)
        table[kept] = [count + sign, merging.write(new)]
