"""The page of an evaluation: parts with a table and pictures of an experiment's rows.

`docs/figures.py` asks for a part by its name where the page has `<!-- figures:CASE.NAME -->`, and
`docs/build.py` draws the pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.experiments import Row
from bench.markdown import text
from docs.charts import Chart, svg

Record = dict[str, Any]
"""The content of a file of results."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture below a table."""

    alt: str
    """The text that describes it."""
    draw: Callable[[Record], list[Chart]]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page: the table of an experiment as lines, and its pictures by name."""

    experiment: str
    table: Callable[[Record], list[str]]
    pictures: Mapping[str, Picture] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a case: its parts by name. The part `where` says where all of it was measured."""

    case: str
    parts: Mapping[str, Part]

    @property
    def names(self) -> set[str]:
        """The names of all parts."""
        return {*self.parts, "where"}

    def part(self, found: Record, name: str) -> str:
        """A part as Markdown, from a record of the case. One that was not measured says so."""
        if name == "where":
            return text(where(found))
        part = self.parts[name]
        if not of(found, part.experiment):
            command = f"make bench-{self.case} ONLY={part.experiment}"
            return text([f"Not measured yet: `{command}`."])
        lines = part.table(found)
        for picture, shown in part.pictures.items():
            lines += ["", f"![{shown.alt}](../pictures/{self.case}-{picture}.svg)"]
        return text(lines)

    def pictures(self, found: Record) -> dict[str, str]:
        """The pictures of the experiments that have rows, as SVG, by the names of their files."""
        return {
            f"{self.case}-{name}.svg": svg(picture.draw(found))
            for part in self.parts.values()
            if of(found, part.experiment)
            for name, picture in part.pictures.items()
        }


def of(found: Record, experiment: str) -> list[Row]:
    """The rows of an experiment."""
    return [row for row in found["rows"] if row["experiment"] == experiment]


def shared(found: Record, experiment: str, name: str) -> dict[str, float]:
    """A measurement that several experiments share, as this one used it; empty if it used none."""
    measured: Record = found["settings"]["measured"].get(experiment, {})
    known: dict[str, float] = measured.get(name, {})
    return known


def cell(rows: list[Row], column: str, **wanted: Any) -> float | None:
    """The column of the first row that has these values; None if there is none."""
    every = (row for row in rows if all(row[name] == value for name, value in wanted.items()))
    row = next(every, None)
    return None if row is None else row[column]


def where(found: Record) -> list[str]:
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
    return [
        f"{bars}. Other processes took at most {noise:.0%} of the machine. "
        f"{'Commit' if len(commits) == 1 else 'Commits'} {', '.join(commits)}, "
        f"{machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, "
        f"Java {machine['java']}, Spark {machine['spark']}."
    ]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 or value == int(value) else f"{value:.3g}"
