"""What nodes tell is taken in once, and goes to the reducers (iMR, sections 2.3.1 and 4.4).

The update `NAME.taking` takes the messages of a tree one after the other. A message is taken only
if none of its panes was taken before: a pane may come in a parent's message and, when the parent
was too slow, once more from its own node. What was taken is split by reducer, each part with the
manifests of all nodes, and the nodes are told.

It also keeps the nodes' books. A node says how many records its reader has read at the end of each
pane; where two panes meet, the count at the end of one must be that at the beginning of the other.
What is amiss goes with the message as records that were read and are nowhere (see `accounts`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypedDict

from millstream.codec import shard_of
from millstream.model.event import Emit, Event, emit
from millstream.model.function import takes
from millstream.windows.accounts import mark_of
from millstream.windows.job import Job
from millstream.windows.message import Manifest, Message
from millstream.windows.reducers import BEGINNING, Schedule, in_force, schemes

LONGEST = 100_000
"""Panes of the longest run that windows are made of. A node that jumps farther, by a line with the
time of another century, is absent in between: else all others would have to wait for the root."""
Run = list[int]
"""[first pane, pane after the last, records read before, records read after, life]"""


class Part(TypedDict):
    """What a reducer is told of a message."""

    pane: int
    until: int
    marks: dict[str, list[Any]]
    """By node, its mark of each of the panes (see `accounts`)."""
    begin: list[str]
    """Nodes that begin there: they are absent before."""
    late: dict[str, dict[str, int]]
    """By node, the late records that it has found, by pane."""
    partials: dict[str, Any]
    """Of this reducer's keys."""
    accounted: bool
    """Whether the nodes' accounts are kept here."""
    schedule: Schedule


@dataclass
class Taken:
    """What was taken in of a tree."""

    schedule: Schedule = field(default_factory=list)
    runs: dict[str, list[Run]] = field(default_factory=dict)
    """By node, in order: panes without a gap between them."""
    lives: dict[str, int] = field(default_factory=dict)
    """How often a node has begun to count anew, having lost what it knew."""
    repeated: int = 0
    """Messages that had a pane that was taken before."""


def counted(manifest: Manifest) -> int:
    """The records that a manifest accounts for."""
    late = sum(manifest["late"].values())
    return manifest["records"] + manifest["shed"] + manifest["dead"] + late


def has_any(runs: list[Run], pane: int, until: int) -> bool:
    """Whether any of the panes was taken."""
    return any(run[0] < until and pane < run[1] for run in runs)


def has_all(runs: list[Run], pane: int, until: int) -> bool:
    """Whether all of the panes were taken."""
    have = sum(max(0, min(run[1], until) - max(run[0], pane)) for run in runs)
    return have == until - pane


def put(runs: list[Run], pane: int, until: int, manifest: Manifest, life: int) -> int:
    """Take panes in; how many more records are now known to have been read.

    That is what the manifest accounts for and, where the panes meet others of the same life, what
    lies between the counts on both sides: nothing, if the node's books are right.
    """
    read = counted(manifest)
    new = [pane, until, manifest["total"] - read, manifest["total"], life]
    index = bisect_left(runs, [pane])
    if index < len(runs) and runs[index][0] == until and runs[index][4] == life:
        after = runs.pop(index)
        read += after[2] - new[3]
        new = [pane, after[1], new[2], after[3], life]
    if index > 0 and runs[index - 1][1] == pane and runs[index - 1][4] == life:
        index -= 1
        before = runs.pop(index)
        read += new[2] - before[3]
        new = [before[0], new[1], before[2], new[3], life]
    runs.insert(index, new)
    return read


@dataclass(frozen=True)
class Taking:
    """The update `NAME.taking`."""

    job: Job
    name: str
    tells: bool
    """Whether there are agents to be told."""
    __signature__ = takes("event", "slate")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    def __call__(self, event: Event, taken: Taken) -> Iterator[Emit]:
        if event.stream == f"{self.name}.schedule":
            taken.schedule = event.value["schedule"]
            return
        message: Message = event.value
        pane, until, nodes = message["pane"], message["until"], message["nodes"]
        runs = {node: taken.runs.setdefault(node, []) for node in nodes}
        if pane == until:
            begin = [
                node for node, one in nodes.items() if _begins(taken, node, pane, one["total"])
            ]
            yield from self._parts(message, dict.fromkeys(nodes, 0), taken.schedule, begin)
        elif any(has_any(runs[node], pane, until) for node in nodes):
            taken.repeated += 1
            nodes = {node: one for node, one in nodes.items() if has_all(runs[node], pane, until)}
        else:
            read = {
                node: put(runs[node], pane, until, one, taken.lives.get(node, 0))
                for node, one in nodes.items()
            }
            far = until - pane > LONGEST
            message = {**message, "pane": until} if far else message
            yield from self._parts(message, read, taken.schedule, [*nodes] if far else [])
        if self.tells and nodes:
            told = {"pane": pane, "until": until, "nodes": sorted(nodes)}
            yield emit(f"{self.name}.told", value={"accepted": told})

    def _parts(
        self, message: Message, read: dict[str, int], schedule: Schedule, begin: list[str]
    ) -> Iterator[Emit]:
        """A part for each reducer, of every number of reducers that windows of the panes have."""
        span = self.job.span
        others = (int(pane) for one in message["nodes"].values() for pane in one["late"])
        earliest = min(message["pane"], *others, message["pane"])
        first = span.panes_of(span.windows_of(earliest)[0])[0]
        if begin:  # they are absent in all windows before, whose number of reducers may be another
            first = BEGINNING
        newest = span.panes_of(span.windows_of(message["pane"])[-1])[0]
        accounted = in_force(schedule, newest)
        marks = {node: mark_of(one, read[node]) for node, one in message["nodes"].items()}
        late = {node: one["late"] for node, one in message["nodes"].items() if one["late"]}
        for number in schemes(schedule, first, message["until"]):
            partials: list[dict[str, Any]] = [{} for _ in range(number)]
            for key, partial in message["partials"].items():
                partials[shard_of(self.name, key, number)][key] = partial
            for reducer, part in enumerate(partials):
                value = Part(
                    pane=message["pane"],
                    until=message["until"],
                    marks=marks,
                    begin=begin,
                    late=late,
                    partials=part,
                    accounted=number == accounted,
                    schedule=schedule,
                )
                yield emit(f"{self.name}.parts", key=f"{number}/{reducer}", value=value)


def _begins(taken: Taken, node: str, pane: int, total: int) -> bool:
    """Whether a node that says where it is begins there, and has no panes before but those that it
    has sent. One that goes on after a stop does not: it is at a pane that it has not sent, and has
    counted as far as its panes before it. If that is not so, it has lost what it knew."""
    runs, life = taken.runs[node], taken.lives.get(node, 0)
    for first, end, before, after, of in runs:
        sent = first <= pane < end
        amiss = after > total if end <= pane else before < total
        if of == life and (sent or amiss):
            taken.lives[node] = life + 1
            return True
    return not runs
