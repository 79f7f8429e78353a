"""How the driver follows the end of a topic."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from services.topics import Sender, address

from fault_runs.kafka_server import KafkaBrokers
from millstream.driver.inputs.kafka_input import KafkaInput
from millstream.kafka.topic import topic_at
from millstream.kafka.topic_watch import TopicEnds, TopicWatch
from millstream.sources.record_log import RecordLog

pytestmark = pytest.mark.services


def test_a_reader_that_is_behind_does_not_ask_for_more(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """As long as known records are not taken, the brokers are asked for the ends less often."""
    topic = kafka.new_topic()
    sender = Sender(kafka)
    sender.send(topic, ["a", "b", "c"])
    where = topic_at(address(kafka, topic))
    assert where is not None
    reading = KafkaInput(where, RecordLog(str(tmp_path / "log"), write=True), wait=True)
    reading.look()
    assert reading.take([], 1) == [1]
    assert reading._watch.is_behind
    assert reading.take([1]) == [3]
    assert not reading._watch.is_behind
    reading.close()
    watch = TopicWatch(where, busy_seconds=0.001, behind_seconds=3_600.0)
    watch.is_behind = True
    watch.start()
    assert watch.wait(60)
    sender.send(topic, ["d"])
    other, seen = TopicWatch(where), threading.Event()
    other.changed = seen.set
    other.start()
    assert seen.wait(60)
    assert (other.ends, watch.ends) == (TopicEnds((0,), (4,)), TopicEnds((0,), (3,)))
    asked = threading.Event()
    watch.changed = asked.set
    watch.is_behind = False  # asks at once
    assert asked.wait(60)
    assert watch.ends == other.ends
    watch.is_behind = True
    watch.close()
    other.close()
