"""Estimates the size of a topic's records from a few of them, before any was read in a batch."""

from __future__ import annotations

import time
from collections.abc import Mapping

from millstream.kafka.client import library
from millstream.kafka.limited_calls import close_in_time
from millstream.kafka.offset_ranges import topic_consumer
from millstream.kafka.topic import SourceTopic

SAMPLE = 100
"""The number of records that are read."""
PATIENCE = 1.0
"""Seconds that the brokers have for them."""


def sampled_bytes(topic: SourceTopic, positions: Mapping[int, int]) -> float:
    """Returns the average size of some values after a position of each partition.

    Returns 0 if none came in time, or if all of them are deletions.
    """
    kafka = library()
    consumer = topic_consumer(kafka, topic)
    sizes: list[int] = []
    try:
        consumer.assign([kafka.TopicPartition(topic.name, *place) for place in positions.items()])
        deadline = time.monotonic() + PATIENCE
        while len(sizes) < SAMPLE and (left := deadline - time.monotonic()) > 0:
            for message in consumer.consume(SAMPLE - len(sizes), left):
                if message.error() is None:
                    sizes.append(len(message.value() or b""))
    except kafka.KafkaException:
        pass  # the tasks of the batch report what is wrong
    finally:
        close_in_time(consumer)
    return sum(sizes) / len(sizes) if sizes else 0.0
