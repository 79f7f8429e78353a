"""Draws parts of an application, jobs and feeds, as one box each.

The functions and sources of a part are those whose names begin with the part's name and a dot. So
are its outputs, except those with their own sink. Edges between them are not drawn. If folding a
part makes the boxes form a cycle, the edge that closes it becomes a feedback edge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from millstream.counted_nouns import counted
from millstream.graph.boxes import Box, Pair

KINDS = ("job", "feeds")


def foldable(parts: Mapping[str, Any]) -> list[str]:
    """Returns the parts that can be drawn as one box."""
    return [name for name, part in parts.items() if part.get("kind") in KINDS]


def part_of(box: str, parts: Collection[str]) -> str | None:
    """Returns the part that a box belongs to; None if it belongs to none.

    >>> part_of("f:errors.root", ["errors"]), part_of("o:errors", ["errors"])
    ('errors', 'errors')
    >>> part_of("f:errorsome", ["errors"])
    """
    name = box.partition(":")[2]
    return next((part for part in parts if f"{name}.".startswith(f"{part}.")), None)


def fold(
    boxes: dict[str, Box],
    pairs: list[Pair],
    feedback: list[Pair],
    parts: Mapping[str, Any],
    folded: Collection[str],
    sinks: Collection[str],
) -> tuple[dict[str, Box], list[Pair], list[Pair]]:
    """Returns the boxes, the forward edges and the feedback edges after folding these parts.
    `sinks` are the outputs that go to a sink."""
    kept = {f"o:{name}" for name in sinks}
    owners = {box: part_of(box, folded) for box in boxes if box not in kept}
    inside = {box: part for box, part in owners.items() if part is not None}
    drawn: dict[str, Box] = {}
    for box in boxes.values():
        part = inside.get(box.id)
        if part is None:
            drawn[box.id] = box
        elif f"p:{part}" not in drawn:
            count = sum(owner == part and name[0] == "f" for name, owner in inside.items())
            drawn[f"p:{part}"] = _part_box(part, parts[part], count)

    def outside(pair: Pair) -> Pair:
        emitter, stream, reader = pair
        ends = [f"p:{inside[end]}" if end in inside else end for end in (emitter, reader)]
        return ends[0], stream, ends[1]

    forward = list(dict.fromkeys(map(outside, pairs)))
    back = list(dict.fromkeys(map(outside, feedback)))
    forward = [pair for pair in forward if pair[0] != pair[2]]
    back = [pair for pair in back if pair[0] != pair[2]]
    closing = _closing(forward)
    forward = [pair for pair in forward if pair not in closing]
    back += [pair for pair in closing if pair not in back]
    for box in drawn.values():
        if box.kind == "part":
            leaving = [stream for emitter, stream, _ in (*forward, *back) if emitter == box.id]
            box.ports = tuple(dict.fromkeys(leaving))
    _number_columns(drawn, forward)
    return drawn, forward, back


def _part_box(name: str, part: Mapping[str, Any], functions: int) -> Box:
    kind = part["kind"]
    nodes = len(part["nodes"]) if kind == "job" else 0
    label = f"job, {counted(nodes, 'node')}" if kind == "job" else "feeds"
    inside = counted(functions, "function")
    return Box(f"p:{name}", 0, "part", (name, label, inside), f"{label}, {inside}: click to open")


def _closing(pairs: list[Pair]) -> list[Pair]:
    """Returns the edges that close a cycle, found by depth-first search."""
    leaving: dict[str, list[Pair]] = {}
    for pair in pairs:
        leaving.setdefault(pair[0], []).append(pair)
    closing: list[Pair] = []
    done: set[str] = set()
    path: list[str] = []

    def visit(box: str) -> None:
        path.append(box)
        for pair in leaving.get(box, ()):
            if pair[2] in path:
                closing.append(pair)
            elif pair[2] not in done:
                visit(pair[2])
        path.pop()
        done.add(box)

    for pair in pairs:
        if pair[0] not in done:
            visit(pair[0])
    return closing


def _number_columns(boxes: dict[str, Box], pairs: list[Pair]) -> None:
    """Puts each box one column after the last one that leads to it. Outputs come last."""
    columns: dict[str, int] = {}

    def column(box: str) -> int:
        if box not in columns:
            before = [column(emitter) for emitter, _, reader in pairs if reader == box]
            columns[box] = 1 + max(before, default=-1 if box[0] in "sp" else 0)
        return columns[box]

    for box in boxes.values():
        box.column = column(box.id)
    last = 1 + max((box.column for box in boxes.values() if box.id[0] != "o"), default=0)
    for box in boxes.values():
        if box.id[0] == "o":
            box.column = last
