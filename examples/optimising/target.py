"""A made-up search engine with advertising: the target system, whose optimum is known.

It has two parameters: `reserve`, the least price in cents that an ad must bid, and `ads`, how many
ads may stand above the results. Its objective is the revenue of a search and, `WEIGHTS` say how
much, the users' experience. Of a search, on average:

    clicks       0.08 ads (1 - reserve/11), each paid about the reserve
    satisfied    1 - ads^2/100
    objective    0.08 ads reserve (1 - reserve/11) + 2.5 (1 - ads^2/100)

which is greatest at reserve 5.5 and ads 4.4, where it is 2.984. What is measured is noisy: users
click or not, prices differ, and the hour and the day move both figures by far more than a small
change of the parameters does. Two slices of the users, drawn at random, get parameters of their
own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

SLICES = ("slice1", "slice2")
WEIGHTS = {"revenue": 1.0, "satisfied": 2.5}
PARAMETERS: dict[str, dict[str, float]] = {
    "reserve": {"low": 0.0, "high": 10.0, "start": 2.0, "step": 1.8},
    "ads": {"low": 0.0, "high": 10.0, "start": 8.5, "step": -1.5},
}
"""Where the search for the best begins: the parameters as they were tuned by hand."""
OPTIMUM = {"reserve": 5.5, "ads": 4.4}
MINUTE = 60_000_000
EVERY = 10 * MINUTE
"""The interval between two reports of a slice."""
A_DAY = 1_000_000
"""Searches of a slice a day: of 200,000 users, as in the paper, five each."""


def objective(parameters: Mapping[str, float]) -> float:
    """The mean objective for a search, over the hours and without noise.

    >>> round(objective(OPTIMUM), 9), round(objective({"reserve": 2, "ads": 8.5}), 3)
    (2.984, 1.806)
    """
    clicks, satisfied = _chances(parameters)
    return WEIGHTS["revenue"] * clicks * parameters["reserve"] + WEIGHTS["satisfied"] * satisfied


def _chances(parameters: Mapping[str, float]) -> tuple[float, float]:
    reserve, ads = parameters["reserve"], parameters["ads"]
    return 0.08 * ads * (1 - reserve / 11), 1 - ads * ads / 100


class Target:
    """The system: it applies the parameters that it is told, and tells what its users do."""

    def __init__(
        self, seed: int, start: int, parameters: Mapping[str, float] | None = None
    ) -> None:
        self._random = Random(seed)
        self._at = start // EVERY * EVERY
        self._mood = 0.0
        self.cycle = 0
        begun = {name: axis["start"] for name, axis in PARAMETERS.items()} | dict(parameters or {})
        self.parameters = {name: dict(begun) for name in SLICES}

    @property
    def time(self) -> int:
        """Up to when it has told what happened."""
        return self._at

    def hello(self) -> dict[str, Any]:
        """The first message of the search: the slices to compare, and the present parameters."""
        slices, present = ":".join(SLICES), self.parameters[SLICES[0]]
        return {"comparison": slices, "time": self._at, "parameters": present}

    def apply(self, message: Mapping[str, Any]) -> bool:
        """Take new parameters, unless they are not new; says whether it did."""
        if message["cycle"] <= self.cycle:
            return False
        self.cycle = message["cycle"]
        for name, parameters in message["slices"].items():
            # Those that are not tuned stay as they are.
            self.parameters[name] = self.parameters[name] | parameters
        return True

    def run(self, until: int) -> Iterator[dict[str, Any]]:
        """Yields the reports up to a time: one for each slice every ten minutes."""
        while self._at + EVERY <= until:
            self._at += EVERY
            self._mood = 0.98 * self._mood + self._random.gauss(0, 0.02)
            day = 2 * math.pi * self._at / (24 * 60 * MINUTE)
            swing = 0.75 + 0.15 * math.sin(day) + max(-0.1, min(0.1, self._mood))
            for name in SLICES:
                yield self._report(name, swing)

    def _report(self, name: str, swing: float) -> dict[str, Any]:
        parameters = self.parameters[name]
        clicks_each, satisfied_each = _chances(parameters)
        searches = self._drawn(A_DAY * EVERY / (24 * 60 * MINUTE) / 0.01, 0.01 * swing)
        clicks = self._drawn(searches, clicks_each * swing)
        paid = clicks + self._random.gauss(0, 0.3) * math.sqrt(clicks)
        return {
            "time": self._at - MINUTE,
            "slice": name,
            "cycle": self.cycle,
            "searches": searches,
            "revenue": round(max(0.0, paid) * parameters["reserve"], 4),
            "satisfied": self._drawn(searches, satisfied_each * swing),
        }

    def _drawn(self, n: float, chance: float) -> int:
        """Draws how many of n events happen, each with a given probability. A probability over 1
        means several events."""
        spread = math.sqrt(n * chance * max(0.05, 1 - chance))
        return max(0, round(self._random.gauss(n * chance, spread)))
