"""The peers' benchmark as Markdown, for docs/peers.md. Pure.

`docs/figures.py` asks for a part by its name where the page has `<!-- figures:peers.NAME -->`: a
load, or `bars`.
"""

from __future__ import annotations

from typing import Any

from bench.markdown import head, text
from bench.markdown import row as a_row

Record = dict[str, Any]
COLUMNS = {
    "whole_s": "whole, s",
    "events_per_s": "warm, events/s",
    "cpu_us": "processor time of an event, µs",
    "own_mib": "memory of their own, MiB",
    "batches": "batches or snapshots",
    "p50_s": "p50, s",
    "p99_s": "p99, s",
}


def part(found: Record, name: str) -> str:
    """A part of the page, from a record of the case."""
    return bars(found) if name == "bars" else load(found, name)


def load(found: Record, name: str) -> str:
    """The table of a load: its contestants, the one with the shortest run first."""
    if name not in found["settings"]["measured"]:
        return f"Not measured yet: `make bench-peers ONLY={name}`.\n"
    rows = [row for row in found["rows"] if row["experiment"] == name]
    rows.sort(key=lambda row: ("failed" in row, row.get("whole_s", row.get("p50_s", 0.0))))
    columns = [column for column in COLUMNS if any(row.get(column) for row in rows)]
    lines = head("", [COLUMNS[column] for column in columns])
    for row in rows:
        cells = [_number(row.get(column)) for column in columns]
        if "failed" in row:
            cells[0] = f"failed: {row['failed'].partition(':')[0].lower()}"
        lines.append(a_row([row["what"], *cells]))
    about = found["settings"]["measured"][name]
    machine = found["machine"]
    plan = about["plan"]
    lines += [
        "",
        f"{plan['events']:,} events, rounds in turn: {plan['rounds']}{_taken(about)}. Commit "
        f"{about['commit'][:10]}, {machine['cores']} cores ({machine['cpu']}).",
    ]
    return text(lines)


def bars(found: Record) -> str:
    """The ratios that have a bar."""
    lines = head("Millstream beside", ["times its rate", "bar"])
    for bar in found["bars"]:
        held = "held" if bar["held"] else "missed"
        lines.append(a_row([bar["figure"], _number(bar["value"]), f"{bar['limit']:g}, {held}"]))
    return text(lines)


def _taken(about: Record) -> str:
    seconds = about.get("seconds")
    return "" if seconds is None else f"; the load took {seconds / 60:.0f} minutes"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
