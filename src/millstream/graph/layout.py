"""Places the boxes of a drawing: a small layered layout.

The columns from left to right are the sources, the functions by the longest path that leads to
them, and the outputs. An edge that passes over columns takes a slot in each of them, so that no
line crosses a box. The order of a column, and the place of its boxes, follow from the places of
their neighbours. The gap after a column has room for the longest name of a stream that leaves it.

A part of the application, a job or feeds, can be drawn as one box: see `folded_parts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from millstream.graph.boxes import ROW, Box, Pair
from millstream.graph.folded_parts import fold
from millstream.graph.words import describe
from millstream.model.function import Map
from millstream.model.place import location
from millstream.model.workflow import Workflow

CHARACTER, LINE, PAD = 7.3, 16, 12
"""Pixels for a character of 12 px monospace, for a line of text, and around a box's text."""
GAP, MARGIN, PORT = 72, 20, 24
LONGEST_ADDRESS = 36


@dataclass(frozen=True)
class EdgeRoute:
    """An edge from a box, through slots, to a box."""

    stream: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """Every box by its id, the forward routes, and the feedback edges."""

    boxes: dict[str, Box]
    routes: list[EdgeRoute]
    feedback: list[Pair]


def lay_out(
    workflow: Workflow, addresses: Mapping[str, str] | None = None, folded: Collection[str] = ()
) -> Layout:
    """Lays out a workflow. `addresses` has the destinations of outputs. Each part in `folded` is
    one box."""
    boxes = _boxes(workflow, addresses or {})
    pairs = _pairs(workflow)
    feedback: list[Pair] = [(f"f:{a}", stream, f"f:{b}") for a, stream, b in workflow.feedback]
    if folded:
        boxes, pairs, feedback = fold(
            boxes, pairs, feedback, workflow.parts, folded, addresses or {}
        )
    for box in boxes.values():
        box.width = max(len(line) for line in box.lines) * CHARACTER + 2 * PAD
        box.height = max(len(box.lines) * LINE, len(box.ports) * PORT) + PAD
    routes = _routes(pairs, boxes)
    _place(_arranged(boxes), boxes)
    feedback.sort(key=lambda edge: (-boxes[edge[0]].x, edge))
    return Layout(boxes, routes, feedback)


def _boxes(workflow: Workflow, addresses: Mapping[str, str]) -> dict[str, Box]:
    depth: dict[str, int] = {}

    def depth_of(name: str) -> int:
        if name not in depth:
            reads = set(workflow.function(name).subscribes)
            before = [
                depth_of(function.name)
                for function in workflow.functions
                for stream in function.emits
                if stream in reads and (function.name, stream, name) not in workflow.feedback
            ]
            depth[name] = 1 + max(before, default=0)
        return depth[name]

    boxes = {}
    for source in workflow.sources:
        lines = (source.name, *describe(source).split(", ")[1:])
        boxes[f"s:{source.name}"] = Box(f"s:{source.name}", 0, "end", lines, describe(source))
    for function in workflow.functions:
        kind = "map" if isinstance(function, Map) else "update"
        words = describe(function).split(", ")
        notes = (words[0],) if len(words) == 1 else (", ".join(words[:2]), ", ".join(words[2:]))
        title = describe(function) + location(function.function)
        lines = (function.name, *(note for note in notes if note))
        box = Box(f"f:{function.name}", depth_of(function.name), kind, lines, title)
        changes = (change.name for change in workflow.changes if change.update == function.name)
        box.ports = (*function.emits, *changes)
        boxes[box.id] = box
    last = 1 + max(depth.values(), default=0)
    for output in workflow.outputs:
        role = "action" if output in workflow.actions else "output"
        address = addresses.get(output, "")
        lines = (output, role, *([short_address(address)] if address else []))
        title = f"{role} to {address}" if address else role
        boxes[f"o:{output}"] = Box(
            f"o:{output}", last, "action" if role == "action" else "end", lines, title
        )
    return boxes


