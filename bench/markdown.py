"""Lines of Markdown for the tables of result pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def head(first: str, names: Sequence[str]) -> list[str]:
    """The head of a table: the first column has names, the others numbers."""
    return [f"| {first} | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]


def row(cells: Iterable[Any]) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def text(lines: Iterable[str]) -> str:
    """Joins lines into one text."""
    return "\n".join([*lines, ""])


def count(number: int, what: str) -> str:
    """A number with its noun.

    >>> count(1, "agent"), count(2, "agent")
    ('1 agent', '2 agents')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"
