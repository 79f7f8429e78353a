"""A workflow as one SVG image, laid out by `layout`.

Each published stream leaves its function at a port of its own, with its name over the line.
Feedback edges are dashed and run back in lanes below everything. Colours follow the reader's light
or dark mode; a background of our own keeps the image readable where the mode is not known.
"""

from __future__ import annotations

from html import escape

from millstream.graph.layout import CHARACTER, LINE, MARGIN, Box, Route, lay_out
from millstream.model.workflow import Workflow

LANE, TURN, TIP = 18, 12, 8
"""Height of a feedback lane, radius of its corners, length of an arrow's tip."""
FONT = "ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace"
STYLE = """
  text { font: 12px FONT; fill: #1f2328; }
  .name { font-weight: 600; } .note, .stream { fill: #57606a; font-size: 11px; }
  .paper { fill: #ffffff; } .edge { fill: none; stroke: #6e7781; stroke-width: 1.4; }
  .back { stroke: #bc4c00; stroke-dasharray: 5 4; }
  .tip { fill: #6e7781; } .backtip { fill: #bc4c00; }
  .end { fill: #f6f8fa; stroke: #8c959f; } .map { fill: #ddf4ff; stroke: #218bff; }
  .update { fill: #fff8c5; stroke: #bf8700; }
  .stream { stroke: #ffffff; stroke-width: 3px; paint-order: stroke; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .note, .stream { fill: #9ea7b3; }
    .paper { fill: #0d1117; } .stream { stroke: #0d1117; }
    .edge { stroke: #8b949e; } .tip { fill: #8b949e; }
    .back { stroke: #f0883e; } .backtip { fill: #f0883e; }
    .end { fill: #161b22; stroke: #6e7681; } .map { fill: #0c2d4d; stroke: #388bfd; }
    .update { fill: #3b2e00; stroke: #d29922; }
  }
""".replace("FONT", FONT)


def svg(workflow: Workflow) -> str:
    """The workflow as one SVG image."""
    layout = lay_out(workflow)
    boxes, feedback = layout.boxes, layout.feedback
    bottom = max(box.y + box.height for box in boxes.values())
    width = max(box.x + box.width + _reach(box) for box in boxes.values()) + MARGIN
    height = bottom + MARGIN + LANE * len(feedback)
    size = f'width="{width:.0f}" height="{height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size} '
        f'role="img" aria-label="Workflow {escape(workflow.name)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" {size}/>',
    ]
    parts += [_forward(route, boxes) for route in layout.routes]
    for number, (emitter, stream, reader) in enumerate(feedback):
        parts.append(_back(boxes[f"f:{emitter}"], stream, boxes[f"f:{reader}"], number, bottom))
    for box in boxes.values():
        if box.lines:
            parts += [_box(box), *(_label(box, stream) for stream in box.ports)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _reach(box: Box) -> float:
    """How far the names of its streams reach out of a box."""
    return 10 + max(len(stream) for stream in box.ports) * CHARACTER if box.ports else 0


def _forward(route: Route, boxes: dict[str, Box]) -> str:
    """A line from the port, past the stream's name, through its slots, to the reader."""
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
    return f'<path class="edge" d="{" ".join(path)}"/>{_tip(last.x, last.middle, "tip")}'


def _back(emitter: Box, stream: str, reader: Box, number: int, bottom: float) -> str:
    """A dashed line out of the port, down into a lane of its own, back and up to the reader."""
    lane, aside = bottom + LANE * (number + 0.8), 7 * (number % 4)
    y, to = emitter.port(stream), reader.y + reader.height * 0.8
    out = emitter.x + emitter.width + _reach(emitter) + TURN + aside
    back = reader.x - TIP - 2 * TURN - aside
    path = (
        f"M{emitter.x + emitter.width:.1f} {y:.1f} H{out - TURN:.1f} "
        f"q{TURN} 0 {TURN} {TURN} V{lane - TURN:.1f} q0 {TURN} -{TURN} {TURN} "
        f"H{back + TURN:.1f} q-{TURN} 0 -{TURN} -{TURN} V{to + TURN:.1f} "
        f"q0 -{TURN} {TURN} -{TURN} H{reader.x - TIP:.1f}"
    )
    return f'<path class="edge back" d="{path}"/>{_tip(reader.x, to, "backtip")}'


def _tip(x: float, y: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{x:.1f} {y:.1f} l-{TIP + 1} -4 v8 z"/>'


def _box(box: Box) -> str:
    round_ = {"end": box.height / 2, "map": 8, "update": 2}[box.kind]
    size = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    top = box.middle - LINE * len(box.lines) / 2 + 12
    texts = "".join(
        f'<text class="{"note" if number else "name"}" text-anchor="middle" '
        f'x="{box.x + box.width / 2:.1f}" y="{top + LINE * number:.1f}">{escape(line)}</text>'
        for number, line in enumerate(box.lines)
    )
    title = f"<title>{escape(box.title)}</title>"
    return f'<g>{title}<rect class="{box.kind}" rx="{round_:.0f}" {size}/>{texts}</g>'


def _label(box: Box, stream: str) -> str:
    x, y = box.x + box.width + 6, box.port(stream) - 4
    return f'<text class="stream" x="{x:.1f}" y="{y:.1f}">{escape(stream)}</text>'
