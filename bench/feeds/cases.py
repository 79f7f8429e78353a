"""The case `feeds`: the experiments of the plan (`bench.experiments`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from bench.bench import Bench
from bench.experiments import Evaluation, Experiments
from bench.feeds import correct, costs, flash, followed, judging, knobs, reads
from bench.feeds.costs import Calibrated
from bench.feeds.plan import QUICK, Plan
from bench.figures import Outcome

Row = dict[str, Any]
PARTS = {
    **{
        "fig4": "ratios",
        "full": "full",
        "diverse": "diverse",
        "deciding": "deciding",
        "fig5": "skews",
        "fig6": "thresholds",
    },
    **{"fig7": "thresholds", "fig8": "strategies", "fig9": "fan_outs", "fig10": "flash"},
    **{"followers": "followed", "reads": "live", "reads-correct": "correct"},
}
"""The part of the plan that each experiment belongs to."""


def run(bench: Bench) -> Outcome:
    return run_plan(bench, QUICK if bench.quick else Plan())


def run_plan(bench: Bench, plan: Plan) -> Outcome:
    measured = _Costs(bench, plan)
    experiments: Experiments = {
        "fig4": measured.given(costs.ratios, plan.ratios),
        "full": measured.given(costs.full, plan.full),
        "diverse": measured.given(costs.diverse, plan.diverse),
        "deciding": measured.given(knobs.deciding, plan.deciding),
        "fig5": measured.given(costs.skews, plan.skews),
        "fig6": measured.given(knobs.thresholds, plan.thresholds),
        "fig7": measured.given(knobs.pushed_parts, plan.thresholds),
        "fig8": measured.given(knobs.strategies, plan.strategies),
        "fig9": measured.given(costs.fan_outs, plan.fan_outs),
        "fig10": measured.given(flash.run, plan.flash),
        "followers": partial(followed.run, bench, plan.followed),
        "reads": partial(reads.run, bench, plan.live),
        "reads-correct": partial(correct.run, bench, plan.correct),
    }
    plans = {name: getattr(plan, PARTS[name]) for name in experiments}
    return Evaluation(bench, "feeds", experiments, plans, judging.JUDGING, measured.told).outcome()


class _Costs:
    """The measured cost of a push and of a pull on this machine."""

    def __init__(self, bench: Bench, plan: Plan) -> None:
        self._bench, self._plan = bench, plan.ratios.of
        self._known: Calibrated | None = None

    def given(
        self, experiment: Callable[[Bench, Any, Calibrated], list[Row]], part: Any
    ) -> Callable[[], list[Row]]:
        """An experiment that needs them."""
        return lambda: experiment(self._bench, part, self._calibrated())

    def told(self) -> Row:
        return {} if self._known is None else {"costs": asdict(self._known)}

    def _calibrated(self) -> Calibrated:
        if self._known is None:
            self._known = costs.calibrated(self._bench, self._plan)
        return self._known
