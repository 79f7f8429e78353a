"""Panes at a node: records are mapped, grouped and combined once for each pane (iMR, 2.3 and 4.2).

Pure: the agent on a log server and the update on Spark call the same functions. A node reads its
log in order. A pane is ended by the first record of a later one, or by time; panes that it had no
records for are told too, since a node that is silent might have failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.codec import shard_of
from millstream.errors import FunctionError
from millstream.model.path import picker
from millstream.windows.job import Job


@dataclass
class Making:
    """The pane that a node is making, and what it has read."""

    pane: int | None = None
    """None: nothing was read yet."""
    records: int = 0
    bytes: int = 0
    first: int | None = None
    """The times of the first and the last record in the pane."""
    last: int | None = None
    partials: dict[str, Any] = field(default_factory=dict)
    """What `combine` has made of the values, by key, as JSON."""
    late: int = 0
    """Records of panes that had been sent."""
    outside: int = 0
    """Records before the job's beginning, or after its extent."""
    read: int = 0
    read_bytes: int = 0


Message = dict[str, Any]
"""A pane as it is sent: `node`, `pane` and `until` (of a run of panes, not included), `mark`, the
manifest, and the partials of one reducer."""


def position_of(job: Job, making: Making, record: Any, ts: int) -> int:
    """Where a record is on the job's axis; those of counts are where the node's log is."""
    if job.span.axis == "time":
        return ts
    if job.span.axis == "records":
        return making.read
    if job.span.axis == "bytes":
        return making.read_bytes
    assert job.sequence is not None
    number = picker(job.sequence, "job: sequence", "record")(record)
    if type(number) is not int:
        raise FunctionError(
            f"job: the field {job.sequence!r} must be a whole number; "
            f"got {type(number).__name__} {number!r}"
        )
    return number


def step(
    job: Job, making: Making, record: Any, ts: int, size: int, node: str, name: str
) -> Iterator[tuple[int, Message]]:
    """Take a record in; first the messages of the panes that it ends, by reducer."""
    position = position_of(job, making, record, ts)
    making.read += 1
    making.read_bytes += size
    if not job.span.takes(position):
        making.outside += 1
        return
    pane = job.span.pane_of(position)
    if making.pane is None:
        making.pane = pane
    elif pane > making.pane:
        yield from end(job, making, node, name, pane)
    elif pane < making.pane:
        making.late += 1
        return
    _combine(job, making, record)
    making.records += 1
    making.bytes += size
    making.first = ts if making.first is None else min(ts, making.first)
    making.last = ts if making.last is None else max(ts, making.last)


def _combine(job: Job, making: Making, record: Any) -> None:
    """Map a record and combine its pairs into the pane."""
    merging, partials = job.merging, making.partials
    for key, value in job.map(record):
        if type(key) is not str:
            raise FunctionError(
                f"job: map must yield pairs whose key is text; got {type(key).__name__} {key!r}"
            )
        lifted = merging.lift(key, value)
        if key in partials:
            lifted = merging.merge(merging.read(partials[key]), lifted)
        partials[key] = merging.write(lifted)


def end(
    job: Job, making: Making, node: str, name: str, until: int
) -> Iterator[tuple[int, Message]]:
    """End the pane that is being made, and those up to `until`; messages by reducer."""
    assert making.pane is not None
    manifest = {
        "node": node,
        "pane": making.pane,
        "until": making.pane + 1,
        "mark": "data" if making.records else "empty",
        "records": making.records,
        "bytes": making.bytes,
        "first": making.first,
        "last": making.last,
        "late": making.late,
    }
    parts: list[dict[str, Any]] = [{} for _ in range(job.reducers)]
    for key, partial in making.partials.items():
        parts[shard_of(name, key, job.reducers)][key] = partial
    for reducer, part in enumerate(parts):
        yield reducer, {**manifest, "partials": part}
    if until > making.pane + 1:
        gap = {"node": node, "pane": making.pane + 1, "until": until, "mark": "empty"}
        counts = dict.fromkeys(("records", "bytes", "late"), 0)
        for reducer in range(job.reducers):
            yield reducer, {**gap, **counts, "first": None, "last": None, "partials": {}}
    making.pane = until
    making.records = making.bytes = making.late = 0
    making.first = making.last = None
    making.partials = {}
