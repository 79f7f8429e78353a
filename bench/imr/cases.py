"""The case `imr`: the experiments of the plan (`bench.experiments`)."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from bench.bench import Bench
from bench.experiments import Evaluation, Experiments
from bench.figures import Outcome
from bench.imr import (
    beside,
    clocks,
    covering,
    crossover,
    crowd,
    errors,
    example_latency,
    failures,
    judging,
    scaling,
    shedding,
    waiting,
)
from bench.imr.plan import QUICK, Plan
from bench.imr.pressed import Calibrated, calibrated

PARTS = {
    **{"fig7": "scaling", "fig8": "shedding", "fig9": "words", "fig10": "failures"},
    **{"fig11": "clicks", "fig12": "hdfs", "fig13": "beside"},
    **{"fig11c": "click_latency", "fig12b": "hdfs_latency"},
    **{"coverage": "covering", "contract": "covering"},
}
"""The part of the plan that an experiment belongs to, if it is not that of its name."""


def run(bench: Bench) -> Outcome:
    return run_plan(bench, QUICK if bench.quick else Plan())


def run_plan(bench: Bench, plan: Plan) -> Outcome:
    core = _Core(bench, plan)
    experiments: Experiments = {
        "crossover": partial(crossover.run, bench, plan.crossover),
        "fig9": partial(errors.words, bench, plan.words),
        "fig11": partial(errors.clicks, bench, plan.clicks),
        "fig12": partial(errors.hdfs, bench, plan.hdfs),
        "coverage": partial(covering.run, bench, plan.covering),
        "contract": partial(covering.contract, bench, plan.covering),
        "fig7": partial(scaling.run, bench, plan.scaling),
        "waiting": partial(waiting.run, bench, plan.waiting),
        "fig11c": partial(example_latency.clicks, bench, plan.click_latency),
        "fig12b": partial(example_latency.hdfs, bench, plan.hdfs_latency),
        "clocks": partial(clocks.run, bench, plan.clocks),
        "crowd": partial(crowd.run, bench, plan.crowd),
        "fig10": partial(failures.run, bench, plan.failures),
        "fig8": lambda: shedding.run(bench, plan.shedding, core.calibrated()),
        "fig13": lambda: beside.run(bench, plan.beside, core.calibrated()),
    }
    plans = {name: getattr(plan, PARTS.get(name, name)) for name in experiments}
    return Evaluation(bench, "imr", experiments, plans, judging.JUDGING, core.told).outcome()


class _Core:
    """The measured speed of an agent on this machine."""

    def __init__(self, bench: Bench, plan: Plan) -> None:
        self._bench, self._plan = bench, plan.shedding
        self._known: Calibrated | None = None

    def calibrated(self) -> Calibrated:
        if self._known is None:
            plan = self._plan
            self._known = calibrated(self._bench, plan.timed, plan.load, plan.capacity_records)
        return self._known

    def told(self) -> dict[str, Any]:
        return {} if self._known is None else {"calibrated": asdict(self._known)}
