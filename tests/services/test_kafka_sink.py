"""A topic as a sink, against a real broker: each batch is there once, whoever publishes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fault_runs.committed_records import Seen, committed_records
from fault_runs.kafka_server import KafkaBrokers, kafka_brokers
from millstream.errors import SinkError
from millstream.kafka.batch_producer import BatchProducer, TopicRecord
from millstream.kafka.sink_topic import SinkTopic, sink_topic
from millstream.sinks.columns import (
    CHANGE_COLUMNS,
    DEADLETTER_COLUMNS,
    ENTRY_CHANGE_COLUMNS,
    EVENT_COLUMNS,
    Columns,
)
from millstream.sinks.kafka_sink import KafkaSink
from millstream.slate_changes import SlateChanges

pytestmark = pytest.mark.services
STORE = "5f0c"


def topic_of(brokers: KafkaBrokers, name: str, **options: str) -> SinkTopic:
    return sink_topic(name, [("servers", brokers.servers), *options.items()])


def producer(brokers: KafkaBrokers, name: str, owner: str = STORE, **options: str) -> BatchProducer:
    return BatchProducer(topic_of(brokers, name, **options), owner, "out")


def sink(
    brokers: KafkaBrokers, name: str, columns: Columns = EVENT_COLUMNS, **options: str
) -> KafkaSink:
    return KafkaSink(topic_of(brokers, name, **options), STORE, "out", columns)


def batch(number: int) -> list[TopicRecord]:
    return [TopicRecord(b"k%d" % n, b"%d" % number, 1_000 * n) for n in range(3)]


def values(seen: list[Seen]) -> list[bytes | None]:
    return [one.value for one in seen]


def test_a_batch_that_is_there_is_not_sent_again(kafka: KafkaBrokers) -> None:
    """After any end, a new producer knows the last batch of the topic, and repeats change
    nothing."""
    topic = kafka.new_topic()
    for number in (0, 3):
        first = producer(kafka, topic)
        first.send(number, batch(number))
        first.close()
        second = producer(kafka, topic)
        assert second.last_batch() == number
        second.send(number, batch(number))
        second.close()
    assert values(committed_records(kafka, topic)) == [b"0"] * 3 + [b"3"] * 3


def test_what_was_not_committed_is_not_there(kafka: KafkaBrokers) -> None:
    """A producer that ends in the middle of a batch leaves nothing of it: readers of committed
    records see the batch once, from the one that comes after."""
    topic = kafka.new_topic()
    failing = producer(kafka, topic)

    def cut_off() -> Iterator[TopicRecord]:
        yield from batch(0)
        raise RuntimeError("cut off")

    with pytest.raises(RuntimeError):
        failing.send(0, cut_off())
    after = producer(kafka, topic)
    after.send(0, batch(0))
    after.close()
    assert values(committed_records(kafka, topic)) == [b"0"] * 3


def test_a_zombie_is_fenced_and_does_no_harm(kafka: KafkaBrokers) -> None:
    """Once another producer has published for the store, the open transaction of the old one is
    refused. When the old one retries, it finds the batch there. The other one continues."""
    topic = kafka.new_topic()
    old, new = producer(kafka, topic), producer(kafka, topic)

    def overtaken() -> Iterator[TopicRecord]:
        yield from batch(0)
        new.send(0, batch(0))

    with pytest.raises(SinkError, match=f"kafka:{topic}: batch 0 cannot be written"):
        old.send(0, overtaken())
    old.send(0, batch(0))  # it opens again, and fences the new one
    with pytest.raises(SinkError):
        new.send(1, batch(1))
    new.send(1, batch(1))
    with pytest.raises(SinkError):
        old.send(1, batch(1))
    old.send(1, batch(1))
    assert values(committed_records(kafka, topic)) == [b"0"] * 3 + [b"1"] * 3
    old.close()
    new.close()


def test_a_dead_coordinator_does_not_stop_the_sink(tmp_path: Path) -> None:
    """The broker that keeps the number of the last batch dies, and stays dead. The client library
    would wait for it without an end; the sink fails in time, and its retry uses another broker."""
    from confluent_kafka.admin import AdminClient

    with kafka_brokers(tmp_path / "brokers", 3) as brokers:
        topic, group = brokers.new_topic(partitions=3), f"millstream-{STORE}-out"
        one = BatchProducer(topic_of(brokers, topic), STORE, "out", seconds=8.0)
        one.send(0, batch(0))
        admin = AdminClient({"bootstrap.servers": brokers.servers})
        about = admin.describe_consumer_groups([group])[group].result(30)
        brokers.kill(about.coordinator.id)
        failures: list[str] = []

        def publish() -> None:
            while True:
                try:
                    one.send(1, batch(1))
                    return
                except SinkError as error:
                    failures.append(str(error))

        publishing = Thread(target=publish, daemon=True)  # a failing test must end too
        publishing.start()
        publishing.join(60.0)
        assert not publishing.is_alive(), failures
        one.close()
        seen = Counter(values(committed_records(brokers, topic)))
        assert seen == {b"0": 3, b"1": 3}


def test_the_last_batch_is_found_without_the_groups_offset(kafka: KafkaBrokers) -> None:
    """Brokers forget a group's offset in time; then the records' headers tell, also among those of
    another store in the same topic."""
    from confluent_kafka.admin import AdminClient

    topic = kafka.new_topic(partitions=2)
    for owner, number in ((STORE, 4), ("other", 9)):
        one = producer(kafka, topic, owner=owner)
        one.send(number, batch(number))
        one.close()
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    group = f"millstream-{STORE}-out"
    admin.delete_consumer_groups([group])[group].result()
    again = producer(kafka, topic)
    assert again.last_batch() == 4
    again.close()


def test_another_output_in_the_topic_is_not_taken_for_ours(kafka: KafkaBrokers) -> None:
    """Two outputs of a store may go to one topic: the first batch of one is published, though the
    other's records of that batch are there already."""
    topic = kafka.new_topic()
    for output in ("other", "out"):
        one = BatchProducer(topic_of(kafka, topic), STORE, output)
        one.send(5, batch(5))
        one.close()
    assert values(committed_records(kafka, topic)) == [b"5"] * 6


