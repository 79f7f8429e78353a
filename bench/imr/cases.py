"""The case `imr`: the experiments of the plan (`bench.experiments`)."""

from __future__ import annotations

from functools import partial

from bench.bench import Bench
from bench.experiments import Evaluation, Experiment, SharedMeasurement
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
from bench.imr.pressed import calibrated


def run(bench: Bench) -> Outcome:
    return evaluation(bench, QUICK if bench.quick else Plan()).outcome()


def evaluation(bench: Bench, plan: Plan) -> Evaluation:
    """Some of its experiments share the measured speed of an agent on this machine."""
    shed = plan.shedding
    measure = partial(calibrated, bench, shed.timed, shed.load, shed.capacity_records)
    shared = SharedMeasurement("calibrated", measure)
    experiments = {
        "crossover": Experiment(plan.crossover, crossover.run),
        "fig9": Experiment(plan.words, errors.words),
        "fig11": Experiment(plan.clicks, errors.clicks),
        "fig12": Experiment(plan.hdfs, errors.hdfs),
        "coverage": Experiment(plan.covering, covering.run),
        "contract": Experiment(plan.covering, covering.contract),
        "fig7": Experiment(plan.scaling, scaling.run),
        "waiting": Experiment(plan.waiting, waiting.run),
        "fig11c": Experiment(plan.click_latency, example_latency.clicks),
        "fig12b": Experiment(plan.hdfs_latency, example_latency.hdfs),
        "clocks": Experiment(plan.clocks, clocks.run),
        "crowd": Experiment(plan.crowd, crowd.run),
        "fig10": Experiment(plan.failures, failures.run),
        "fig8": Experiment(plan.shedding, shared.needed_by(shedding.run)),
        "fig13": Experiment(plan.beside, shared.needed_by(beside.run)),
    }
    return Evaluation(bench, "imr", experiments, judging.JUDGING, shared.row)
