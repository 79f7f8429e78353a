"""The case `feeds`: the experiments of the plan (`bench.experiments`)."""

from __future__ import annotations

from functools import partial

from bench.bench import Bench
from bench.experiments import Evaluation, Experiment, SharedMeasurement
from bench.feeds import correct, costs, flash, followed, judging, knobs, reads
from bench.feeds.plan import QUICK, Plan
from bench.figures import Outcome


def run(bench: Bench) -> Outcome:
    return evaluation(bench, QUICK if bench.quick else Plan()).outcome()


def evaluation(bench: Bench, plan: Plan) -> Evaluation:
    """Its experiments share the measured cost of a push and of a pull on this machine."""
    shared = SharedMeasurement("costs", partial(costs.calibrated, bench, plan.ratios.of))
    experiments = {
        "fig4": Experiment(plan.ratios, shared.needed_by(costs.ratios)),
        "full": Experiment(plan.full, shared.needed_by(costs.full)),
        "diverse": Experiment(plan.diverse, shared.needed_by(costs.diverse)),
        "deciding": Experiment(plan.deciding, shared.needed_by(knobs.deciding)),
        "fig5": Experiment(plan.skews, shared.needed_by(costs.skews)),
        "fig6": Experiment(plan.thresholds, shared.needed_by(knobs.thresholds)),
        "fig7": Experiment(plan.thresholds, shared.needed_by(knobs.pushed_parts)),
        "fig8": Experiment(plan.strategies, shared.needed_by(knobs.strategies)),
        "fig9": Experiment(plan.fan_outs, shared.needed_by(costs.fan_outs)),
        "fig10": Experiment(plan.flash, shared.needed_by(flash.run)),
        "followers": Experiment(plan.followed, followed.run),
        "reads": Experiment(plan.live, reads.run),
        "reads-correct": Experiment(plan.correct, correct.run),
    }
    return Evaluation(bench, "feeds", experiments, judging.JUDGING, shared.row)
