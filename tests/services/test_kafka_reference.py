"""From topics a run gives what the reference gives, over generated applications and events."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from driver_runs.harness import (
    IN_MEMORY,
    assert_same,
    outcome_of,
    record_of,
    reference_outcome,
    wrapped,
)
from engine.workflow_case import Case
from engine.workflow_cases import cases
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from services.topics import Sender, address

from fault_runs.kafka_server import KafkaBrokers
from millstream.driver.in_process import run

pytestmark = pytest.mark.services


@pytest.mark.timeout(600)
@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)
@given(
    cases(),
    st.sampled_from(["one-task", "shuffled"]),
    st.sampled_from([150, 1_000, 1 << 20]),
    st.integers(1, 3),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_the_same_result_as_the_reference(
    kafka: KafkaBrokers,
    case: Case,
    lane: str,
    batch_bytes: int,
    partitions: int,
    aborted: list[bool],
) -> None:
    """From a topic, with aborted transactions between its records, a generated application gives
    what the reference gives, started twice."""
    folder = Path(tempfile.mkdtemp(prefix="millstream-case-", dir=IN_MEMORY))
    try:
        app = wrapped(case.app())
        names = {source.name.removeprefix("raw_") for source in app.checked().sources}
        topics = {name: kafka.new_topic(partitions=partitions) for name in sorted(names)}
        sources = {f"raw_{name}": address(kafka, topic) for name, topic in topics.items()}
        transactions = Sender(kafka, folder.name)
        plain = Sender(kafka)
        half = len(case.events) // 2
        for start, part in enumerate((case.events[:half], case.events[half:])):
            for number, event in enumerate(part):
                topic, partition = topics[event.stream], number % partitions
                plain.send(topic, [record_of(event)], partition)
                if aborted[number % 4] and number < 8:
                    transactions.transaction(topic, [{"ts": 0}], partition, commit=False)
            found = outcome_of(
                run,
                app,
                folder,
                sources=sources,
                final=start == 1,
                shards=case.shards,
                tasks=case.tasks,
                lane=lane,
                batch_bytes=batch_bytes,
                check_store=False,
            )
        assert_same(found, reference_outcome(app, case.events, found.late))
    finally:
        shutil.rmtree(folder)
