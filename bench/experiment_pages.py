"""Common parts of the pages of evaluations: rows by experiment, the machine, and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench.experiments import Row
from bench.markdown import text

Record = dict[str, Any]
"""The content of a file of results."""
Pictures = Mapping[str, tuple[str, Callable[[list[Row]], str]]]
"""By name: the experiment, and the function that draws its rows."""


def of(found: Record, experiment: str) -> list[Row]:
    """The rows of an experiment."""
    return [row for row in found["rows"] if row["experiment"] == experiment]


def shared(found: Record, experiment: str, name: str) -> dict[str, float]:
    """A measurement that several experiments share, as this one used it; empty if it used none."""
    measured: Record = found["settings"]["measured"].get(experiment, {})
    known: dict[str, float] = measured.get(name, {})
    return known


def drawn(case: str, found: Record, pictures: Pictures) -> dict[str, str]:
    """Each picture by its file's name, as SVG, for the experiments that have rows."""
    return {
        f"{case}-{name}.svg": draw(of(found, experiment))
        for name, (experiment, draw) in pictures.items()
        if of(found, experiment)
    }


def where(found: Record) -> str:
    """The bars, and the machine on which everything was measured."""
    machine = found["machine"]
    bars = "; ".join(
        f"{bar['figure']} {_figure(bar['value'])} (bar {_figure(bar['limit'])}, "
        f"{'held' if bar['held'] else 'missed'})"
        for bar in found["bars"]
    )
    measured = found["settings"]["measured"]
    commits = sorted({one["commit"][:10] for one in measured.values()})
    noise = max((row.get("cpu_others", 0.0) for row in found["rows"]), default=0.0)
    return text(
        [
            f"{bars}. Other processes took at most {noise:.0%} of the machine. "
            f"{'Commit' if len(commits) == 1 else 'Commits'} {', '.join(commits)}, "
            f"{machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, "
            f"Java {machine['java']}, Spark {machine['spark']}."
        ]
    )


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 or value == int(value) else f"{value:.3g}"
