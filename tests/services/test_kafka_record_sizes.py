"""The size of a topic's records is known before the first batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from services.topics import Sender, address

from fault_runs.kafka_server import KafkaBrokers
from millstream.driver.inputs.kafka_input import RECORD_BYTES, KafkaInput
from millstream.kafka.record_sizes import SAMPLE
from millstream.kafka.topic import topic_at
from millstream.sources.record_log import RecordLog

pytestmark = pytest.mark.services


def test_a_first_batch_has_the_size_that_is_asked_for(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Large records are not taken for small ones, of whichever partition they are."""
    topic = kafka.new_topic(partitions=3)
    sender = Sender(kafka)
    sender.send(topic, [b"x" * 20_000] * SAMPLE, 0)
    sender.send(topic, [b"x" * 20_000] * SAMPLE, 2)
    reading = opened(kafka, topic, tmp_path)
    assert reading.record_bytes == 20_000
    assert sum(reading.take([], 1_000_000)) == 50
    reading.learn(500.0)
    assert reading.record_bytes == 500
    reading.close()


def test_few_records_are_not_sampled(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """A batch of few records does not wait for a sample of them."""
    topic = kafka.new_topic()
    Sender(kafka).send(topic, [b"x"] * SAMPLE)
    reading = opened(kafka, topic, tmp_path)
    assert reading.record_bytes == RECORD_BYTES
    reading.close()


def test_records_that_are_all_deleted(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Records without a value have no average size."""
    topic = kafka.new_topic()
    Sender(kafka).send(topic, [None] * (SAMPLE + 1), key=b"k")
    reading = opened(kafka, topic, tmp_path)
    assert reading.record_bytes == RECORD_BYTES
    reading.close()


def opened(kafka: KafkaBrokers, topic: str, folder: Path) -> KafkaInput:
    """The topic as the input of a source that has read nothing."""
    where = topic_at(address(kafka, topic))
    assert where is not None
    reading = KafkaInput(where, RecordLog(str(folder / "log"), write=True), wait=True)
    reading.look()
    reading.learn(0)
    return reading
