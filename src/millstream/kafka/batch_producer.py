"""Sends batches of records to a topic, each exactly once.

DESIGN
------
A batch is one transaction: its records, and its number, which is kept as the committed offset of a
consumer group of the sink's own (the offset is the number of the next batch; nobody consumes as
that group). The broker commits both or none. Transactions and the group are named after the store
and the output, so that all drivers that publish for them use the same names:

- Opening fences. `init_transactions` aborts the transaction that an earlier driver has left open,
  and blocks that driver. Only then is the group's offset read, so it cannot change any more.
- After any failure the producer is thrown away and opened again. This tells whether the broker has
  committed a transaction whose answer was lost.
- An old driver that is still running and opens again fences the new one, which opens again in turn.
  That costs time, not correctness: each publishes only batches that the topic does not have, and
  both publish the same, since published batches were committed in the store. The old driver ends
  when it learns that it was overtaken.

Brokers forget a group's offset after a time without a commit (a week, usually). So every record
also has its batch and its output as a header. If there is no offset, the ends of the partitions are
searched for that header. (Another output of the store may be published to the same topic.)

*At least once*, for brokers without transactions: all replicas acknowledge a batch; after a crash
the last batch may be sent again.

Records are distributed over partitions by key like in Java's clients (murmur2), so that equal keys
of other producers are in the same partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from millstream.errors import SinkError
from millstream.kafka.client import SaidByConnections, client_settings, library, made_client
from millstream.kafka.sink_topic import EVENT, EXACTLY_ONCE, SinkTopic

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")
SECONDS = 30.0
"""Seconds that a call waits for the brokers before it counts as a failure."""
RETRY_SECONDS = 0.1
SEARCHED = 1_000
"""The number of offsets at the end of each partition that are searched for the last batch."""
BATCH, TS = "batch", "ts"
"""Headers: the store, the batch and the output that a record comes from, with colons between them,
and its time in microseconds. Earlier versions wrote no output."""
NOTHING = -1
"""The last batch of a topic that has none."""


class TopicRecord(NamedTuple):
    """A record to send."""

    key: bytes
    value: bytes | None
    ts: int
    """Microseconds."""


class BatchProducer:
    """Sends batches to one topic, in rising order, each once. The first batch opens it."""

    def __init__(
        self, topic: SinkTopic, owner: str, output: str, *, seconds: float | None = None
    ) -> None:
        """`owner` is the store's id, `output` the name of the output that is sent.

        Raises InputError if the library, or a secret, is missing.
        """
        library()
        self._where = topic.where
        self._topic = topic.name
        self._said = SaidByConnections()
        settings = client_settings(topic.options, topic.where)
        self._settings: dict[str, Any] = {**settings, "error_cb": self._said.note}
        self._asked: AdminClient | Producer | None = None
        """The client whose call may fail."""
        self._owner, self._output = owner, output
        self._name = f"millstream-{owner}-{output}"
        self._exactly_once = topic.delivery == EXACTLY_ONCE
        self._event_time = topic.time == EVENT
        self._seconds = SECONDS if seconds is None else seconds
        self._producer: Producer | None = None
        self._noter: Consumer | None = None
        """A consumer of the group whose offset is the last batch."""
        self._last = NOTHING

    def check(self) -> None:
        """Raises SinkError if the brokers cannot be reached, or have no such topic; InputError if
        the client's settings are wrong."""
        from confluent_kafka.admin import AdminClient

        admin = self._asked = made_client(AdminClient, self._settings, self._where)
        with self._told("the topic cannot be looked up"):
            known = admin.list_topics(self._topic, timeout=self._seconds).topics[self._topic]
        if known.error is not None:
            raise SinkError(f"{self._where}: {known.error.str()}; make the topic first")

    def send(self, batch: int, records: Iterable[TopicRecord]) -> None:
        """Send a batch, unless the topic has it. It is committed when this returns.

        Raises SinkError if it may not be committed; then it may be sent again.
        """
        try:
            with self._told(f"batch {batch} cannot be written"):
                if self._producer is None:
                    self._open()
                if batch > self._last:
                    self._transact(batch, records)
                    self._last = batch
        except BaseException:
            self.close()
            raise

    def last_batch(self) -> int:
        """The last batch that the topic has; NOTHING if it has none, or that is not known."""
        with self._told("the number of the last batch cannot be read"):
            if self._producer is None:
                self._open()
        return self._last

    def close(self) -> None:
        """Close the connections. The next opening aborts a transaction that is still open."""
        producer, self._producer = self._producer, None
        self._asked = None
        noter, self._noter = self._noter, None
        if producer is not None:
            with suppress(Exception):
                producer.purge()
        if noter is not None:
            with suppress(Exception):
                noter.close()

    def _open(self) -> None:
        from confluent_kafka import Consumer, Producer

        settings = {
            "linger.ms": 5,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 262_144,
            **self._settings,
            "partitioner": "murmur2_random",
            "acks": "all",
        }
        if not self._exactly_once:
            # One request at a time: a retry must not change the order of records.
            self._producer = Producer(settings | {"max.in.flight.requests.per.connection": 1})
            return
        # Counts as open only after older drivers are fenced and the last batch is known.
        producer = Producer(
            settings
            | {
                "transactional.id": self._name,
                "transaction.timeout.ms": int(2 * self._seconds * 1_000),
            }
        )
        self._asked = producer
        self._patiently(producer.init_transactions)
        self._noter = Consumer(
            self._settings
            | {
                "group.id": self._name,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        self._last = self._recorded(self._noter)
        self._producer = producer

    def _recorded(self, noter: Consumer) -> int:
        from confluent_kafka import TopicPartition

        place = TopicPartition(self._topic, 0)
        (committed,) = self._patiently(lambda seconds: noter.committed([place], timeout=seconds))
        return committed.offset - 1 if committed.offset >= 0 else self._searched(noter)

    def _searched(self, consumer: Consumer) -> int:
        """Searches the ends of the partitions for the last batch of this sink."""
        from confluent_kafka import TopicPartition

        partitions = consumer.list_topics(self._topic, timeout=self._seconds).topics[self._topic]
        last = NOTHING
        for number in partitions.partitions:
            place = TopicPartition(self._topic, number)
            low, high = consumer.get_watermark_offsets(place, timeout=self._seconds)
            if high > low:
                place.offset = max(low, high - SEARCHED)
                last = max(last, self._searched_partition(consumer, place, high))
        return last

    def _searched_partition(self, consumer: Consumer, place: TopicPartition, high: int) -> int:
        """Searches to the end, however slow the brokers are: a batch that is overlooked would be
        sent again."""
        from confluent_kafka import KafkaError, KafkaException

        consumer.assign([place])
        last = NOTHING
        until = monotonic() + self._seconds
        try:
            while monotonic() < until:
                message = consumer.poll(RETRY_SECONDS)
                if message is None or message.partition() != place.partition:
                    continue
                error = message.error()
                if error is None:
                    source = dict(message.headers() or ()).get(BATCH)
                    if isinstance(source, bytes):
                        last = max(last, self._batch_of(source))
                    if (message.offset() or 0) + 1 >= high:
                        return last
                elif error.code() == KafkaError._PARTITION_EOF:
                    return last  # only transaction markers are left
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        finally:
            consumer.unassign()

    def _batch_of(self, source: bytes) -> int:
        """The batch in a header; NOTHING if the record is of another store or output."""
        owner, _, rest = source.partition(b":")
        batch, _, output = rest.partition(b":")
        ours = owner == self._owner.encode() and output in (b"", self._output.encode())
        return int(batch) if ours else NOTHING

    def _transact(self, batch: int, records: Iterable[TopicRecord]) -> None:
        from confluent_kafka import TopicPartition

        producer = self._producer
        assert producer is not None
        if self._exactly_once:
            producer.begin_transaction()
        failed: list[Any] = []
        self._produce(producer, batch, records, failed)
        if not self._exactly_once:
            left = producer.flush(self._seconds)
            if left or failed:
                raise SinkError(
                    f"{self._where}: batch {batch} was not acknowledged: "
                    f"{failed[0] if failed else 'the brokers do not answer'}"
                )
            return
        assert self._noter is not None
        number, group = TopicPartition(self._topic, 0, batch + 1), self._noter
        self._patiently(
            lambda seconds: producer.send_offsets_to_transaction(
                [number], group.consumer_group_metadata(), seconds
            )
        )
        self._patiently(producer.commit_transaction)

    def _produce(
        self, producer: Producer, batch: int, records: Iterable[TopicRecord], failed: list[Any]
    ) -> None:
        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(error)

        # A transaction needs no callbacks: its commit tells. A callback for each record would take
        # most of the time.
        arguments: dict[str, Any] = {} if self._exactly_once else {"on_delivery": delivered}
        source, topic = f"{self._owner}:{batch}:{self._output}".encode(), self._topic
        for key, value, ts in records:
            if self._event_time:
                arguments["timestamp"] = max(0, ts // 1_000)
            headers: list[tuple[str, str | bytes | None]] = [(BATCH, source), (TS, b"%d" % ts)]
            while True:
                try:
                    producer.produce(topic, value, key, headers=headers, **arguments)
                    break
                except BufferError:  # the queue is full
                    producer.poll(0.1)

    def _patiently(self, call: Callable[[float], T]) -> T:
        """Call with the seconds that are left; retry while Kafka says that this may help."""
        from confluent_kafka import KafkaError, KafkaException

        moving = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
        until = monotonic() + self._seconds
        while True:
            try:
                return call(max(0.1, until - monotonic()))
            except KafkaException as failure:
                error = failure.args[0]
                if not (error.retriable() or error.code() in moving) or monotonic() > until:
                    raise
                sleep(RETRY_SECONDS)

    @contextmanager
    def _told(self, action: str) -> Iterator[None]:
        """Turns an error of Kafka into a SinkError."""
        from confluent_kafka import KafkaException

        try:
            yield
        except KafkaException as failure:
            error = failure.args[0]
            reason = error.str() if self._asked is None else self._said.why(self._asked, error)
            raise SinkError(
                f"{self._where}: {action}: {reason} ({error.name()}); see "
                "that its brokers are up and let Millstream write there"
            ) from failure
