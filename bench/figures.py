"""The arithmetic of the figures: rates, ratios, percentiles, bars. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Batch(NamedTuple):
    """A batch of a run: the number of its events, and the time of its end, in seconds."""

    events: int
    ended: float


def rate_after_first(batches: Sequence[Batch]) -> float:
    """Events a second after the first batch that had any."""
    start = next((n for n, batch in enumerate(batches) if batch.events), len(batches))
    later = batches[start + 1 :]
    seconds = later[-1].ended - batches[start].ended if later else 0.0
    if seconds <= 0:
        raise ValueError("a rate needs at least two batches, one after the other")
    return sum(batch.events for batch in later) / seconds


def percentile(values: Sequence[float], share: float) -> float:
    """The least of the values that at least `share` (0 to 1) of them do not exceed."""
    if not values:
        raise ValueError("a percentile needs at least one value")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit that a figure must reach, or must not exceed."""

    figure: str
    value: float
    limit: float
    aim: float | None = None
    at_least: bool = True

    @property
    def held(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        aim = "" if self.aim is None else f", aim {self.aim:g}"
        said = "held" if self.held else "MISSED"
        return f"{self.figure} {shown(self.value)} {sign} {self.limit:g}{aim}: {said}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a case."""

    case: str
    rows: list[dict[str, Any]]
    """The table: one row for each thing measured."""
    figures: dict[str, float]
    """The figures of the last line."""
    bars: list[Bar] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def last_line(self) -> str:
        """`keyed_updates: ratio_tws=27.1 ratio_sql=2.4 events_per_s=223000`."""
        told = " ".join(f"{name}={shown(value)}" for name, value in self.figures.items())
        return f"{self.case}: {told}"


def shown(value: float) -> str:
    """A figure with a sensible number of digits.

    >>> shown(223481.7), shown(27.12), shown(0.3512), shown(6)
    ('223482', '27.1', '0.351', '6')
    """
    if isinstance(value, int) or abs(value) >= 1_000:
        return str(round(value))
    return f"{value:.3g}"
