"""Reads ranges of offsets of a topic, in the tasks of a batch.

There is no consumer group: a task is given the offsets to read. A range ends at an offset, not
after a number of records: records may be missing in a compacted topic, and aborted transactions and
transaction markers take offsets too.

Consumers are kept, with their connections, for the next batch of the same process. While a broker
is away, the task waits; only the driver ends the wait, by cancelling the task.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from millstream.counted_nouns import counted, verb
from millstream.errors import InputError
from millstream.kafka.client import AWAY_SECONDS, client_settings, library, made_client
from millstream.kafka.limited_calls import close_in_time
from millstream.kafka.topic import SourceTopic

MANY = 1_000
"""The maximum number of records that are taken from the client at a time. The objects of so few
stay in the processor's cache until they are used."""
WAIT_SECONDS = 0.5
IDLE_CONSUMERS = 4
SHORT_PATIENCE = 10.0
"""Seconds for which a partition may seem to end before the position that was read."""
_SETTINGS = {
    "group.id": "millstream",  # the library requires one; nothing is committed under it
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    # All records of a range are there already: a request need not wait, and would delay the next
    # range if it did.
    "fetch.wait.max.ms": 10,
    # A thread looks so often whether more must be fetched, while there is enough to process.
    "fetch.queue.backoff.ms": 5,
    # Small, since records fetched beyond the end of a range are thrown away.
    "queued.max.messages.kbytes": 8_192,
    "queued.min.messages": 5_000,
}
_idle: dict[tuple[int, tuple[tuple[str, str], ...], bool], list[Any]] = {}
_cancelled = 0


class OffsetRange(NamedTuple):
    """Offsets of a partition from `start` up to `stop` (excluded)."""

    partition: int
    start: int
    stop: int


class Fetched(NamedTuple):
    """Some records of a range, in order; or none, and the number that retention has removed."""

    partition: int
    messages: list[Any]
    """The receiver may empty it, to free the memory before the next messages come."""
    lost: int = 0


def cancel() -> None:
    """End all reads of this process, with InputError."""
    global _cancelled
    _cancelled += 1


def fetched(
    topic: SourceTopic, ranges: Iterable[OffsetRange], *, committed: bool = True
) -> Iterator[Fetched]:
    """The records of the ranges, in order within each. At most one range a partition.

    With `committed`, records of aborted transactions are left out. Raises InputError if records
    were removed before they were read, unless the topic has `lost=skip`.
    """
    kafka = library()
    key = os.getpid(), topic.options, committed
    idle = _idle.setdefault(key, [])
    consumer = idle.pop() if idle else topic_consumer(kafka, topic, committed=committed)
    done = False
    try:
        yield from _Reading(kafka, consumer, topic, ranges).all()
        done = True
    finally:
        if done and len(idle) < IDLE_CONSUMERS:
            consumer.unassign()
            idle.append(consumer)
        else:
            close_in_time(consumer)


def topic_consumer(kafka: Any, topic: SourceTopic, *, committed: bool = True) -> Any:
    """A consumer that is told which partitions to read, and from where."""
    settings = {**client_settings(topic.options, topic.where), **_SETTINGS}
    if not committed:
        settings["isolation.level"] = "read_uncommitted"
    return made_client(kafka.Consumer, settings, topic.where)


