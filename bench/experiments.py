"""Runs an evaluation of several experiments, one after the other; with `--only`, some of them,
merged with an earlier run's results of the others. Computes figures and bars from their rows.

An evaluation that takes long is written after each experiment (`each`); an experiment that was not
reached keeps its earlier results.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.calibration import calibrate
from bench.figures import Bar, Outcome
from bench.machine import commit

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Measured = TypeVar("Measured", bound="DataclassInstance")
Row = dict[str, Any]
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment: its part of the plan, and the function that returns its rows."""

    plan: Any
    run: Callable[[Bench, Any], list[Row]]


class SharedMeasurement(Generic[Measured]):
    """A measurement that several experiments use, made when the first of them needs it."""

    def __init__(self, name: str, measure: Callable[[], Measured]) -> None:
        self._name, self._measure = name, measure
        self._known: Measured | None = None

    def needed_by(
        self, run: Callable[[Bench, Any, Measured], list[Row]]
    ) -> Callable[[Bench, Any], list[Row]]:
        """An experiment that is given the measurement."""
        return lambda bench, plan: run(bench, plan, self._value())

    def row(self) -> Row:
        """The measurement by its name; empty if no experiment has needed it."""
        return {} if self._known is None else {self._name: asdict(self._known)}

    def _value(self) -> Measured:
        if self._known is None:
            self._known = self._measure()
        return self._known


@dataclass(frozen=True, slots=True)
class Judging:
    """Computes figures from the rows of each experiment; bars must be reached (True) or not
    exceeded."""

    of: Mapping[str, Callable[[list[Row]], Figures]]
    limits: Mapping[str, tuple[float, bool]]
    notes: Sequence[str]
    across: Callable[[list[Row]], Figures] = lambda rows: {}
    """Computes figures from the rows of all experiments."""

    def figures(self, rows: Iterable[Row]) -> Figures:
        """The main figures of the experiments that have rows."""
        by: dict[str, list[Row]] = {}
        for row in rows:
            by.setdefault(row["experiment"], []).append(row)
        found: Figures = {"failed": float(len(by.pop("failed", [])))}
        found |= self.across([row for of in by.values() for row in of])
        for name, of in by.items():
            if name in self.of:
                found |= self.of[name](of)
        return found

    def bars(self, found: Mapping[str, float]) -> list[Bar]:
        return [
            Bar(name, found[name], limit, at_least=at_least)
            for name, (limit, at_least) in self.limits.items()
            if name in found
        ]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Experiments with one common file of results."""

    bench: Bench
    case: str
    experiments: Mapping[str, Experiment]
    judging: Judging
    shared: Callable[[], Row] = dict
    """Measurements that several experiments share, by name; empty if no experiment of this run has
    used them. Each experiment keeps those known when it ran, since others may run later."""
    each: Callable[[Outcome], object] | None = None
    """Called after each experiment with the outcome so far, merged with earlier results."""

    def outcome(self) -> Outcome:
        asked = self.bench.only or tuple(self.experiments)
        for name in asked:
            if name not in self.experiments:
                known = ", ".join(self.experiments)
                raise RunFailedError(f"--only must name experiments, of {known}; got {name!r}")
        before = self._before() if self.bench.only or self.each else {}
        measured: dict[str, Row] = dict(before.get("settings", {}).get("measured", {}))
        rows: list[Row] = [row for row in before.get("rows", []) if self._is_known(row)]
        for name in asked:
            began = time.monotonic()
            of, seconds, speed = self._attempt(name), time.monotonic() - began, calibrate()
            rows = [row for row in rows if _experiment(row) != name] + of
            measured[name] = {
                **commit(),
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": round(seconds),
                "calibration": round(speed, 2),
                "plan": asdict(self.experiments[name].plan),
                **self.shared(),
            }
            self.bench.say(f"  {name}: {len(of)} rows ({seconds:.0f} s)")
            if self.each is not None:
                self.each(self._judged(rows, measured))
        return self._judged(rows, measured)

    def _judged(self, rows: Sequence[Row], measured: Mapping[str, Row]) -> Outcome:
        """The outcome of all rows, in the order of the experiments."""
        order = [*self.experiments, "failed"]
        rows = sorted(rows, key=lambda row: order.index(row["experiment"]))
        found = self.judging.figures(rows)
        found["calibration"] = median(one["calibration"] for one in measured.values())
        settings = {"measured": {name: measured[name] for name in order if name in measured}}
        bars, notes = self.judging.bars(found), list(self.judging.notes)
        return Outcome(self.case, rows, found, bars, settings, notes)

    def _is_known(self, row: Row) -> bool:
        """True if there is still such an experiment."""
        return _experiment(row) in self.experiments

    def _attempt(self, name: str) -> list[Row]:
        """The rows of an experiment; a failure becomes a row, and the others go on."""
        self.bench.say(f"  {name} ... {datetime.now():%H:%M:%S}")
        try:
            experiment = self.experiments[name]
            rows = experiment.run(self.bench, experiment.plan)
            return [{"experiment": name, **row} for row in rows]
        except (RunFailedError, TimeoutError, subprocess.SubprocessError) as error:
            self.bench.say(f"  {name} FAILED: {error}")
            return [{"experiment": "failed", "what": name, "error": str(error)[:300]}]

    def _before(self) -> Row:
        """The results of an earlier run of the same size."""
        path = self.bench.results / f"{self.case}{'-quick' if self.bench.quick else ''}.json"
        found: Row = json.loads(path.read_text()) if path.exists() else {}
        return found


def _experiment(row: Row) -> str:
    """The experiment of a row; a row that failed names it."""
    return str(row["what"] if row["experiment"] == "failed" else row["experiment"])
