"""Sends records to a topic for the server, and waits until all replicas have them.

The producer is idempotent: a record that it sends again, because an answer was lost, is in the
topic once, unless brokers that were killed have lost its sequence numbers: then librdkafka starts
anew, and may send a batch twice. Records of a request with an idempotency key have the key and
their number in headers. So `found_records` can find out after a crash which of them are in the
topic.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from millstream.errors import InputError, LogError
from millstream.kafka.client import AWAY_SECONDS, client_settings, library, made_client
from millstream.kafka.limited_calls import close_in_time
from millstream.kafka.offset_ranges import OffsetRange, fetched
from millstream.kafka.topic import SourceTopic

REQUEST, NUMBER = "millstream-request", "millstream-record"
"""Headers: a request's idempotency key, and the record's number in the request."""
DELIVERY_SECONDS = 30.0
_SETTINGS = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 1,
    "partitioner": "murmur2_random",  # as Java's clients: equal keys are in the same partition
    "delivery.timeout.ms": int(1_000 * DELIVERY_SECONDS),
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 256 << 10,
}


class ProducerFull(LogError):
    """Too many records wait to be sent; the client should retry."""


class NewRecord(NamedTuple):
    """A record to send."""

    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]


class TopicProducer:
    """The producer of a topic, one in a process. `send` may be called from any thread."""

    def __init__(self, topic: SourceTopic) -> None:
        self._topic = topic
        self._kafka = library()
        settings = {**client_settings(topic.options, topic.where), **_SETTINGS}
        self._producer = made_client(self._kafka.Producer, settings, topic.where)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="producer", daemon=True)
        self._thread.start()

    def send(self, records: Sequence[NewRecord]) -> Future[int]:
        """Sends records. The future's result is their number, once all are acknowledged.

        The future fails with LogError if some were not acknowledged: these may be in the topic or
        not. Raises ProducerFull, and sends none, if too many records wait.
        """
        answer = _Acknowledgements(len(records), self._topic)
        if len(self._producer) + len(records) > _SETTINGS["queue.buffering.max.messages"]:  # type: ignore[operator]
            raise ProducerFull(f"{self._topic.where}: too many records wait to be sent")
        for number, record in enumerate(records):
            try:
                self._producer.produce(
                    self._topic.name,
                    record.value,
                    record.key,
                    headers=record.headers,
                    on_delivery=answer.delivered,
                )
            except BufferError:
                if number == 0:
                    raise ProducerFull(
                        f"{self._topic.where}: too many bytes wait to be sent"
                    ) from None
                answer.give_up(len(records) - number, "too many bytes wait to be sent")
                break
            except self._kafka.KafkaException as error:
                answer.give_up(len(records) - number, error.args[0].str())
                break
        return answer.future

    def close(self) -> None:
        """Send the waiting records, for some seconds at most."""
        self._producer.flush(AWAY_SECONDS)
        self._stop.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(0.1)


class _Acknowledgements:
    """Counts the acknowledgements of a request."""

    def __init__(self, count: int, topic: SourceTopic) -> None:
        self.future: Future[int] = Future()
        self._count = self._left = count
        self._topic = topic
        self._error = ""
        self._lock = threading.Lock()

    def delivered(self, error: Any, message: Any) -> None:
        self.give_up(1, "" if error is None else error.str())

    def give_up(self, count: int, error: str) -> None:
        with self._lock:
            self._left -= count
            self._error = self._error or error
            if self._left > 0 or self.future.done():
                return
        if self._error:
            self.future.set_exception(
                LogError(f"{self._topic.where}: the brokers did not accept it: {self._error}")
            )
        else:
            self.future.set_result(self._count)


def found_records(topic: SourceTopic, tag: str, begin: Sequence[int]) -> set[int]:
    """The numbers of a request's records in the topic, searched from the offsets `begin` on."""
    kafka = library()
    settings = client_settings(topic.options, topic.where)
    # Open transactions of others must not hide records that came after them.
    own = {"group.id": "millstream", "isolation.level": "read_uncommitted"}
    consumer = kafka.Consumer({**settings, **own})
    try:
        known = consumer.list_topics(topic.name, timeout=AWAY_SECONDS).topics[topic.name]
        ranges = []
        for number in known.partitions:
            place = kafka.TopicPartition(topic.name, number)
            low, high = consumer.get_watermark_offsets(place, timeout=AWAY_SECONDS)
            first = begin[number] if number < len(begin) else 0
            ranges.append(OffsetRange(number, max(low, first), high))
    except kafka.KafkaException as error:
        raise LogError(f"{topic.where}: the brokers do not answer ({error})") from None
    finally:
        close_in_time(consumer)
    wanted, numbers = tag.encode(), set()
    try:
        for _, messages, _ in fetched(topic, ranges, committed=False):
            for message in messages:
                headers = dict(message.headers() or ())
                if headers.get(REQUEST) == wanted:
                    numbers.add(int(headers[NUMBER]))
    except InputError as error:
        raise LogError(str(error)) from None
    return numbers
