r"""Tune the parameters of a running system by experiments on its users (S4, section V).

The application reads what the target system tells of two slices of its users (`events`), measures
the objective in each, compares the two, decides which parameters to try next, and puts them out
(`parameters`). The target system reads them there: the loop is closed.

    millstream run examples/optimise.py
    python -m examples.optimise_target          # in another terminal: the made-up target system

Without Spark, in memory, until it has found the best parameters:

    python -m examples.optimise [--seed 1] [--plot FILE.svg]
    python -m examples.optimise --seeds 20
"""

import sys
from pathlib import Path

# A folder of scripts: beside `millstream run` its modules are found from the checkout.
sys.path.append(str(Path(__file__).resolve().parent.parent))

import millstream as ms
from examples.optimising.elements import ComparatorPE, MeasurementPE, OptimizerPE
from examples.optimising.target import PARAMETERS, SLICES, WEIGHTS

COMPARISON = ":".join(SLICES)

app = ms.App("optimise", order="event-time")
app.source("events", key="slice", ts="time", unit="us", lateness="1m")
app.source("starts", key="comparison", ts="time", unit="us", idle="1s")
app.add(
    MeasurementPE(WEIGHTS, "searches", [COMPARISON], least=1_000),
    keys={"events": "slice"},
    publishes="measurements",
    every="30m",
)
app.add(
    ComparatorPE(least=4, most=16, level=0.05),
    keys={"measurements": "comparison"},
    publishes="verdicts",
)
app.add(
    OptimizerPE(PARAMETERS, small=0.2, rounds=2),
    keys={"verdicts": "comparison", "starts": "comparison"},
    publish="parameters",
)


if __name__ == "__main__":
    from examples.optimising.simulate import main

    main(app)
