"""A topic as the source of a run: each record once, whatever is in the topic and happens to it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from services.topics import Sender, address

import millstream as ms
from fault_runs.kafka_server import KafkaBrokers, kafka_brokers
from millstream.driver.in_process import run
from millstream.errors import InputError, MillstreamError, StoreError
from millstream.letters.retry_log import retry_letters
from millstream.letters.selection import LetterFilter
from millstream.log.stream_logs import FolderLogs
from millstream.settings.settings import Settings
from millstream.stores.reader import SlateReader
from millstream.stores.soft import read_committed

pytestmark = pytest.mark.services


def counting(**source: Any) -> ms.App:
    app = ms.App("counting")
    app.source("words", **{"key": "word", **source})

    @app.update("words")
    def count(event: Any, slate: Any) -> None:
        slate["count"] = slate.get("count", 0) + 1
        slate["last"] = event.value if not isinstance(event.value, bytes) else event.value.hex()
        slate["ts"] = event.ts

    return app


def given_settings(folder: Path, words: str, **more: Any) -> Settings:
    given = {"available_now": True, "shards": 2, **more}
    return Settings.of("counting", folder / "store", {"words": words}, {}, **given)


def counts(folder: Path) -> dict[str, int]:
    return {key: slate["count"] for key, slate in slates(folder).items()}


def slates(folder: Path) -> dict[str, Any]:
    with SlateReader(folder / "store") as reader:
        return {slate.key: slate.value for slate in reader.scan("count")}


def words(*texts: str) -> list[dict[str, str]]:
    return [{"word": text} for text in texts]


def test_each_record_counts_once(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """A run reads all partitions, and the next one continues behind it, also with small batches."""
    topic = kafka.new_topic(partitions=3)
    sender = Sender(kafka)
    for partition in range(3):
        sender.send(topic, words("a", "b", "a"), partition)
    run(counting(), given_settings(tmp_path, address(kafka, topic), batch_bytes=100))
    assert counts(tmp_path) == {"a": 6, "b": 3}
    sender.send(topic, words("b"), 1)
    run(counting(), given_settings(tmp_path, address(kafka, topic)))
    assert counts(tmp_path) == {"a": 6, "b": 4}
    assert read_committed(tmp_path / "store").sources["words"].position == [3, 4, 3]


def test_partitions_of_unequal_length(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """A partition that was read to its end while another went on is read on in the next batch."""
    topic = kafka.new_topic(partitions=2)
    sender = Sender(kafka)
    for _ in range(3):
        sender.send(topic, words("a"), 0)
        sender.send(topic, words(*["b"] * 5_000), 1)
        run(counting(), given_settings(tmp_path, address(kafka, topic)))
    assert counts(tmp_path) == {"a": 3, "b": 15_000}


def test_partitions_that_are_added(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """New partitions are read from their beginning, and the position becomes longer."""
    topic = kafka.new_topic(partitions=1)
    sender = Sender(kafka)
    sender.send(topic, words("a"))
    run(counting(), given_settings(tmp_path, address(kafka, topic)))
    kafka.add_partitions(topic, 3)
    sender = Sender(kafka)
    sender.send(topic, words("a", "b"), 2)
    run(counting(), given_settings(tmp_path, address(kafka, topic)))
    assert counts(tmp_path) == {"a": 2, "b": 1}
    assert read_committed(tmp_path / "store").sources["words"].position == [1, 0, 2]


def test_transactions(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Records of aborted transactions are not read, and ranges that end in them or in the marks of
    transactions end all the same."""
    topic = kafka.new_topic()
    sender = Sender(kafka, "transactions")
    sender.transaction(topic, words("a"), 0, commit=True)
    sender.transaction(topic, words("x", "x"), 0, commit=False)
    run(counting(), given_settings(tmp_path, address(kafka, topic)))
    assert counts(tmp_path) == {"a": 1}
    sender.transaction(topic, words("x", "x"), 0, commit=False)
    run(counting(), given_settings(tmp_path, address(kafka, topic)))
    sender.transaction(topic, words("b"), 0, commit=True)
    run(counting(), given_settings(tmp_path, address(kafka, topic), batch_bytes=1))
    assert counts(tmp_path) == {"a": 1, "b": 1}


