"""The case `s4`: the experiments of the plan (`bench.experiments`)."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

from bench.bench import Bench
from bench.experiments import Evaluation, Experiment, Row
from bench.figures import Outcome, shown
from bench.s4 import rows, words
from bench.s4.plan import MEMORY, QUICK, TASKS, Faults, Files, Http, Plan, Return
from bench.s4.running import Disturbed, from_files, over_http, placed
from bench.s4.words import Truth

FILES = 16
SMALL, LARGE = "10 MB", "100 MB"
"""The paper's 200,000 and 2,000,000 words of 100 characters: 20 and 200 MB of text."""
TOLD = ("words_per_s", "events_per_s", "lost", "doubled", "ratio", "behind_s", "spread", "whole_s")


def run(bench: Bench) -> Outcome:
    return evaluation(bench, QUICK if bench.quick else Plan()).outcome()


def evaluation(bench: Bench, plan: Plan) -> Evaluation:
    runs = _Runs(bench)
    experiments = {
        "files": Experiment(plan.files, runs.files),
        "http": Experiment(plan.http, runs.http),
        "fault": Experiment(plan.fault, runs.faults),
        "returned": Experiment(plan.returned, runs.returned),
    }
    return Evaluation(bench, "s4", experiments, rows.JUDGING, runs.settings)


class _Runs:
    """The runs of each experiment, one after the other."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._timeline: dict[str, Any] | None = None
        self._began = time.monotonic()

    def settings(self) -> Row:
        """What the runs have in common, and the timeline of the worker that came back."""
        found = {"tasks": TASKS, "memory": MEMORY, "cores_a_worker": 1, "seed": words.SEED}
        return found if self._timeline is None else {**found, "timeline": self._timeline}

    def files(self, bench: Bench, plan: Files) -> list[Row]:
        made: list[Row] = []
        for workers in plan.workers:
            runs = [(SMALL, plan.small, keys) for keys in plan.keys]
            runs += [(LARGE, plan.large, keys) for of, keys in plan.large_runs if of == workers]
            with placed(bench, workers) as place:
                for data, count, keys in runs:
                    source, truth = self._words(count)
                    found = from_files(bench, place, keys, source, truth)
                    made.append(self._said(rows.of_files(data, workers, keys, truth.words, found)))
        return made

    def http(self, bench: Bench, plan: Http) -> list[Row]:
        made: list[Row] = []
        source, _ = self._words(plan.words)
        for workers in plan.workers:
            with placed(bench, workers) as place:
                for keys in plan.keys:
                    phases = over_http(bench, place, keys, source, plan, _first)
                    made += [self._said(row) for row in rows.of_http(workers, keys, phases)]
        return made

    def faults(self, bench: Bench, plan: Faults) -> list[Row]:
        """Workers that are killed for good half way through a run."""
        made: list[Row] = []
        source, truth = self._words(plan.words)
        for fault in plan.faults:
            with placed(bench, fault.workers) as place:
                how = Disturbed(0.5, fault.killed), "--batch-bytes", plan.batch
                found = from_files(bench, place, fault.keys, source, truth, *how)
            made.append(self._said(rows.of_fault(fault, truth.words, found)))
        return made

    def returned(self, bench: Bench, plan: Return) -> list[Row]:
        """The run in which a worker dies and comes back."""
        source, truth = self._words(plan.words)
        with placed(bench, 2) as place:
            disturbed = Disturbed(plan.kill_at, 1, plan.return_at)
            found = from_files(bench, place, plan.keys, source, truth, disturbed)
        self._timeline = rows.timeline(found)
        return [self._said(row) for row in rows.of_return(plan, found)]

    def _words(self, count: int) -> tuple[Path, Truth]:
        """So many words in files, and their truth."""
        return words.written(self._bench.data, count, FILES)

    def _said(self, row: Row) -> Row:
        """The row, which is also printed."""
        told = ", ".join(f"{name} {shown(row[name])}" for name in TOLD if name in row)
        self._bench.say(f"  {time.monotonic() - self._began:5.0f} s  {row['what']}: {told}")
        return row


@cache
def _first(count: int) -> Truth:
    """The truth of the first words."""
    return words.truth_of(words.words(count))
