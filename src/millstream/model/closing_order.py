"""The order in which the functions of a workflow are closed when event time ends (`--final`).

A function can be closed once nothing more comes to it: after those that it reads from. Functions of
a cycle wait for each other, so they are one group and are closed together. Each group is closed
after every group that leads to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.model.workflow import Workflow


@dataclass(frozen=True, slots=True)
class ClosingGroup:
    """The names of placed functions that are closed at the same time."""

    names: frozenset[str]
    cyclic: bool
    """True if some of them are in a cycle: what they emit may come back to them."""


def closing_order(workflow: Workflow) -> tuple[ClosingGroup, ...]:
    """Returns the groups of placed functions, each after the groups that it reads from."""
    readers = {
        function.name: {
            reader.name for stream in function.emits for reader in workflow.subscribers(stream)
        }
        for function in workflow.functions
    }
    reached = {name: _reached(name, readers) for name in readers}
    depths: dict[str, int] = {}

    def depth_of(name: str) -> int:
        if name not in depths:
            before = [
                other for other in readers if name in reached[other] and other not in reached[name]
            ]
            depths[name] = 1 + max(map(depth_of, before), default=0)
        return depths[name]

    groups: dict[int, set[str]] = {}
    for function in (function for layer in workflow.layers for function in layer):
        groups.setdefault(depth_of(function.name), set()).add(function.name)
    return tuple(
        ClosingGroup(frozenset(names), any(name in reached[name] for name in names))
        for _, names in sorted(groups.items())
    )


def _reached(start: str, readers: dict[str, set[str]]) -> set[str]:
    """Returns every function downstream of `start`, and `start` itself if it is in a cycle."""
    reached: set[str] = set()
    left = {*readers[start]}
    while left:
        name = left.pop()
        reached.add(name)
        left |= readers[name] - reached
    return reached
