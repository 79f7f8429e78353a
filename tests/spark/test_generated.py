"""Spark gives what the reference gives: generated applications, batches, shards and lanes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from case_counter import count_case
from engine.workflow_case import Case
from engine.workflow_cases import cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spark.harness import (
    append_records,
    assert_same,
    reference_outcome,
    run_on_spark,
    wrapped,
    write_records,
)

pytestmark = pytest.mark.spark
EXAMPLES = 26
on_spark = settings(
    max_examples=EXAMPLES,
    # A case takes a second or two, which is a Spark query and not a slow strategy.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    deadline=None,
)
lanes = st.sampled_from(["one-task", "shuffled"])


def compare(spark: Any, case: Case, lane: str, batch_bytes: int, logs: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="millstream-case-"))
    try:
        app = wrapped(case.app())
        if logs:
            append_records(folder / "store", case.events, blocks=5)
        else:
            write_records(folder / "in", case.events, files=3)
        found = run_on_spark(
            spark,
            app,
            folder,
            shards=case.shards,
            tasks=case.tasks,
            lane=lane,
            batch_bytes=batch_bytes,
            logs=logs,
        )
        assert_same(found, reference_outcome(app, case.events, found.late))
        count_case("Spark against reference")
    finally:
        shutil.rmtree(folder)


@on_spark
@given(cases(), lanes, st.sampled_from([150, 1 << 20]), st.booleans())
def test_acyclic(spark: Any, case: Case, lane: str, batch_bytes: int, logs: bool) -> None:
    """In event-time order an acyclic workflow gives byte for byte the reference's result over the
    input less what was late, however it is cut into batches, shards and tasks, in both lanes, from
    files and from event logs."""
    compare(spark, case, lane, batch_bytes, logs)


@on_spark
@given(cases(cyclic=True, delays="feedback"), st.sampled_from([150, 1 << 20]), st.booleans())
def test_cycles_with_delay(spark: Any, case: Case, batch_bytes: int, logs: bool) -> None:
    """A cycle whose feedback streams have a delay is exact too."""
    compare(spark, case, "one-task", batch_bytes, logs)
