"""Lines of Markdown for the tables and pictures of result pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def head(first: str, names: Sequence[str]) -> list[str]:
    """The head of a table: a column of names, the others numbers."""
    return [f"| {first} | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]


def row(cells: Iterable[Any]) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def picture(name: str, what: str) -> list[str]:
    """A picture, and what it shows."""
    return [f"![{what}](../pictures/{name}.svg)"]


def text(lines: Iterable[str]) -> str:
    """Lines as one text."""
    return "\n".join([*lines, ""])


def count(number: int, what: str) -> str:
    """So many of something.

    >>> count(1, "agent"), count(2, "agent")
    ('1 agent', '2 agents')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"
