"""Reads the committed records of a topic, as a consumer sees them."""

from __future__ import annotations

from typing import NamedTuple

from fault_runs.kafka_server import KafkaBrokers

PATIENCE = 60.0


class Seen(NamedTuple):
    """A record as a consumer sees it."""

    partition: int
    key: bytes | None
    value: bytes | None
    time: int
    """Milliseconds."""
    headers: dict[str, bytes]


def committed_records(brokers: KafkaBrokers, topic: str) -> list[Seen]:
    """All committed records of the topic now, partition by partition, in order."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": brokers.servers,
            "group.id": f"reader-of-{topic}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    seen: list[Seen] = []
    try:
        known = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        for partition in sorted(known):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                message = consumer.poll(PATIENCE)
                assert message is not None, f"{topic}: no end of partition {partition} in time"
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        break
                    assert error.retriable(), error
                    continue
                given = dict(message.headers() or ())
                headers = {name: value for name, value in given.items() if type(value) is bytes}
                time = message.timestamp()[1]
                seen.append(Seen(partition, message.key(), message.value(), time, headers))
    finally:
        consumer.close()
    return seen
