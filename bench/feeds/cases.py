"""The case `feeds`: the experiments of the plan, one after the other; with `--only`, some of them,
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
from bench.feeds import correct, costs, flash, judging, knobs, reads
from bench.feeds.costs import Calibrated
from bench.feeds.plan import QUICK, Plan
from bench.figures import Outcome
from bench.machine import commit

Row = dict[str, Any]
PARTS = {
    **{
        "fig4": "ratios",
        "full": "full",
        "diverse": "diverse",
        "fig5": "skews",
        "fig6": "thresholds",
    },
    **{"fig7": "thresholds", "fig8": "strategies", "fig9": "fan_outs", "fig10": "flash"},
    **{"reads": "live", "reads-correct": "correct"},
}
"""Which part of the plan an experiment is of."""


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
            "fig4": self._with_costs(costs.ratios, plan.ratios),
            "full": self._with_costs(costs.full, plan.full),
            "diverse": self._with_costs(costs.diverse, plan.diverse),
            "fig5": self._with_costs(costs.skews, plan.skews),
            "fig6": self._with_costs(knobs.thresholds, plan.thresholds),
            "fig7": self._with_costs(knobs.pushed_parts, plan.thresholds),
            "fig8": self._with_costs(knobs.strategies, plan.strategies),
            "fig9": self._with_costs(costs.fan_outs, plan.fan_outs),
            "fig10": self._with_costs(flash.run, plan.flash),
            "reads": partial(reads.run, bench, plan.live),
            "reads-correct": partial(correct.run, bench, plan.correct),
        }

    def _with_costs(
        self, experiment: Callable[[Bench, Any, Calibrated], list[Row]], part: Any
    ) -> Callable[[], list[Row]]:
        return lambda: experiment(self._bench, part, self._calibrated())

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
                "plan": asdict(getattr(self._plan, PARTS[name])),
                "costs": asdict(self._known) if self._known is not None else None,
            }
            self._bench.say(f"  {name}: {len(of)} rows ({time.monotonic() - began:.0f} s)")
        order = [*self.experiments, "failed"]
        rows.sort(key=lambda row: order.index(row["experiment"]))
        found = judging.figures(rows)
        found["calibration"] = median(one["calibration"] for one in measured.values())
        settings = {"measured": {name: measured[name] for name in order if name in measured}}
        if self._known is not None:
            settings["costs"] = asdict(self._known)
        elif "costs" in before.get("settings", {}):
            settings["costs"] = before["settings"]["costs"]
        return Outcome("feeds", rows, found, judging.bars(found), settings, judging.NOTES)

    def _attempt(self, name: str) -> list[Row]:
        """The rows of an experiment: if it fails, that is a row, and the others go on."""
        self._bench.say(f"  {name} ... {datetime.now():%H:%M:%S}")
        try:
            return [{"experiment": name, **row} for row in self.experiments[name]()]
        except (RunFailedError, TimeoutError, subprocess.TimeoutExpired) as error:
            self._bench.say(f"  {name} FAILED: {error}")
            return [{"experiment": "failed", "what": name, "error": str(error)[:300]}]

    def _calibrated(self) -> Calibrated:
        """What a push and a pull cost here, measured once."""
        if self._known is None:
            self._known = costs.calibrated(self._bench, self._plan.ratios.of)
        return self._known


def _before(bench: Bench) -> Row:
    """What an earlier run of the same size left."""
    path = bench.results / ("feeds-quick.json" if bench.quick else "feeds.json")
    found: Row = json.loads(path.read_text()) if path.exists() else {}
    return found


def _kept(row: Row, asked: tuple[str, ...]) -> bool:
    """Whether a row of an earlier run stays: its experiment is not run again."""
    name = row["what"] if row["experiment"] == "failed" else row["experiment"]
    return name not in asked
