"""The brokers that tests use: topics, records, a broker that is killed and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from fault_runs.kafka_server import KafkaBrokers, kafka_brokers

pytestmark = pytest.mark.services


def produce(brokers: KafkaBrokers, topic: str, values: list[bytes]) -> None:
    """Sends records; returns once all are acknowledged."""
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": brokers.servers, "acks": "all"})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    assert failures == [None] * len(values)


def values_of(brokers: KafkaBrokers, topic: str, expected: int) -> list[bytes]:
    """The first so many values of partition 0."""
    consumer = Consumer({"bootstrap.servers": brokers.servers, "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while len(values) < expected:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        value = message.value()
        assert value is not None
        values.append(value)
    consumer.close()
    return values


def test_one_broker_keeps_what_is_sent(kafka: KafkaBrokers) -> None:
    """A topic takes records and gives them back in order."""
    topic = kafka.new_topic()
    produce(kafka, topic, [b"a", b"b"])
    assert values_of(kafka, topic, 2) == [b"a", b"b"]


def test_partitions_can_be_added(kafka: KafkaBrokers) -> None:
    """A topic that is made larger has leaders for all of its partitions."""
    topic = kafka.new_topic(partitions=2)
    kafka.add_partitions(topic, 3)
    kafka.await_partitions(topic, 3)


def test_a_killed_broker_loses_nothing(tmp_path: Path) -> None:
    """With three brokers, what was acknowledged is read after any of them was killed."""
    with kafka_brokers(tmp_path / "brokers", 3) as brokers:
        topic = brokers.new_topic()
        produce(brokers, topic, [b"a"])
        brokers.kill(1)
        produce(brokers, topic, [b"b"])
        brokers.restart(1)
        assert sorted(brokers.processes) == [1, 2, 3]
        produce(brokers, topic, [b"c"])
        assert values_of(brokers, topic, 3) == [b"a", b"b", b"c"]
