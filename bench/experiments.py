"""Runs an evaluation of several experiments, one after the other; with `--only`, some of them,
merged with an earlier run's results of the others. Computes figures and bars from their rows."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.calibration import calibrate
from bench.figures import Bar, Outcome
from bench.machine import commit

Row = dict[str, Any]
Figures = dict[str, float]
Experiments = Mapping[str, Callable[[], list[Row]]]
"""The functions that return the rows of each experiment."""


@dataclass(frozen=True, slots=True)
class Judging:
    """Computes figures from the rows of each experiment; bars must be reached (True) or not
    exceeded."""

    of: Mapping[str, Callable[[list[Row]], Figures]]
    limits: Mapping[str, tuple[float, bool]]
    notes: Sequence[str]

    def figures(self, rows: Iterable[Row]) -> Figures:
        """The main figures of the experiments that have rows."""
        by: dict[str, list[Row]] = {}
        for row in rows:
            by.setdefault(row["experiment"], []).append(row)
        found: Figures = {"failed": float(len(by.pop("failed", [])))}
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
    experiments: Experiments
    plans: Mapping[str, Any]
    """The size of each experiment."""
    judging: Judging
    shared: Callable[[], Row]
    """Measurements that several experiments share, by name; empty if no experiment of this run has
    used them. Each experiment keeps those known when it ran, since others may run later."""

    def outcome(self) -> Outcome:
        asked = self.bench.only or tuple(self.experiments)
        for name in asked:
            if name not in self.experiments:
                known = ", ".join(self.experiments)
                raise RunFailedError(f"--only must name experiments, of {known}; got {name!r}")
        before = self._before() if self.bench.only else {}
        measured: dict[str, Row] = dict(before.get("settings", {}).get("measured", {}))
        rows = [row for row in before.get("rows", []) if _kept(row, asked)]
        for name in asked:
            began = time.monotonic()
            of, speed = self._attempt(name), calibrate()
            rows += of
            measured[name] = {
                **commit(),
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "calibration": round(speed, 2),
                "plan": asdict(self.plans[name]),
                **self.shared(),
            }
            self.bench.say(f"  {name}: {len(of)} rows ({time.monotonic() - began:.0f} s)")
        order = [*self.experiments, "failed"]
        rows.sort(key=lambda row: order.index(row["experiment"]))
        found = self.judging.figures(rows)
        found["calibration"] = median(one["calibration"] for one in measured.values())
        settings = {"measured": {name: measured[name] for name in order if name in measured}}
        bars, notes = self.judging.bars(found), list(self.judging.notes)
        return Outcome(self.case, rows, found, bars, settings, notes)

    def _attempt(self, name: str) -> list[Row]:
        """The rows of an experiment; a failure becomes a row, and the others go on."""
        self.bench.say(f"  {name} ... {datetime.now():%H:%M:%S}")
        try:
            return [{"experiment": name, **row} for row in self.experiments[name]()]
        except (RunFailedError, TimeoutError, subprocess.TimeoutExpired) as error:
            self.bench.say(f"  {name} FAILED: {error}")
            return [{"experiment": "failed", "what": name, "error": str(error)[:300]}]

    def _before(self) -> Row:
        """The results of an earlier run of the same size."""
        path = self.bench.results / f"{self.case}{'-quick' if self.bench.quick else ''}.json"
        found: Row = json.loads(path.read_text()) if path.exists() else {}
        return found


def _kept(row: Row, asked: Sequence[str]) -> bool:
    """True if a row of an earlier run stays: its experiment is not run again."""
    name = row["what"] if row["experiment"] == "failed" else row["experiment"]
    return name not in asked
