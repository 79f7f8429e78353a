"""Where everything goes in a drawing of a workflow: a small layered layout.

Columns from left to right: the sources, the functions by the longest path that leads to them, the
outputs. An edge that passes over columns takes a slot in each of them, so that no line crosses a
box; a column is ordered, and its boxes are placed, by where their neighbours are. The gap after a
column has room for the longest name of a stream that leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from millstream.graph.words import describe
from millstream.model.function import Map
from millstream.model.place import location
from millstream.model.workflow import Edge, Workflow

CHARACTER, LINE, PAD = 7.3, 16, 12
"""Room for a character of 12 px monospace, for a line of text, and around a box's text."""
GAP, ROW, MARGIN, PORT = 72, 26, 20, 24


@dataclass
class Box:
    """A box in a column; one without lines of text is the slot of a passing edge."""

    id: str
    column: int
    kind: str = "slot"
    lines: tuple[str, ...] = ()
    title: str = ""
    ports: tuple[str, ...] = ()
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = ROW
    before: list[str] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    def port(self, stream: str) -> float:
        """Where the stream leaves: ports are spread over the right side."""
        if stream not in self.ports:
            return self.middle
        room = self.height / len(self.ports)
        return self.y + room * (self.ports.index(stream) + 0.5)


@dataclass(frozen=True)
class Route:
    """An edge from a box, over slots, to a box."""

    stream: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """Every box by its id, the routes that go forward, and the feedback edges."""

    boxes: dict[str, Box]
    routes: list[Route]
    feedback: list[Edge]


def lay_out(workflow: Workflow) -> Layout:
    boxes = _boxes(workflow)
    routes = _routes(workflow, boxes)
    _place(_arranged(boxes), boxes)
    feedback = sorted(workflow.feedback, key=lambda edge: (-boxes[f"f:{edge[0]}"].x, edge))
    return Layout(boxes, routes, feedback)


def _boxes(workflow: Workflow) -> dict[str, Box]:
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
        box.ports = function.emits
        boxes[box.id] = box
    last = 1 + max(depth.values(), default=0)
    for output in workflow.outputs:
        boxes[f"o:{output}"] = Box(f"o:{output}", last, "end", (output, "output"), "output")
    for box in boxes.values():
        box.width = max(len(line) for line in box.lines) * CHARACTER + 2 * PAD
        box.height = max(len(box.lines) * LINE, len(box.ports) * PORT) + PAD
    return boxes


def _routes(workflow: Workflow, boxes: dict[str, Box]) -> list[Route]:
    """The edges that go forward, with a slot in each column they pass."""
    pairs = []
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
        routes.append(Route(stream, tuple(path)))
    return routes


def _arranged(boxes: dict[str, Box]) -> list[list[Box]]:
    """The columns, each in an order that keeps edges short: by the mean place of its neighbours."""
    count = 1 + max(box.column for box in boxes.values())
    columns: list[list[Box]] = [[] for _ in range(count)]
    for box in boxes.values():
        columns[box.column].append(box)
    after: dict[str, list[str]] = {}
    for box in boxes.values():
        for name in box.before:
            after.setdefault(name, []).append(box.id)

    def sort(column: list[Box], neighbours: dict[str, list[str]]) -> None:
        place = {box.id: number / len(one) for one in columns for number, box in enumerate(one)}

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
    """Give every box its place: as near to the middle of what leads to it as its column allows."""
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