def test_an_open_transaction_holds_back_what_follows(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Records after the transaction are read once it has ended."""
    topic = kafka.new_topic()
    sender = Sender(kafka, "open")
    sender.producer.begin_transaction()
    sender.send(topic, words("a"))
    Sender(kafka).send(topic, words("b"))
    run(counting(), given_settings(tmp_path, address(kafka, topic)))
    assert counts(tmp_path) == {}
    sender.producer.commit_transaction()
    run(counting(), given_settings(tmp_path, address(kafka, topic)))
    assert counts(tmp_path) == {"a": 1, "b": 1}


def test_a_compacted_topic(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Offsets without records are passed over, and what is left is counted once; a deleted key's
    record has the value None."""
    quick = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
    topic = kafka.new_topic(config={"cleanup.policy": "compact", **quick})
    sender = Sender(kafka)
    sender.send(topic, words("a", "a", "a"), key=b"a")
    sender.send(topic, [None], key=b"b")
    for number in range(200):  # a new segment makes the ones before it ready to be cleaned
        sender.send(topic, words("c"), key=str(number).encode())
        if compacted(kafka, topic):
            break
        time.sleep(0.1)
    found = offsets(kafka, topic)
    assert found != list(range(found[-1] + 1)), "the topic was not compacted"
    source = address(kafka, topic, key="record")
    run(counting(key=None), given_settings(tmp_path, source, batch_bytes=600))
    assert counts(tmp_path)["a"] == 1
    assert sum(counts(tmp_path).values()) == len(found)


def compacted(kafka: KafkaBrokers, topic: str) -> bool:
    return offsets(kafka, topic)[0] > 0


def offsets(kafka: KafkaBrokers, topic: str) -> list[int]:
    """Returns the offsets of all records in partition 0."""
    settings: dict[str, Any] = {"bootstrap.servers": kafka.servers, "group.id": "offsets"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        found.append(message.offset() or 0)
    consumer.close()
    return found


def removed_before(kafka: KafkaBrokers, topic: str, offset: int) -> None:
    """Have the brokers remove records as retention does."""
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result()


def test_removed_records(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """If retention removed records before they were read, the run fails with advice, or continues
    and counts them."""
    topic = kafka.new_topic()
    sender = Sender(kafka)
    sender.send(topic, words("a", "a"))
    run(counting(), given_settings(tmp_path, address(kafka, topic)))
    sender.send(topic, words("x", "x", "x", "b"))
    removed_before(kafka, topic, 5)
    with pytest.raises(MillstreamError, match=r"/0: .* offset 2, .*begins at 5.*lost=skip"):
        run(counting(), given_settings(tmp_path, address(kafka, topic)))
    run(counting(), given_settings(tmp_path, address(kafka, topic, lost="skip")))
    assert counts(tmp_path) == {"a": 2, "b": 1}
    assert read_committed(tmp_path / "store").sources["words"].lost == 3


def test_a_topic_that_was_made_again(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Positions beyond the end are refused: they are of another topic."""
    topic = kafka.new_topic()
    Sender(kafka).send(topic, words("a", "a"))
    run(counting(), given_settings(tmp_path, address(kafka, topic)))
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    admin.delete_topics([topic])[topic].result()
    for _ in range(100):
        try:
            kafka.new_topic(topic)
            break
        except Exception:
            time.sleep(0.1)
    with pytest.raises(MillstreamError, match="ends before that"):
        run(counting(), given_settings(tmp_path, address(kafka, topic)))


def test_another_topic_in_the_same_store(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Offsets of one topic mean nothing in another."""
    first, second = kafka.new_topic(), kafka.new_topic()
    run(counting(), given_settings(tmp_path, address(kafka, first)))
    with pytest.raises(StoreError, match=f"has read the topic {first}"):
        run(counting(), given_settings(tmp_path, address(kafka, second)))


def test_a_missing_topic(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """A topic that is not there is an error that names it."""
    with pytest.raises(InputError, match="kafka:nowhere: there is no such topic"):
        run(counting(), given_settings(tmp_path, address(kafka, "nowhere")))


def test_start_at_the_latest(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """`start=latest` passes over what is there at the first start, and only then."""
    topic = kafka.new_topic()
    sender = Sender(kafka)
    sender.send(topic, words("x"))
    given = given_settings(tmp_path, address(kafka, topic, start="latest"))
    run(counting(), given)
    sender.send(topic, words("a"))
    run(counting(), given)
    assert counts(tmp_path) == {"a": 1}


def test_keys_times_and_headers_of_records(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Without fields of its own a source has the record's key and time; headers go into a field."""
    topic = kafka.new_topic(config={"retention.ms": "-1"})  # the record is years old
    Sender(kafka).send(
        topic, [{"n": 1}], key="käy".encode(), timestamp=1_700_000_000_123, headers={"via": b"x"}
    )
    run(counting(key=None), given_settings(tmp_path, address(kafka, topic, headers="head")))
    expected = {"count": 1, "last": {"n": 1, "head": {"via": "x"}}, "ts": 1_700_000_000_123_000}
    assert slates(tmp_path) == {"käy": expected}


def test_text_and_bytes(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Values may be text, by a pattern too, or bytes that are taken as they are."""
    topic = kafka.new_topic()
    Sender(kafka).send(topic, [b"a 1", b"\xff"], key=b"k")
    text = counting(key="name", pattern=r"(?P<name>\w+) (?P<n>\d+)")
    run(text, given_settings(tmp_path / "text", address(kafka, topic, format="text")))
    assert slates(tmp_path / "text")["a"]["last"] == {"name": "a", "n": "1"}
    raw = address(kafka, topic, format="bytes")
    run(counting(key=None), given_settings(tmp_path / "bytes", raw))
    assert slates(tmp_path / "bytes")["k"]["last"] == "ff"


def test_dead_letters_name_the_offset(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """A record that cannot be taken in is a dead letter with its topic, partition and offset."""
    topic = kafka.new_topic(partitions=2, config={"message.timestamp.after.max.ms": str(10**12)})
    bad = [b"{", b"", b'{"no": 1}', b"\xff", b"[[" * 5000]
    Sender(kafka).send(topic, [*words("a"), *bad, *words("b")], 1)
    Sender(kafka).send(topic, words("a"), 1, timestamp=int(time.time() * 1000) + 10**9)
    sinks = {"deadletters": f"json:{tmp_path / 'letters'}"}
    given = {"words": address(kafka, topic)}
    run(counting(), Settings.of("counting", tmp_path / "store", given, sinks, available_now=True))
    assert counts(tmp_path) == {"a": 1, "b": 1}
    letters = [
        json.loads(line)
        for path in (tmp_path / "letters").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    places = sorted((letter["file"], letter["line"]) for letter in letters)
    assert places == [(f"kafka:{topic}/1", number) for number in (1, 2, 3, 4, 5, 7)]


def test_a_retried_record_keeps_its_key_and_headers(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """Once the declaration is mended, a dead letter becomes the event that its record would have
    become; a record whose key is not text cannot be retried."""
    topic = kafka.new_topic()
    source = address(kafka, topic, headers="via")
    sender = Sender(kafka)
    sender.send(topic, [{"at": 9}], key=b"ann", headers={"from": b"web"})
    sender.send(topic, [{"at": 9}], key=b"\xff")
    run(counting(key=None, ts="at"), given_settings(tmp_path, source))
    assert counts(tmp_path) == {}
    answer = retry_letters(FolderLogs(tmp_path / "store" / "logs"), LetterFilter(), {})
    assert answer.given == 1
    assert list(answer.impossible.values()) == [1]
    run(counting(key=None, ts="at", unit="ms"), given_settings(tmp_path, source))
    last = {"at": 9, "via": {"from": "web"}}
    assert slates(tmp_path) == {"ann": {"count": 1, "last": last, "ts": 9_000}}


def test_a_retried_record_keeps_its_time(kafka: KafkaBrokers, tmp_path: Path) -> None:
    """The time of the record is the event's, not that of the retry."""
    topic = kafka.new_topic()
    at = int(time.time() * 1_000) - 3_600_000  # not so old that retention removes it
    Sender(kafka).send(topic, [{"word": 1, "name": "a"}], timestamp=at)
    source = address(kafka, topic)
    run(counting(key="word.text"), given_settings(tmp_path, source))
    assert retry_letters(FolderLogs(tmp_path / "store" / "logs"), LetterFilter(), {}).given == 1
    run(counting(key="name"), given_settings(tmp_path, source))
    assert slates(tmp_path)["a"]["ts"] == at * 1_000


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_a_long_run_sees_records_as_they_come(
    kafka: KafkaBrokers, tmp_path: Path, lane: str
) -> None:
    """A continuous run reads new records, and commits its position to a group."""
    topic = kafka.new_topic(partitions=2)
    stop = threading.Event()
    source = address(kafka, topic, group=f"seen-{topic}")
    given = given_settings(tmp_path, source, available_now=False, lane=lane)
    thread = threading.Thread(target=lambda: run(counting(), given, stop=stop))
    thread.start()
    try:
        sender = Sender(kafka)
        for number in range(3):
            sender.send(topic, words("a"), number % 2)
            until(lambda n=number: counts_or_none(tmp_path) == {"a": n + 1})
        settings: dict[str, Any] = {"bootstrap.servers": kafka.servers}
        group = Consumer({**settings, "group.id": f"seen-{topic}"})
        places = [TopicPartition(topic, number) for number in range(2)]
        until(lambda: [one.offset for one in group.committed(places, 30)] == [2, 1])
        group.close()
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def counts_or_none(folder: Path) -> dict[str, int] | None:
    try:
        return counts(folder)
    except (MillstreamError, OSError):
        return None  # not made yet


def until(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)


def test_brokers_that_are_away(tmp_path: Path) -> None:
    """A run waits for brokers that do not answer, says so once, and continues when they do."""
    said: list[str] = []
    stop = threading.Event()
    with kafka_brokers(tmp_path / "brokers") as brokers:
        topic = brokers.new_topic()
        Sender(brokers).send(topic, words("a"))
        given = given_settings(tmp_path, address(brokers, topic), available_now=False)
        brokers.kill(1)
        thread = threading.Thread(target=lambda: run(counting(), given, stop=stop, say=said.append))
        thread.start()
        try:
            until(lambda: any("do not answer" in sentence for sentence in said))
            brokers.restart(1)
            until(lambda: counts_or_none(tmp_path) == {"a": 1})
            brokers.kill(1)
            brokers.restart(1)
            Sender(brokers).send(topic, words("a"))
            until(lambda: counts_or_none(tmp_path) == {"a": 2})
        finally:
            stop.set()
            thread.join(60)
    assert not thread.is_alive()
    assert any("answer again" in sentence for sentence in said)