def short_address(address: str) -> str:
    """Shortens a long address to its beginning and its end.

    >>> short_address("json:/srv/shop/data/2026/output/milestones")
    'json:/srv/s...2026/output/milestones'
    """
    if len(address) <= LONGEST_ADDRESS:
        return address
    return f"{address[:11]}...{address[14 - LONGEST_ADDRESS :]}"


def _pairs(workflow: Workflow) -> list[Pair]:
    """Returns the forward edges."""
    pairs: list[Pair] = []
    for source in workflow.sources:
        readers = [f"f:{f.name}" for f in workflow.subscribers(source.name)]
        readers += [f"o:{source.name}"] * (source.name in workflow.outputs)
        pairs += [(f"s:{source.name}", source.name, reader) for reader in readers]
    for function in workflow.functions:
        for stream in function.emits:
            readers = [
                f"f:{f.name}"
                for f in workflow.subscribers(stream)
                if (function.name, stream, f.name) not in workflow.feedback
            ]
            readers += [f"o:{stream}"] * (stream in workflow.outputs)
            pairs += [(f"f:{function.name}", stream, reader) for reader in readers]
    pairs += [
        (f"f:{change.update}", change.name, f"o:{change.name}") for change in workflow.changes
    ]
    return pairs


def _routes(pairs: list[Pair], boxes: dict[str, Box]) -> list[EdgeRoute]:
    """Returns the forward edges, with a slot in each column they pass."""
    routes = []
    for emitter, stream, reader in pairs:
        path = [emitter]
        for column in range(boxes[emitter].column + 1, boxes[reader].column):
            slot = f"{emitter}>{stream}>{column}>{reader}"
            boxes[slot] = Box(slot, column)
            path.append(slot)
        path.append(reader)
        for before, after in pairwise(path):
            boxes[after].before.append(before)
        routes.append(EdgeRoute(stream, tuple(path)))
    return routes


def _arranged(boxes: dict[str, Box]) -> list[list[Box]]:
    """Returns the columns, each ordered to keep edges short: by the mean place of its
    neighbours."""
    count = 1 + max(box.column for box in boxes.values())
    columns: list[list[Box]] = [[] for _ in range(count)]
    for box in boxes.values():
        columns[box.column].append(box)
    after: dict[str, list[str]] = {}
    for box in boxes.values():
        for name in box.before:
            after.setdefault(name, []).append(box.id)

    def sort(column: list[Box], neighbours: dict[str, list[str]]) -> None:
        place = {box.id: number / len(rows) for rows in columns for number, box in enumerate(rows)}

        def wish(box: Box) -> float:
            near = [place[name] for name in neighbours.get(box.id, ())]
            return sum(near) / len(near) if near else place[box.id]

        column.sort(key=wish)

    before = {box.id: box.before for box in boxes.values()}
    for _ in range(4):
        for column in columns[1:]:
            sort(column, before)
        for column in reversed(columns[:-1]):
            sort(column, after)
    return columns


def _place(columns: list[list[Box]], boxes: dict[str, Box]) -> None:
    """Places every box as near to the middle of its predecessors as its column allows."""
    x = float(MARGIN)
    for column in columns:
        width = max((box.width for box in column), default=0)
        y = float(MARGIN)
        moves: list[float] = []
        for box in column:
            box.x, box.width = x, width
            near = [boxes[name].middle for name in box.before]
            wish = sum(near) / len(near) - box.height / 2 if near else y
            box.y = max(y, wish) if moves else wish
            moves.append(wish - box.y)
            y = box.y + box.height + ROW
        for box in column:
            box.y += sum(moves) / len(moves)
        names = [len(stream) for box in column for stream in box.ports]
        x += width + GAP + max(names, default=0) * CHARACTER
    top = min(box.y for box in boxes.values())
    for box in boxes.values():
        box.y += MARGIN - top
