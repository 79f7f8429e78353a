"""The two runners: what a suite claims of an application holds on both."""

from __future__ import annotations

from functools import partial

import pytest
from driver_runs.harness import Run

from millstream.driver import in_process


@pytest.fixture(params=["in-process", pytest.param("spark", marks=pytest.mark.spark)])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs an application in this process, and on Spark."""
    if request.param == "in-process":
        return in_process.run
    from millstream.spark import runner

    return partial(runner.run, context=request.getfixturevalue("spark"))
