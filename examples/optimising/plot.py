"""The picture of a search: the way of the parameters, and the objective cycle by cycle."""

from __future__ import annotations

from collections.abc import Sequence

from docs.charts import Chart, Marker, Series, line_chart, svg
from examples.optimising.simulate import Cycle
from examples.optimising.target import OPTIMUM, SLICES, objective


def drawn(cycles: Sequence[Cycle]) -> str:
    """Both charts side by side, with the known optimum as lines."""
    return svg([_way(cycles), _gain(cycles)])


def _way(cycles: Sequence[Cycle]) -> Chart:
    slices = [parameters for cycle in cycles for parameters in cycle.slices.values()]
    tried = sorted({(parameters["reserve"], parameters["ads"]) for parameters in slices})
    best = [(cycle.best["reserve"], cycle.best["ads"]) for cycle in cycles]
    return line_chart(
        [
            Series("tried in a slice", tried, "points", colour=6),
            Series("the best known", best, colour=0),
            Series("the optimum", [(OPTIMUM["reserve"], OPTIMUM["ads"])], "points", colour=1),
        ],
        title="The way of the parameters",
        x_label="reserve price, cents",
        y_label="ads above the results",
        markers=[
            Marker("x", OPTIMUM["reserve"], f"{OPTIMUM['reserve']:g}"),
            Marker("y", OPTIMUM["ads"], f"{OPTIMUM['ads']:g}"),
        ],
    )


def _gain(cycles: Sequence[Cycle]) -> Chart:
    measured = [
        (cycle.number - 1, value)
        for cycle in cycles
        if cycle.verdict is not None
        for value in cycle.verdict["objectives"]
    ]
    tried = [(c.number, objective(c.slices[name])) for c in cycles for name in SLICES]
    best = [(cycle.number, objective(cycle.best)) for cycle in cycles]
    return line_chart(
        [
            Series("measured, with the swing of the day", measured, "points", colour=6),
            Series("tried, without noise", tried, "points", colour=2),
            Series("the best known, without noise", best, "line", colour=0),
        ],
        title="The objective, cycle by cycle",
        x_label="experiment cycle",
        y_label="objective, cents a search",
        markers=[Marker("y", objective(OPTIMUM), f"the optimum: {objective(OPTIMUM):.3f}")],
    )
