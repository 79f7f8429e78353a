"""Compares the results of a run with the truth of its words.

Each instance of Eleven and Three must have taken every number once; Aggregation must have counted
every number divisible by three once for each key. An instance that has taken fewer has lost them,
one that has taken more has doubled them; where the count is right and the sum of the words' places
is not, one was lost and another doubled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.s4.words import Truth
from millstream.stores.reader import SlateReader


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of the elements, over all keys, and their difference from the truth."""

    eleven: int
    three: int
    aggregation: int
    lost: int
    doubled: int
    expected: int
    """The expected count of Aggregation."""

    def row(self) -> dict[str, int]:
        return {
            "three": self.three,
            "eleven": self.eleven,
            "aggregation": self.aggregation,
            "expected": self.expected,
            "lost": self.lost,
            "doubled": self.doubled,
        }


def counted(store: Path, truth: Truth, keys: int) -> Counted:
    """Read the slates of a run's store and compare them."""
    with SlateReader(store) as reader:

        def slate(element: str, key: str) -> dict[str, Any]:
            found = reader.get(element, key)
            return {} if found is None else dict(found.value)

        instances = [str(number) for number in range(1, keys + 1)]
        elevens = [slate("Eleven", key) for key in instances]
        threes = [slate("Three", key) for key in instances]
        return compared(elevens, threes, slate("Aggregation", ""), truth)


def compared(
    elevens: list[dict[str, Any]],
    threes: list[dict[str, Any]],
    aggregation: dict[str, Any],
    truth: Truth,
) -> Counted:
    """The instances' slates against the truth."""
    keys, lost, doubled = len(threes), 0, 0
    checks: list[tuple[dict[str, Any], int, int, int | None]]
    checks = [(slate, truth.numbers, truth.places, truth.by_eleven) for slate in elevens]
    checks += [(slate, truth.numbers, truth.places, truth.by_three) for slate in threes]
    checks.append((aggregation, truth.by_three * keys, truth.places_by_three * keys, None))
    for slate, processed, places, divisible in checks:
        missing = processed - slate.get("processed", 0)
        lost += max(0, missing)
        doubled += max(0, -missing)
        right = slate.get("numbers", 0) == places
        right &= divisible is None or slate.get("divisible", 0) == divisible
        if not missing and not right:
            lost, doubled = lost + 1, doubled + 1
    return Counted(
        sum(slate.get("processed", 0) for slate in elevens),
        sum(slate.get("processed", 0) for slate in threes),
        aggregation.get("processed", 0),
        lost,
        doubled,
        truth.by_three * keys,
    )
