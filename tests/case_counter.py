"""Counts the generated cases that were compared, for the summary at the end of the run."""

from __future__ import annotations

from collections import Counter

_cases: Counter[str] = Counter()


def count_case(suite: str) -> None:
    """Counts a generated case of `suite`."""
    _cases[suite] += 1


def counted() -> dict[str, int]:
    """The cases of this process, by suite."""
    return dict(_cases)


def add_counted(cases: dict[str, int]) -> None:
    """Add the cases of another process."""
    _cases.update(cases)


def summary() -> list[str]:
    """A line for each suite that ran, such as `engine against reference: 1234 generated cases`."""
    return [f"{suite}: {count} generated cases" for suite, count in sorted(_cases.items())]
