"""A workflow as one SVG image: writes out what `geometry` computes.

Feedback edges are dashed. Colours follow the reader's light or dark mode. The image has its own
background, so that it stays readable where the mode is not known.
"""

from __future__ import annotations

from html import escape
from typing import Any

from millstream.graph.geometry import geometry
from millstream.graph.layout import LINE
from millstream.model.workflow import Workflow

FONT = "ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace"
STYLE = """
  text { font: 12px FONT; fill: #1f2328; }
  .name { font-weight: 600; } .note, .stream { fill: #57606a; font-size: 11px; }
  .paper { fill: #ffffff; } .edge { fill: none; stroke: #6e7781; stroke-width: 1.4; }
  .back { stroke: #bc4c00; stroke-dasharray: 5 4; }
  .tip { fill: #6e7781; } .backtip { fill: #bc4c00; }
  .end, .action { fill: #f6f8fa; stroke: #8c959f; } .map { fill: #ddf4ff; stroke: #218bff; }
  .update { fill: #fff8c5; stroke: #bf8700; }
  .stream { stroke: #ffffff; stroke-width: 3px; paint-order: stroke; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .note, .stream { fill: #9ea7b3; }
    .paper { fill: #0d1117; } .stream { stroke: #0d1117; }
    .edge { stroke: #8b949e; } .tip { fill: #8b949e; }
    .back { stroke: #f0883e; } .backtip { fill: #f0883e; }
    .end, .action { fill: #161b22; stroke: #6e7681; } .map { fill: #0c2d4d; stroke: #388bfd; }
    .update { fill: #3b2e00; stroke: #d29922; }
  }
""".replace("FONT", FONT)


def svg(workflow: Workflow) -> str:
    """Returns the workflow as one SVG image."""
    drawing = geometry(workflow)
    width, height = drawing["width"], drawing["height"]
    size = f'width="{width:.0f}" height="{height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size} '
        f'role="img" aria-label="Workflow {escape(workflow.name)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" {size}/>',
        *map(_edge, drawing["edges"]),
    ]
    for node in drawing["nodes"]:
        labels = [label for label in drawing["labels"] if label["from"] == node["id"]]
        parts += [_node(node), *map(_label, labels)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _edge(edge: dict[str, Any]) -> str:
    line, tip = ("edge back", "backtip") if edge["feedback"] else ("edge", "tip")
    return f'<path class="{line}" d="{edge["path"]}"/><path class="{tip}" d="{edge["tip"]}"/>'


def _node(node: dict[str, Any]) -> str:
    x, y, width, height, kind = (node[name] for name in ("x", "y", "width", "height", "kind"))
    radius = {"end": height / 2, "action": height / 2, "map": 8, "update": 2}[kind]
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    top = y + height / 2 - LINE * len(node["lines"]) / 2 + 12
    texts = "".join(
        f'<text class="{"note" if number else "name"}" text-anchor="middle" '
        f'x="{x + width / 2:.1f}" y="{top + LINE * number:.1f}">{escape(line)}</text>'
        for number, line in enumerate(node["lines"])
    )
    title = f"<title>{escape(node['title'])}</title>"
    return f'<g>{title}<rect class="{kind}" rx="{radius:.0f}" {size}/>{texts}</g>'


def _label(label: dict[str, Any]) -> str:
    place = f'x="{label["x"]:.1f}" y="{label["y"]:.1f}"'
    return f'<text class="stream" {place}>{escape(label["stream"])}</text>'
