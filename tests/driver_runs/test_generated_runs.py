"""The driver without Spark gives what the reference gives, over generated applications and events.

The engine alone is compared in tests/engine, Spark in tests/spark. Here the driver itself is: its
plans, commits, sinks and restarts, over files and event logs, with either way to flush.
"""

from __future__ import annotations

from case_counter import count_case
from driver_runs.harness import compare
from engine.workflow_case import Case
from engine.workflow_cases import cases
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.driver.in_process import run

HOUR = 3_600_000_000
in_process = settings(
    max_examples=examples(100),
    # A case is a whole application with a store on disk; now and then one outgrows the buffer.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)
lanes = st.sampled_from(["one-task", "shuffled"])
sizes = st.sampled_from([150, 1_000, 1 << 20])
flushes = st.sampled_from([None, 1, HOUR])
"""Every batch by itself, an interval that has always passed, and only at the end."""


def check(
    case: Case, lane: str, batch_bytes: int, flush: int | None, logs: bool, starts: int = 1
) -> None:
    given = {"lane": lane, "batch_bytes": batch_bytes, "flush": flush}
    # To check the rows of a store, a start needs another process, which takes longer than a case.
    compare(run, case, logs=logs, starts=starts, check_store=False, **given)
    count_case("driver against reference")


@in_process
@given(cases(), lanes, sizes, flushes, st.booleans())
def test_acyclic_runs(
    case: Case, lane: str, batch_bytes: int, flush: int | None, logs: bool
) -> None:
    """In event-time order an acyclic workflow gives byte for byte the reference's result over the
    input less what was late, however it is cut into batches, shards and tasks, in both lanes, with
    either way to flush, from files and from event logs."""
    check(case, lane, batch_bytes, flush, logs)


@in_process
@given(cases(cyclic=True, delays="feedback"), lanes, sizes, flushes, st.booleans())
def test_runs_with_cycles_and_delay(
    case: Case, lane: str, batch_bytes: int, flush: int | None, logs: bool
) -> None:
    """A cycle whose feedback streams have a delay is exact too."""
    check(case, lane, batch_bytes, flush, logs)


@in_process
@given(cases(), lanes, sizes, flushes, st.booleans(), st.integers(2, 4))
def test_runs_that_are_started_again(
    case: Case, lane: str, batch_bytes: int, flush: int | None, logs: bool, starts: int
) -> None:
    """The input may come in parts, each taken by a run of its own: the result is the same."""
    check(case, lane, batch_bytes, flush, logs, starts)
