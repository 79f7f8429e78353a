"""The answers of windows that received only some of their panes (iMR, sections 3.2 and 5.3 to 5.5).

Which panes were received decides how far off an answer is, not how they came. So the errors of a
specification can be worked out in memory, over many windows, with the job's own functions:
`panes_of` makes the panes of all nodes with the code that agents run, `answers` puts a window
together from those that were received, and `drawn`, `spatial` and `temporal` say which these are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil
from random import Random
from typing import Any

from millstream.codec import encode_value
from millstream.windows.job import Job
from millstream.windows.panes.message import Message
from millstream.windows.panes.pane_maker import Maker, Making
from millstream.windows.panes.pane_rank import rank

Cell = tuple[str, int]
"""A node and a pane."""
Panes = dict[Cell, dict[str, Any]]
"""The combined values of each pane that has any, by key, as they are sent."""
Log = Iterable[tuple[Any, int]]
"""The records of a node in the order of its log, with their times in microseconds."""


def messages_of(job: Job, node: str, log: Log) -> Iterator[Message]:
    """Yields the messages of an agent that reads the log to its end."""
    maker, making = Maker(job, node, live=True), Making()
    for record, ts in log:
        yield from maker.take(making, record, ts, len(encode_value(record)))
    if making.pane is not None:
        yield from maker.end(making, making.pane + 1)


def panes_of(job: Job, logs: Mapping[str, Log]) -> Panes:
    """The panes of all nodes, the last one of each included."""
    return {
        (node, message.pane): message.partials
        for node, log in logs.items()
        for message in messages_of(job, node, log)
        if message.partials
    }


def answers(job: Job, panes: Panes, received: Collection[Cell]) -> dict[str, Any]:
    """Returns the answer of a window over these panes for each key, as the job's `reduce` gives
    it."""
    merging, partials = job.merging, dict[str, Any]()
    for cell in sorted(received):
        for key, partial in panes.get(cell, {}).items():
            value = merging.read(partial)
            partials[key] = merging.merge(partials[key], value) if key in partials else value
    return {key: job.answer(key, partials[key]) for key in sorted(partials)}


def whole(nodes: Sequence[str], panes: range) -> frozenset[Cell]:
    """All panes of all nodes."""
    return frozenset((node, pane) for node in nodes for pane in panes)


def drawn(nodes: Sequence[str], panes: range, part: float, seed: int) -> frozenset[Cell]:
    """An area of panes that each node draws by itself: those that agents make, by the same seed."""
    most = _count(part, panes)
    return frozenset(
        (node, pane)
        for node, pane in whole(nodes, panes)
        if rank(seed, node, pane, len(panes)) < most
    )


def spatial(nodes: Sequence[str], panes: range, part: float) -> frozenset[Cell]:
    """(X, 100%): the first panes, from all nodes. They are the first that are complete."""
    return whole(nodes, panes[: _count(part, panes)])


def temporal(nodes: Sequence[str], panes: range, part: float, seed: int) -> frozenset[Cell]:
    """(100%, Y): all panes of some nodes; the others, picked at random, say nothing."""
    return whole(Random(seed).sample(list(nodes), _count(part, nodes)), panes)


def _count(part: float, population: Sequence[object]) -> int:
    """So much of them, rounded up; but 0.7 of ten is seven, whatever 0.7 is to a computer."""
    return ceil(round(part * len(population), 9))