class _Reading:
    """One pass over some ranges."""

    def __init__(
        self, kafka: Any, consumer: Any, topic: SourceTopic, ranges: Iterable[OffsetRange]
    ) -> None:
        self._kafka = kafka
        self._consumer = consumer
        self._topic = topic
        self._left = {wanted.partition: wanted for wanted in ranges if wanted.start < wanted.stop}
        self._at_cancel = _cancelled
        self._moved = False
        self._paused: list[Any] = []
        self._short_since: float | None = None
        self._partition_of = kafka.Message.partition
        self._error_of = kafka.Message.error
        self._offset_of = kafka.Message.offset

    def all(self) -> Iterator[Fetched]:
        self._assign()
        while self._left:
            runs = self._runs(self._next())
            if _cancelled != self._at_cancel:
                raise InputError(f"{self._topic.where}: the reading was cancelled")
            for partition, run in runs:
                if partition in self._left:
                    yield from self._taken(partition, run)
            if self._moved:  # after all messages in hand, which are not fetched again
                self._moved = False
                self._assign()
        if self._paused:  # the library would keep them paused for the next range
            self._consumer.resume(self._paused)

    def _next(self) -> list[Any]:
        """The messages that have come; waits for the first. (`consume` waits until it has MANY.)"""
        first = self._consumer.poll(WAIT_SECONDS)
        return [] if first is None else [first, *self._consumer.consume(MANY, 0)]

    def _runs(self, messages: list[Any]) -> list[tuple[int, list[Any]]]:
        """The messages by partition, as they follow each other."""
        partitions = list(map(self._partition_of, messages))
        if partitions and partitions.count(partitions[0]) == len(partitions):
            return [(partitions[0], messages)]
        runs: list[tuple[int, list[Any]]] = []
        at = 0
        for partition, run in groupby(partitions):
            end = at + sum(1 for _ in run)
            runs.append((partition, messages[at:end]))
            at = end
        return runs

    def _taken(self, partition: int, messages: list[Any]) -> Iterator[Fetched]:
        """The messages of a partition that are in its range; ends the range if it is complete."""
        reached = -1
        if any(map(self._error_of, messages)):
            good = []
            for message in messages:
                if (error := message.error()) is None:
                    good.append(message)
                elif message.topic() != self._topic.name:
                    continue  # from the topic that this consumer read before
                elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
                    reached = message.offset()  # after markers and aborted records too
                else:
                    yield from self._failed(partition, error)
            messages = good
        wanted = self._left.get(partition)
        if wanted is None:
            return
        if messages:
            last = messages[-1].offset()
            if last >= wanted.stop:
                messages = messages[: bisect_left(messages, wanted.stop, key=self._offset_of)]
            reached = max(reached, last + 1)
            if messages:
                yield Fetched(partition, messages)
        if reached >= wanted.stop:
            self._end(partition)
        elif reached > wanted.start:
            self._left[partition] = wanted._replace(start=reached)

    def _failed(self, partition: int, error: Any) -> Iterator[Fetched]:
        """Go on after an error of a partition, or raise."""
        codes, where = self._kafka.KafkaError, self._topic.partition(partition)
        if error.code() == codes._AUTO_OFFSET_RESET:
            yield from self._out_of_range(partition)
        elif error.code() in (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_TOPIC):
            raise InputError(f"{where}: was taken into a batch and is gone; was the topic deleted?")
        elif error.code() in (codes.TOPIC_AUTHORIZATION_FAILED, codes._AUTHENTICATION):
            raise InputError(f"{where}: may not be read ({error.str()})")
        elif error.code() in (codes._BAD_MSG, codes._BAD_COMPRESSION, codes._NOT_IMPLEMENTED):
            raise InputError(
                f"{where}: a record cannot be read ({error.str()}); is it damaged, or compressed "
                "in a way that this client does not know?"
            )
        # Any other error is temporary: the library retries by itself.

    def _out_of_range(self, partition: int) -> Iterator[Fetched]:
        wanted = self._left[partition]
        try:
            low, high = self._consumer.get_watermark_offsets(
                self._place(partition, 0), timeout=AWAY_SECONDS
            )
        except self._kafka.KafkaException:
            self._moved = True  # the leader is away: retry
            return
        if low <= wanted.start:
            # A broker that has just come back may not know its end offset yet.
            now = time.monotonic()
            self._short_since = self._short_since or now
            if high < wanted.start and now - self._short_since > SHORT_PATIENCE:
                raise truncated(self._topic, partition, wanted.start)
            time.sleep(0.05)
            self._moved = True
            return
        if self._topic.lost == "fail":
            raise removed(self._topic, partition, wanted.start, low)
        yield Fetched(partition, [], min(low, wanted.stop) - wanted.start)
        if low >= wanted.stop:
            self._end(partition)
            return
        self._left[partition] = wanted._replace(start=low)
        self._moved = True

    def _assign(self) -> None:
        """Continue with the rest of each range."""
        self._consumer.assign(
            [self._place(wanted.partition, wanted.start) for wanted in self._left.values()]
        )

    def _end(self, partition: int) -> None:
        del self._left[partition]
        if self._left:
            place = self._place(partition, 0)
            self._consumer.pause([place])
            self._paused.append(place)

    def _place(self, partition: int, offset: int) -> Any:
        return self._kafka.TopicPartition(self._topic.name, partition, offset)


def removed(topic: SourceTopic, partition: int, position: int, begin: int) -> InputError:
    """The error for records that were removed before they were read."""
    records, lost = counted(begin - position, "record"), begin - position
    were, them = verb(lost, "it was", "they were"), verb(lost, "it", "them")
    return InputError(
        f"{topic.partition(partition)}: the next record to read has offset {position}, and the "
        f"topic begins at {begin}: retention has removed {records} before {were} read. Give the "
        f"topic a longer retention. To go on without {them}, give the source's address the option "
        f"lost=skip, which counts {them}; or replay into a new store (--store)"
    )


def truncated(topic: SourceTopic, partition: int, position: int) -> InputError:
    """The error for a topic that ends before the position that was read."""
    return InputError(
        f"{topic.partition(partition)}: was read up to offset {position}, and ends before that: "
        "the topic was deleted and made again, or a broker has lost records. What was read stays "
        "counted; to read the topic from its beginning, begin a new store (--store)"
    )
