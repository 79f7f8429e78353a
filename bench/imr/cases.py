"""The case `imr`: the experiments of the plan, one after the other; with `--only`, some of them,
merged with what an earlier run found of the others."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from statistics import median
from typing import Any

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.calibration import calibrate
from bench.figures import Outcome
from bench.imr import (
    beside,
    clocks,
    covering,
    crossover,
    errors,
    failures,
    judging,
    scaling,
    shedding,
    waiting,
)
from bench.imr.plan import QUICK, Plan
from bench.imr.pressed import Calibrated, calibrated
from bench.machine import commit

Row = dict[str, Any]


def run(bench: Bench) -> Outcome:
    return run_plan(bench, QUICK if bench.quick else Plan())


def run_plan(bench: Bench, plan: Plan) -> Outcome:
    return _Evaluation(bench, plan).outcome()


class _Evaluation:
    """Runs a plan."""

    def __init__(self, bench: Bench, plan: Plan) -> None:
        self._bench, self._plan = bench, plan
        self._known: Calibrated | None = None
        self.experiments: dict[str, Callable[[], list[Row]]] = {
            "crossover": partial(crossover.run, bench, plan.crossover),
            "fig9": partial(errors.words, bench, plan.words),
            "fig11": partial(errors.clicks, bench, plan.clicks),
            "fig12": partial(errors.hdfs, bench, plan.hdfs),
            "coverage": partial(covering.run, bench, plan.covering),
            "contract": partial(covering.contract, bench, plan.covering),
            "fig7": partial(scaling.run, bench, plan.scaling),
            "waiting": partial(waiting.run, bench, plan.waiting),
            "clocks": partial(clocks.run, bench, plan.clocks),
            "fig10": partial(failures.run, bench, plan.failures),
            "fig8": lambda: shedding.run(bench, plan.shedding, self._calibrated()),
            "fig13": lambda: beside.run(bench, plan.beside, self._calibrated()),
        }

    def outcome(self) -> Outcome:
        asked = self._bench.only or tuple(self.experiments)
        for name in asked:
            if name not in self.experiments:
                known = ", ".join(self.experiments)
                raise RunFailedError(f"--only must name experiments, of {known}; got {name!r}")
        before = _before(self._bench) if self._bench.only else {}
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
                "plan": self._asked(name),
            }
            self._bench.say(f"  {name}: {len(of)} rows ({time.monotonic() - began:.0f} s)")
        order = [*self.experiments, "failed"]
        rows.sort(key=lambda row: order.index(row["experiment"]))
        found = judging.figures(rows)
        found["calibration"] = median(one["calibration"] for one in measured.values())
        settings = {"measured": {name: measured[name] for name in order if name in measured}}
        if self._known is not None:
            settings["calibrated"] = asdict(self._known)
        elif "calibrated" in before.get("settings", {}):
            settings["calibrated"] = before["settings"]["calibrated"]
        return Outcome("imr", rows, found, judging.bars(found), settings, judging.NOTES)

    def _attempt(self, name: str) -> list[Row]:
        """The rows of an experiment: if it fails, that is a row, and the others go on."""
        self._bench.say(f"  {name} ... {datetime.now():%H:%M:%S}")
        try:
            return [{"experiment": name, **row} for row in self.experiments[name]()]
        except (RunFailedError, TimeoutError, subprocess.TimeoutExpired) as error:
            self._bench.say(f"  {name} FAILED: {error}")
            return [{"experiment": "failed", "what": name, "error": str(error)[:300]}]

    def _asked(self, name: str) -> Row:
        """How much of everything an experiment had."""
        parts = {
            **{"fig7": "scaling", "fig8": "shedding", "fig9": "words", "fig10": "failures"},
            **{"fig11": "clicks", "fig12": "hdfs", "fig13": "beside"},
            **{"coverage": "covering", "contract": "covering"},
        }
        return asdict(getattr(self._plan, parts.get(name, name)))

    def _calibrated(self) -> Calibrated:
        """How fast an agent is here, measured once."""
        if self._known is None:
            plan = self._plan.shedding
            self._known = calibrated(self._bench, plan.timed, plan.load, plan.capacity_records)
        return self._known


def _before(bench: Bench) -> Row:
    """What an earlier run of the same size left."""
    path = bench.results / ("imr-quick.json" if bench.quick else "imr.json")
    found: Row = json.loads(path.read_text()) if path.exists() else {}
    return found


def _kept(row: Row, asked: tuple[str, ...]) -> bool:
    """Whether a row of an earlier run stays: its experiment is not run again."""
    name = row["what"] if row["experiment"] == "failed" else row["experiment"]
    return name not in asked
