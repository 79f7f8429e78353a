"""Spark gives what the reference gives: generated applications, batches, shards and lanes.

The same comparison without Spark, with more cases, is in driver_runs/test_generated_runs.py. The
default run has cases of up to 40 batches: one of hundreds of batches takes Spark as long as all
others together, and is a cycle that goes round again and again.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from case_counter import count_case
from driver_runs.harness import compare
from engine.workflow_case import Case
from engine.workflow_cases import cases
from generated_cases import PROFILE, examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from millstream import App
from millstream.driver import in_process
from millstream.driver.report import RunSummary
from millstream.settings.settings import Settings
from millstream.spark.runner import run

pytestmark = pytest.mark.spark
on_spark = settings(
    max_examples=examples(14),
    # A case is a whole application and a dozen Spark jobs, not a slow strategy.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    deadline=None,
)
lanes = st.sampled_from(["one-task", "shuffled"])
sizes = st.sampled_from([150, 1 << 20])


def check(spark: Any, case: Case, lane: str, batch_bytes: int, logs: bool) -> None:
    if PROFILE == "ci":
        assume(batches_of(case, logs=logs, lane=lane, batch_bytes=batch_bytes) <= 40)
    compare(partial(run, context=spark), case, logs=logs, lane=lane, batch_bytes=batch_bytes)
    count_case("Spark against reference")


def batches_of(case: Case, **how: Any) -> int:
    """Returns the number of batches of the case, from a run without Spark."""
    runs: list[RunSummary] = []

    def run_here(app: App, settings: Settings) -> RunSummary:
        runs.append(in_process.run(app, settings))
        return runs[-1]

    compare(run_here, case, **how)
    return sum(run.batches for run in runs)


@on_spark
@given(cases(), lanes, sizes, st.booleans())
def test_acyclic(spark: Any, case: Case, lane: str, batch_bytes: int, logs: bool) -> None:
    """In event-time order an acyclic workflow gives byte for byte the reference's result over the
    input less what was late, however it is cut into batches, shards and tasks, in both lanes, from
    files and from event logs."""
    check(spark, case, lane, batch_bytes, logs)


@on_spark
@given(cases(cyclic=True, delays="feedback"), lanes, sizes, st.booleans())
def test_cycles_with_delay(spark: Any, case: Case, lane: str, batch_bytes: int, logs: bool) -> None:
    """A cycle whose feedback streams have a delay is exact too."""
    check(spark, case, lane, batch_bytes, logs)