def test_a_large_batch_is_one_transaction(kafka: KafkaBrokers) -> None:
    """More records than the client's queue holds at once are committed together, in order by key,
    each key in the partition where Java's clients put it."""
    topic, count = kafka.new_topic(partitions=3), 20_000
    one = producer(kafka, topic, **{"client.queue.buffering.max.messages": "1000"})
    one.send(0, (TopicRecord(b"k%d" % (n % 7), b"%d" % n, n) for n in range(count)))
    one.close()
    seen = committed_records(kafka, topic)
    assert len(seen) == count
    partitions: dict[bytes | None, set[int]] = {}
    last: dict[bytes | None, int] = {}
    for record in seen:
        assert record.value is not None
        assert int(record.value) > last.get(record.key, -1)
        last[record.key] = int(record.value)
        partitions.setdefault(record.key, set()).add(record.partition)
    assert partitions == {b"k%d" % n: {murmur2(b"k%d" % n) % 3} for n in range(7)}


def test_at_least_once_repeats_the_last_batch(kafka: KafkaBrokers) -> None:
    """Without transactions a batch is there once its call returns, and another producer does not
    know it."""
    topic = kafka.new_topic()
    for _ in range(2):
        one = producer(kafka, topic, delivery="at-least-once")
        one.send(0, batch(0))
        one.send(0, batch(0))
        one.close()
    assert values(committed_records(kafka, topic)) == [b"0"] * 6


def test_events_and_other_rows(kafka: KafkaBrokers) -> None:
    """An event is its value under its key; null has no value, bytes are as they are. Any other row
    is JSON. The time of the event is a header, and the record's own time if that is asked for."""
    topic = kafka.new_topic(config={"retention.ms": "-1"})
    events = [({"b": 1, "a": [2]}, b'{"a":[2],"b":1}'), (None, None), (b"\x00\xff", b"\x00\xff")]
    rows: list[dict[str, Any]] = [
        {"ts": 1_000_001 + n, "key": "é", "value": value} for n, (value, _) in enumerate(events)
    ]
    one = sink(kafka, topic, time="event")
    one.publish(0, rows)
    one.publish(1, [])
    one.close()
    letter = dict.fromkeys([column.name for column in DEADLETTER_COLUMNS], None)
    other = sink(kafka, topic, DEADLETTER_COLUMNS)
    other.publish(2, [{**letter, "key": "k", "ts": 5, "error": "why"}])
    other.close()
    seen = committed_records(kafka, topic)
    assert [(one.key, one.value) for one in seen[:3]] == [
        ("é".encode(), told) for _, told in events
    ]
    assert [one.time for one in seen[:3]] == [1_000] * 3
    assert seen[1].headers == {"batch": f"{STORE}:0:out".encode(), "ts": b"1000002"}
    assert seen[3].value is not None
    assert b'"error":"why"' in seen[3].value
    assert seen[3].time > 1_700_000_000_000


def test_changes_of_slates_are_keyed_for_compaction(kafka: KafkaBrokers) -> None:
    """A change is the slate under its key, and no value once it is gone; an entry's key names both
    the table's key and the entry."""
    for columns, entry, key in (
        (CHANGE_COLUMNS, "", b"ann"),
        (ENTRY_CHANGE_COLUMNS, "e", b'["ann","e"]'),
    ):
        topic = kafka.new_topic(config={"cleanup.policy": "compact"})
        changes = SlateChanges()
        changes.add("ann", entry, b'{"n":1}', 5, batch=0)
        changes.add("ann", entry, None, 6, batch=1)
        one = sink(kafka, topic, columns)
        one.publish_changes(1, changes)
        one.publish_changes(1, changes)
        one.close()
        seen = committed_records(kafka, topic)
        assert [(record.key, record.value) for record in seen] == [(key, b'{"n":1}'), (key, None)]


def test_a_topic_that_is_missing_is_said(kafka: KafkaBrokers) -> None:
    """At once, not with the first batch."""
    with pytest.raises(SinkError, match=r"kafka:nowhere: .*make the topic first"):
        sink(kafka, "nowhere")


def murmur2(key: bytes) -> int:
    """The hash by which Java's clients spread keys, as its documentation has it."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(key)
    whole = len(key) - len(key) % 4
    for start in range(0, whole, 4):
        k = int.from_bytes(key[start : start + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    rest = key[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF
