"""A drawing of a workflow as plain numbers and paths, for `svg` to write and the page to show.

`layout` places the boxes; this module draws the lines between them. Each published stream leaves
its function at its own port, with its name over the line. Feedback edges run back in lanes below
everything. The result can be encoded as JSON directly:

    width, height     of the whole drawing; nothing extends beyond it
    nodes             id, kind (end, action, map, update, part), role (source, function, output,
                      part), name, lines of text, title, and a box: x, y, width, height
    edges             stream, from and to (ids of nodes), feedback, and two SVG paths: the line, and
                      the arrow's tip, which begins where the edge touches its reader
    labels            stream, from (the id of its node), and where its text begins: x, y
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from millstream.graph.boxes import Box
from millstream.graph.layout import CHARACTER, MARGIN, EdgeRoute, lay_out
from millstream.model.workflow import Workflow

LANE, TURN, TIP = 18, 12, 8
"""Height of a feedback lane, radius of its corners, length of an arrow's tip."""
ROLES = {"s": "source", "f": "function", "o": "output", "p": "part"}


def geometry(
    workflow: Workflow, addresses: Mapping[str, str] | None = None, folded: Collection[str] = ()
) -> dict[str, Any]:
    """Returns the drawing of a workflow. `addresses` has the destinations of outputs. Each part in
    `folded` is one node."""
    layout = lay_out(workflow, addresses, folded)
    boxes = layout.boxes
    bottom = max(box.y + box.height for box in boxes.values())
    right = max(box.x + box.width + _reach(box) for box in boxes.values()) + MARGIN
    edges = [_forward(route, boxes) for route in layout.routes]
    for number, (emitter, stream, reader) in enumerate(layout.feedback):
        ends = boxes[emitter], boxes[reader]
        edges.append(_back(*ends, stream, number, bottom))
        right = max(right, _turning(ends[0], number) + TIP)
    drawn = [box for box in boxes.values() if box.lines]
    return {
        "width": _round(right),
        "height": _round(bottom + MARGIN + LANE * len(layout.feedback)),
        "nodes": [_node(box) for box in drawn],
        "edges": edges,
        "labels": [_label(box, stream) for box in drawn for stream in box.ports],
    }


def _node(box: Box) -> dict[str, Any]:
    return {
        "id": box.id,
        "kind": box.kind,
        "role": ROLES[box.id[0]],
        "name": box.lines[0],
        "lines": list(box.lines),
        "title": box.title,
        "x": _round(box.x),
        "y": _round(box.y),
        "width": _round(box.width),
        "height": _round(box.height),
    }


def _label(box: Box, stream: str) -> dict[str, Any]:
    x, y = box.x + box.width + 6, box.port(stream) - 4
    return {"stream": stream, "from": box.id, "x": _round(x), "y": _round(y)}


def _forward(route: EdgeRoute, boxes: dict[str, Box]) -> dict[str, Any]:
    """Draws a line from the port, past the stream's name, through its slots, to the reader."""
    first, last = boxes[route.path[0]], boxes[route.path[-1]]
    x, y = first.x + first.width, first.port(route.stream)
    path = [f"M{x:.1f} {y:.1f}"]
    x += _reach(first)
    path.append(f"H{x:.1f}")
    for name in route.path[1:]:
        box = boxes[name]
        to = box.x - (TIP if box is last else 0)
        middle = (x + to) / 2
        path.append(
            f"C{middle:.1f} {y:.1f} {middle:.1f} {box.middle:.1f} {to:.1f} {box.middle:.1f}"
        )
        x, y = box.x + box.width, box.middle
        if box is not last:
            path.append(f"H{x:.1f}")
    return _edge(route.stream, first, last, " ".join(path), last.middle, feedback=False)


def _back(emitter: Box, reader: Box, stream: str, number: int, bottom: float) -> dict[str, Any]:
    """Draws a line out of the port, down into its own lane, back and up to the reader."""
    lane, to = bottom + LANE * (number + 0.8), reader.y + reader.height * 0.8
    out, back = _turning(emitter, number), reader.x - TIP - 2 * TURN - _aside(number)
    path = (
        f"M{emitter.x + emitter.width:.1f} {emitter.port(stream):.1f} H{out - TURN:.1f} "
        f"q{TURN} 0 {TURN} {TURN} V{lane - TURN:.1f} q0 {TURN} -{TURN} {TURN} "
        f"H{back + TURN:.1f} q-{TURN} 0 -{TURN} -{TURN} V{to + TURN:.1f} "
        f"q0 -{TURN} {TURN} -{TURN} H{reader.x - TIP:.1f}"
    )
    return _edge(stream, emitter, reader, path, to, feedback=True)


def _edge(
    stream: str, first: Box, last: Box, path: str, y: float, *, feedback: bool
) -> dict[str, Any]:
    return {
        "stream": stream,
        "from": first.id,
        "to": last.id,
        "feedback": feedback,
        "path": path,
        "tip": f"M{last.x:.1f} {y:.1f} l-{TIP + 1} -4 v8 z",
    }


def _reach(box: Box) -> float:
    """The width of the stream names to the right of a box."""
    return 10 + max(len(stream) for stream in box.ports) * CHARACTER if box.ports else 0


def _turning(emitter: Box, number: int) -> float:
    """The x coordinate at which a feedback edge turns back."""
    return emitter.x + emitter.width + _reach(emitter) + TURN + _aside(number)


def _aside(number: int) -> int:
    """An offset that separates the lines of neighbouring feedback edges."""
    return 7 * (number % 4)


def _round(number: float) -> float:
    return round(number, 3)
