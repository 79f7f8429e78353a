"""Sends batches of records to a topic, each exactly once.

DESIGN
------
A batch is one transaction: its records, and its number, which is kept as the committed offset of
the sink's own consumer group (the offset is the number of the next batch; nobody consumes as that
group). The broker commits both or none. Transactions and the group are named after the store and
the output, so that all drivers that publish for them use the same names:

- Opening fences. `init_transactions` aborts the transaction that an earlier driver has left open,
  and blocks that driver. Only then is the group's offset read, so it cannot change any more.
- After any failure the producer is discarded and opened again. This shows whether the broker has
  committed a transaction whose answer was lost.
- An old driver that is still running and opens again fences the new one, which opens again in turn.
  That costs time, not correctness: each publishes only batches that the topic does not have, and
  both publish the same, since published batches were committed in the store. The old driver ends
  when it learns that it was replaced.

- No call waits for ever, also where the library would (`limited_calls`). One that does not return
  is a failure like any other. What is left of it may only reach the brokers after the next opening,
  which has fenced it.

Brokers forget a group's offset after a time without a commit (a week, usually). So every record
also has its batch and its output as a header. If there is no offset, the ends of the partitions are
searched for that header. (Another output of the store may be published to the same topic.)

*At least once*, for brokers without transactions: all replicas acknowledge a batch; after a crash
the last batch may be sent again.

Records are distributed over partitions by key as Java's clients do it (murmur2), so that equal keys
of other producers are in the same partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from millstream.errors import SinkError
from millstream.kafka.client import ConnectionErrors, client_settings, library, made_client
from millstream.kafka.limited_calls import CallOverdue, LimitedClient
from millstream.kafka.sink_topic import EVENT, EXACTLY_ONCE, SinkTopic

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer, TopicPartition

T = TypeVar("T")
Client = TypeVar("Client")
SECONDS = 30.0
"""Seconds that a call waits for the brokers before it counts as a failure."""
OFFSET_SECONDS = 10.0
"""The same for the call that adds the offset. It is less: this call does not return if the group's
coordinator has died, and a new producer asks for the new coordinator."""
GRACE_SECONDS = 2.0
"""Seconds that the library may take to notice that a call's time is over."""
RETRY_SECONDS = 0.1
COMMIT = "commit_transaction"
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
        self._said = ConnectionErrors()
        settings = client_settings(topic.options, topic.where)
        self._settings: dict[str, Any] = {**settings, "error_cb": self._said.note}
        self._asked: LimitedClient[Any] | None = None
        """The client whose call may fail."""
        self._owner, self._output = owner, output
        self._name = f"millstream-{owner}-{output}"
        self._exactly_once = topic.delivery == EXACTLY_ONCE
        self._event_time = topic.time == EVENT
        self._seconds = SECONDS if seconds is None else seconds
        self._producer: LimitedClient[Producer] | None = None
        self._group: object = None
        """The group whose offset is the last batch, as a producer is given it."""
        self._last = NOTHING

    def check(self) -> None:
        """Raises SinkError if the brokers cannot be reached, or have no such topic; InputError if
        the client's settings are wrong."""
        from confluent_kafka.admin import AdminClient

        admin = self._asked = LimitedClient(made_client(AdminClient, self._settings, self._where))
        with self._told("the topic cannot be looked up"):
            known = self._topic_known(admin)
        self.close()
        if known.error is not None:
            raise SinkError(f"{self._where}: {known.error.str()}; make the topic first")

    def send(self, batch: int, records: Iterable[TopicRecord]) -> None:
        """Send a batch, unless the topic has it. It is committed when this returns.

        Raises SinkError if it may not be committed; then it may be sent again.
        """
        with self._told(f"batch {batch} cannot be written"):
            if self._producer is None:
                self._open()
            if batch > self._last:
                self._transact(batch, records)
                self._last = batch

    def last_batch(self) -> int:
        """The last batch that the topic has; NOTHING if it has none, or that is not known."""
        with self._told("the number of the last batch cannot be read"):
            if self._producer is None:
                self._open()
        return self._last

    def close(self) -> None:
        """Close the connections. The next opening aborts a transaction that is still open."""
        producer, self._producer = self._asked or self._producer, None
        self._asked = None
        if producer is not None:
            producer.discard(lambda client: client.purge())  # an AdminClient has nothing to purge

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
        if self._exactly_once:
            settings["transactional.id"] = self._name
            settings["transaction.timeout.ms"] = int(2 * self._seconds * 1_000)
        else:
            # One request at a time: a retry must not change the order of records.
            settings["max.in.flight.requests.per.connection"] = 1
        producer = self._asked = LimitedClient(Producer(settings))
        if not self._exactly_once:
            self._producer = producer
            return
        # Counts as open only after older drivers are fenced and the last batch is known.
        self._patiently(
            producer, "init_transactions", lambda client, seconds: client.init_transactions(seconds)
        )
        noter = LimitedClient(
            Consumer(
                self._settings
                | {
                    "group.id": self._name,
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "isolation.level": "read_committed",
                }
            )
        )
        try:
            self._last = self._recorded(noter)
            self._group = self._in_time(
                noter, "consumer_group_metadata", lambda client: client.consumer_group_metadata()
            )
        finally:
            noter.discard(lambda client: client.close())
        self._producer = producer

    def _recorded(self, noter: LimitedClient[Consumer]) -> int:
        """The last batch according to the group's offset, or else to the headers of records."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(self._topic, 0)
        (committed,) = self._patiently(
            noter, "committed", lambda client, seconds: client.committed([place], timeout=seconds)
        )
        return committed.offset - 1 if committed.offset >= 0 else self._searched(noter)

    def _searched(self, consumer: LimitedClient[Consumer]) -> int:
        """Searches the ends of the partitions for the last batch of this sink."""
        from confluent_kafka import Consumer, TopicPartition

        last = NOTHING
        for number in self._topic_known(consumer).partitions:
            place = TopicPartition(self._topic, number)
            ends = partial(Consumer.get_watermark_offsets, partition=place, timeout=self._seconds)
            low, high = self._in_time(consumer, "get_watermark_offsets", ends)
            if high > low:
                place.offset = max(low, high - SEARCHED)
                search = partial(self._searched_partition, place=place, high=high)
                last = max(last, self._in_time(consumer, "poll", search))
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

        producer, failed = self._producer, list[Any]()
        assert producer is not None
        if not self._exactly_once:
            self._produce(producer, batch, records, failed)
            left = self._in_time(producer, "flush", lambda client: client.flush(self._seconds))
            if left or failed:
                raise SinkError(
                    f"{self._where}: batch {batch} was not acknowledged: "
                    f"{failed[0] if failed else 'the brokers do not answer'}"
                )
            return
        self._in_time(producer, "begin_transaction", lambda client: client.begin_transaction())
        self._produce(producer, batch, records, failed)
        number = TopicPartition(self._topic, 0, batch + 1)
        self._patiently(
            producer,
            "send_offsets_to_transaction",
            lambda client, seconds: client.send_offsets_to_transaction(
                [number], self._group, seconds
            ),
            min(self._seconds, OFFSET_SECONDS),
        )
        self._patiently(
            producer, COMMIT, lambda client, seconds: client.commit_transaction(seconds)
        )

    def _produce(
        self,
        producer: LimitedClient[Producer],
        batch: int,
        records: Iterable[TopicRecord],
        failed: list[Any],
    ) -> None:
        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(error)

        # A transaction needs no callbacks: its commit tells. A callback for each record would take
        # most of the time.
        arguments: dict[str, Any] = {} if self._exactly_once else {"on_delivery": delivered}
        source, topic = f"{self._owner}:{batch}:{self._output}".encode(), self._topic
        produce = producer.client.produce
        try:
            for key, value, ts in records:
                if self._event_time:
                    arguments["timestamp"] = max(0, ts // 1_000)
                headers: list[tuple[str, str | bytes | None]] = [(BATCH, source), (TS, b"%d" % ts)]
                until = None
                while True:
                    try:
                        produce(topic, value, key, headers=headers, **arguments)
                        break
                    except BufferError:  # the queue is full
                        now = monotonic()
                        until = until or now + self._seconds
                        if now > until:
                            raise SinkError(
                                f"{self._where}: batch {batch} cannot be written: the brokers have "
                                f"taken no record for {self._seconds:g} s; make sure that they "
                                "are up"
                            ) from None
                        producer.client.poll(0.1)
        finally:
            del produce  # an exception keeps this frame, which must not keep the client

    def _topic_known(self, client: LimitedClient[Any]) -> Any:
        known = self._in_time(
            client,
            "list_topics",
            lambda asked: asked.list_topics(self._topic, timeout=self._seconds),
        )
        return known.topics[self._topic]

    def _in_time(self, client: LimitedClient[Client], name: str, call: Callable[[Client], T]) -> T:
        """Call once; the call itself may take the usual seconds."""
        return client.call(name, call, self._seconds + GRACE_SECONDS)

    def _patiently(
        self,
        client: LimitedClient[Client],
        name: str,
        call: Callable[[Client, float], T],
        seconds: float | None = None,
    ) -> T:
        """Call with the seconds that are left; retry while Kafka says that this may help."""
        from confluent_kafka import KafkaError, KafkaException

        moving = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
        until = monotonic() + (self._seconds if seconds is None else seconds)
        while True:
            left = max(0.1, until - monotonic())
            try:
                limited = partial(_with_seconds, call, left)
                return client.call(name, limited, left + GRACE_SECONDS)
            except KafkaException as failure:
                error = failure.args[0]
                if not (error.retriable() or error.code() in moving) or monotonic() > until:
                    raise
                sleep(RETRY_SECONDS)

    @contextmanager
    def _told(self, action: str) -> Iterator[None]:
        """Turns an error of Kafka into a SinkError, and closes the connections after any error."""
        from confluent_kafka import KafkaException

        hint = "make sure that its brokers are up and let Millstream write there"
        try:
            try:
                yield
            except CallOverdue as overdue:
                raise SinkError(
                    f"{self._where}: {action}: {overdue} (a call of Kafka's client library, which "
                    f"is given up and made again); {hint}"
                ) from None
            except KafkaException as failure:
                error = failure.args[0]
                reason = error.str()
                if self._asked is not None:
                    reason = self._said.why(self._asked.client, error)
                raise SinkError(
                    f"{self._where}: {action}: {reason} ({error.name()}); {hint}"
                ) from failure
        except BaseException:
            self.close()
            raise


def _with_seconds(call: Callable[[Client, float], T], seconds: float, client: Client) -> T:
    return call(client, seconds)
