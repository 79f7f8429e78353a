"""The three elements of online parameter optimisation (S4, section V, Figure 7).

    events -> MeasurementPE (slice) -> ComparatorPE (slice1:slice2) -> OptimizerPE (slice1:slice2)
      ^                                                                       |
      +--------------------- the target system <---- parameters <------------+

An *experiment cycle* is one pair of parameter values being tried. It has a number, which the target
system puts into its events, so that what still comes of an older cycle is not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import millstream as ms
from examples.optimising.nelder_mead import Search, answer, begin, question
from examples.optimising.t_test import paired

Parameters = dict[str, dict[str, float]]
"""By name: `low`, `high`, `start` and `step`."""


@dataclass
class MeasurementPE(ms.Element):
    """Measures the objective function in one slice, slot by slot. Keyed on the slice.

    The objective is the weighted sum of the fields named in `weights`, over the field `per`. A slot
    is what lies between two calls of `output`: of time (`every=`) or of events (`every_events=`).
    A slot with less than `least` of `per` is not valid, and not told.
    """

    weights: ms.Configured[dict[str, float]]
    per: ms.Configured[str]
    comparisons: ms.Configured[list[str]]
    slots: ms.Configured[Literal["time", "events"]] = "time"
    least: ms.Configured[float] = 1

    cycle: int = 0
    slot: int = 0
    total: float = 0.0
    over: float = 0.0

    def process_event(self, event: ms.Event) -> None:
        report = event.value
        if report["cycle"] > self.cycle:
            self.cycle, self.slot, self.total, self.over = report["cycle"], 0, 0.0, 0.0
        if report["cycle"] == self.cycle:
            self.total += sum(weight * report[name] for name, weight in self.weights.items())
            self.over += report[self.per]

    def output(self) -> Iterator[Any]:
        self.slot += 1
        total, over, self.total, self.over = self.total, self.over, 0.0, 0.0
        if over <= 0 or over < self.least:
            return
        measured = {
            "slice": self.key,
            "cycle": self.cycle,
            "slot": self.time if self.slots == "time" else self.slot,
            "objective": total / over,
        }
        for comparison in self.comparisons:
            if self.key in comparison.split(":"):
                yield ms.emit(value={**measured, "comparison": comparison})


@dataclass
class ComparatorPE(ms.Element):
    """Finds out which of two slices is better, if one is. Keyed on the comparison, `one:other`.

    Measurements of the same slot are a pair. From `least` pairs on, the paired t-test is made at
    each: a difference that is significant at `level` is the verdict; after `most` pairs without one
    the slices are equal.
    """

    least: ms.Configured[int] = 5
    most: ms.Configured[int] = 20
    level: ms.Configured[float] = 0.05

    cycle: int = 0
    decided: bool = False
    waiting: dict[str, float] = field(default_factory=dict)
    """The measurements of one slice whose slot the other has not measured yet: `slice/slot`."""
    pairs: list[list[float]] = field(default_factory=list)

    def process_event(self, event: ms.Event) -> Iterator[Any]:
        report = event.value
        if report["cycle"] > self.cycle:
            self.cycle, self.decided, self.waiting, self.pairs = report["cycle"], False, {}, []
        if report["cycle"] < self.cycle or self.decided:
            return
        first, second = self.key.split(":")
        other = second if report["slice"] == first else first
        matching = self.waiting.pop(f"{other}/{report['slot']}", None)
        if matching is None:
            self.waiting[f"{report['slice']}/{report['slot']}"] = report["objective"]
            return
        pair = [report["objective"], matching]
        self.pairs.append(pair if report["slice"] == first else pair[::-1])
        if len(self.pairs) < max(self.least, 2):
            return
        test = paired([above - below for above, below in self.pairs])
        if test.p > self.level and len(self.pairs) < self.most:
            return
        self.decided, self.waiting = True, {}
        better = 0 if test.p > self.level else 1 if test.mean > 0 else -1
        means = [sum(values) / len(self.pairs) for values in zip(*self.pairs, strict=True)]
        yield ms.emit(
            value={
                "comparison": self.key,
                "cycle": self.cycle,
                "verdict": better,
                "slots": len(self.pairs),
                "objectives": means,
                "p": test.p,
            }
        )


@dataclass
class OptimizerPE(ms.Element):
    """Decides which parameters are tried next, in both slices. Keyed on the comparison.

    It begins when it is told to (stream `starts`) and from where, by what it is told or else by its
    configuration; takes the verdict of each cycle, and publishes the parameters of the next. When
    the search is finished, both slices get the best ones. Who tells it to start once more is told
    the parameters that hold.
    """

    parameters: ms.Configured[Parameters]
    small: ms.Configured[float] = 0.1
    rounds: ms.Configured[int] = 2

    cycle: int = 0
    search: Search | None = None

    def process_event(self, event: ms.Event) -> Iterator[Any]:
        verdict = None
        if event.stream == "starts":
            if self.search is None:
                present = event.value.get("parameters", {})
                self.search = begin(
                    {
                        name: {**limits, "start": present.get(name, limits["start"])}
                        for name, limits in self.parameters.items()
                    },
                    small=self.small,
                    rounds=self.rounds,
                )
                self.cycle = 1
        elif self.search is None or self.search.finished or event.value["cycle"] != self.cycle:
            return
        else:
            verdict = event.value
            self.search = answer(self.search, verdict["verdict"])
            self.cycle += 1
        yield self.publish(self._told(verdict))

    def _told(self, verdict: dict[str, Any] | None) -> dict[str, Any]:
        search = self.search
        assert search is not None
        points = (search.best, search.best) if search.finished else question(search)
        first, second = self.key.split(":")
        return {
            "comparison": self.key,
            "cycle": self.cycle,
            "slices": {first: self._named(points[0]), second: self._named(points[1])},
            "best": self._named(search.best),
            "finished": search.finished,
            "after": verdict,
        }

    def _named(self, point: list[float]) -> dict[str, float]:
        return dict(zip(self.parameters, point, strict=True))
