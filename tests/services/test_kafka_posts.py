"""POST into a source that is a topic: acknowledged by all replicas, and once under a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from client.live_server import LiveServer
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from server.served import until
from services.topics import Sender, address

from fault_runs.kafka_server import KafkaBrokers
from millstream.description import Description, SourceDescription, write_description
from millstream.kafka.topic_producer import NUMBER, REQUEST
from millstream.log.writer import Entry, LogWriter
from millstream.server.streams.stream_routes import digest
from millstream.server.streams.topics import TopicRequest

pytestmark = pytest.mark.services
BODY = b'{"venue": "a"}\n{"venue": "b"}\n'


@pytest.fixture
def topic(kafka: KafkaBrokers) -> str:
    return kafka.new_topic(partitions=2)


@pytest.fixture
def server(kafka: KafkaBrokers, topic: str, tmp_path: Path) -> Iterator[LiveServer]:
    """Its source `checkins`, with the key `venue`, is the topic. Not started yet."""
    with LiveServer(tmp_path / "store") as live:
        source = SourceDescription("checkins", "venue", None, None, True, address(kafka, topic))
        described = Description("retail", "content", [source], [], ["checkins"], [], {"nodes": []})
        write_description(tmp_path / "store", described)
        yield live


def post(server: LiveServer, body: bytes = BODY, key: str = "") -> httpx.Response:
    headers = {"Content-Type": "application/x-ndjson"} | ({"Idempotency-Key": key} if key else {})
    url = f"{server.url}/streams/checkins"
    return httpx.post(url, content=body, headers=headers, timeout=60)


def records(kafka: KafkaBrokers, topic: str) -> list[Message]:
    settings: dict[str, Any] = {"bootstrap.servers": kafka.servers, "group.id": "seen"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(2)])
    found, ended = [], 0
    while ended < 2:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            ended += 1
    consumer.close()
    return found


def venues(kafka: KafkaBrokers, topic: str) -> list[str]:
    return sorted(json.loads(one.value() or b"")["venue"] for one in records(kafka, topic))


def test_what_is_posted_is_in_the_topic(
    server: LiveServer, kafka: KafkaBrokers, topic: str
) -> None:
    """The answer comes after the acknowledgements; a record's key is its event's, and what was
    not taken in yet is the source's lag."""
    server.start()
    answer = post(server)
    assert (answer.status_code, answer.json()["accepted"]) == (200, 2)
    assert sorted(one.key() or b"" for one in records(kafka, topic)) == [b"a", b"b"]
    status = f"{server.url}/status"
    until(lambda: httpx.get(status).json()["sources"][0]["lag_events"] == 2)


def test_a_request_under_a_key_counts_once(
    server: LiveServer, kafka: KafkaBrokers, topic: str
) -> None:
    """A repeat is recognised by the same server and by the next one. Another body is refused."""
    server.start()
    assert post(server, key="one").json()["repeated"] is False
    assert post(server, key="one").json()["repeated"] is True
    assert post(server, b'{"venue": "c"}', key="one").status_code == 422
    server.kill()
    server.start()
    answer = post(server, key="one").json()
    assert (answer["accepted"], answer["repeated"]) == (2, True)
    assert venues(kafka, topic) == ["a", "b"]


def test_a_server_that_died_while_it_sent(
    server: LiveServer, kafka: KafkaBrokers, topic: str
) -> None:
    """If a request was recorded but only some of its records are in the topic, a repeat sends the
    others."""
    begun = msgspec.json.encode(TopicRequest(2, [0, 0]))
    writer = LogWriter(server.log("checkins.requests"))
    writer.append([Entry.of([begun], "one", digest(BODY))])
    writer.close()
    headers = [(REQUEST, b"one"), (NUMBER, b"0")]
    Sender(kafka).send(topic, [{"venue": "a"}], headers=headers)
    server.start()
    answer = post(server, key="one").json()
    assert (answer["accepted"], answer["repeated"]) == (2, False)
    assert venues(kafka, topic) == ["a", "b"]


def test_an_open_transaction_of_another_hides_nothing(
    server: LiveServer, kafka: KafkaBrokers, topic: str
) -> None:
    """Records that came after one are in the topic, though no reader of committed records has them
    yet: a repeat at the next server sends none of them again."""
    other = Producer({"bootstrap.servers": kafka.servers, "transactional.id": topic})
    other.init_transactions(30)
    other.begin_transaction()
    for partition in range(2):
        other.produce(topic, b'{"venue": "z"}', partition=partition)
    other.flush(30)
    server.start()
    assert post(server, key="one").status_code == 200
    server.kill()
    server.start()
    assert post(server, key="one").json()["repeated"] is True
    other.abort_transaction(30)
    assert venues(kafka, topic) == ["a", "b"]


def test_a_topic_that_is_not_there(tmp_path: Path, kafka: KafkaBrokers) -> None:
    """The client is told to try again; nothing was accepted."""
    with LiveServer(tmp_path / "store") as live:
        source = SourceDescription("checkins", None, None, None, True, address(kafka, "nowhere"))
        described = Description("retail", "content", [source], [], ["checkins"], [], {"nodes": []})
        write_description(tmp_path / "store", described)
        live.start()
        assert post(live).status_code == 503
