"""Formats rows as a table of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.figures import Row, shown


def table(rows: Sequence[Row]) -> str:
    """Formats rows: text to the left, numbers to the right, `-` for a missing value.

    >>> print(table([{"what": "a", "events_per_s": 1200.4}, {"what": "bb"}]))
    what  events_per_s
    a             1200
    bb               -
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    left = [any(isinstance(row.get(name), str) for row in rows) for name in names]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if is_text else cell.rjust(width)
            for cell, width, is_text in zip(line, widths, left, strict=True)
        ).rstrip()
        for line in cells
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return shown(value) if isinstance(value, int | float) else str(value)
