"""The case `s4`: all runs of the plan, one after the other."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from statistics import median
from typing import Any

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.calibration import calibrate
from bench.figures import Outcome, shown
from bench.s4 import rows, words
from bench.s4.plan import MEMORY, QUICK, TASKS, Fault, Plan
from bench.s4.running import Disturbed, Place, from_files, over_http, placed

FILES = 16
SMALL, LARGE = "10 MB", "100 MB"
"""The paper's 200,000 and 2,000,000 words of 100 characters: 20 and 200 MB of text."""
TOLD = ("words_per_s", "events_per_s", "lost", "doubled", "ratio", "behind_s", "spread", "whole_s")


def run(bench: Bench) -> Outcome:
    return run_plan(bench, QUICK if bench.quick else Plan())


def run_plan(bench: Bench, plan: Plan) -> Outcome:
    return _Evaluation(bench, plan).outcome()


class _Evaluation:
    """Runs a plan."""

    def __init__(self, bench: Bench, plan: Plan) -> None:
        self._bench, self._plan = bench, plan
        self._rows: list[dict[str, Any]] = []
        self._speeds: list[float] = []
        self._timeline: dict[str, Any] = {"commits": [], "marks": {}}
        self._began = time.monotonic()
        bench.say("  the words ...")
        self._data = {
            name: words.written(bench.data, count, FILES)
            for name, count in ((SMALL, plan.small), (LARGE, plan.large))
        }

    def outcome(self) -> Outcome:
        bench, plan = self._bench, self._plan
        for workers in plan.workers:
            self._speeds.append(calibrate())
            with placed(bench, workers) as place:
                self._of_workers(place, workers)
        for fault in plan.faults:
            self._attempt(fault.what, self._fault, fault)
        self._attempt("a worker killed and back", self._returned)
        found_figures = rows.figures(self._rows)
        settings = {
            **asdict(plan),
            "tasks": TASKS,
            "memory": MEMORY,
            "cores_a_worker": 1,
            "seed": words.SEED,
            "calibrations": [round(speed, 2) for speed in self._speeds],
            "timeline": self._timeline,
        }
        found_figures["calibration"] = median(self._speeds)
        bars = rows.bars(found_figures)
        return Outcome("s4", self._rows, found_figures, bars, settings, rows.NOTES)

    def _of_workers(self, place: Place, workers: int) -> None:
        """All undisturbed runs on a cluster."""
        plan = self._plan
        runs = [(SMALL, keys) for keys in plan.keys]
        runs += [(LARGE, keys) for of, keys in plan.large_runs if of == workers]
        for data, keys in runs:
            self._attempt(f"{data}, {workers}, {keys}", self._files, place, workers, data, keys)
        for keys in plan.keys:
            self._attempt(f"http, {workers}, {keys}", self._http, place, workers, keys)

    def _attempt(self, what: str, do: Callable[..., None], *given: Any) -> None:
        """Makes one of many runs. A failure becomes a row, and the others go on."""
        try:
            do(*given)
        except (RunFailedError, TimeoutError, subprocess.TimeoutExpired) as error:
            self._bench.say(f"  {what} FAILED: {error}")
            self._rows.append({"what": what, "kind": "failed"})

    def _files(self, place: Place, workers: int, data: str, keys: int) -> None:
        source, truth = self._data[data]
        found = from_files(self._bench, place, keys, source, truth)
        self._add(rows.of_files(data, workers, keys, truth.words, found))

    def _http(self, place: Place, workers: int, keys: int) -> None:
        source, _ = self._data[SMALL]
        phases = over_http(self._bench, place, keys, source, self._plan, _first)
        for row in rows.of_http(workers, keys, phases):
            self._add(row)

    def _fault(self, fault: Fault) -> None:
        source, truth = self._data[SMALL]
        with placed(self._bench, fault.workers) as place:
            how = Disturbed(0.5, fault.killed), "--batch-bytes", self._plan.fault_batch
            found = from_files(self._bench, place, fault.keys, source, truth, *how)
        self._add(rows.of_fault(fault, truth.words, found))

    def _returned(self) -> None:
        """The run in which a worker dies and comes back."""
        plan = self._plan.returned
        source, truth = words.written(self._bench.data, plan.words, FILES)
        with placed(self._bench, 2) as place:
            disturbed = Disturbed(plan.kill_at, 1, plan.return_at)
            found = from_files(self._bench, place, plan.keys, source, truth, disturbed)
        for row in rows.of_return(plan, found):
            self._add(row)
        self._timeline = rows.timeline(found)

    def _add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        told = ", ".join(f"{name} {shown(row[name])}" for name in TOLD if name in row)
        self._bench.say(f"  {time.monotonic() - self._began:5.0f} s  {row['what']}: {told}")


@cache
def _first(count: int) -> words.Truth:
    """The truth of the first words."""
    return words.truth_of(words.words(count))
