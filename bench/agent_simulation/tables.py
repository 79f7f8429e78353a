"""The simulated agents' results as Markdown, for docs/performance.md. Pure."""

from __future__ import annotations

from typing import Any

from bench.figures import shown
from bench.markdown import head, row, text

COLUMNS = {
    "windows": "windows",
    "records": "records",
    "problems": "wrong",
    "parents_dead": "parents killed",
    "children": "children they had",
    "missed_max": "windows one of them lacked in, at most",
    "below_missed_max": "one further below",
    "depth": "depth of the tree",
    "cpu_s": "CPU, s",
}


def part(found: dict[str, Any], name: str) -> str:
    """A part of the page: `runs`, what each run came to."""
    assert name == "runs", f"there is no part {name!r} of the simulated agents"
    lines = head("run", [*COLUMNS.values(), "commit"])
    for what, of in found["settings"]["runs"].items():
        weather, _, nodes = what.partition(" ")
        cells = [f"{of[one]:,}" if type(of[one]) is int else shown(of[one]) for one in COLUMNS]
        lines.append(row([f"{int(nodes):,} nodes, {weather}", *cells, of["commit"][:7]]))
    return text(lines)
