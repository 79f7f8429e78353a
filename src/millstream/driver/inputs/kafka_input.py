"""A Kafka topic as the input of a source.

A position is the next offset of each partition, in order of partition number; a partition that a
position does not include yet is read from its beginning. The number of bytes between two positions
is estimated from the size of the records that were read last, and before that from a sample.

The start of a source that has read nothing yet is written once into the store's record of the
source. Otherwise, with `start=latest`, it would differ at each start until the first batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from millstream.driver.inputs.input_shares import LEAST_BYTES, InputShare
from millstream.errors import InputError, StoreError
from millstream.kafka.client import client_settings, library
from millstream.kafka.limited_calls import close_in_time
from millstream.kafka.offset_ranges import SHORT_PATIENCE, removed, truncated
from millstream.kafka.record_sizes import SAMPLE, sampled_bytes
from millstream.kafka.topic import SourceTopic
from millstream.kafka.topic_watch import TopicEnds, TopicWatch
from millstream.sources.address import KAFKA
from millstream.sources.files import Position
from millstream.sources.formats import InputSplit, cut_evenly
from millstream.sources.record_log import RecordLog

RECORD_BYTES = 500.0
"""The assumed size of a record before any was read, if there are few or no brokers answer."""
QUARTERS = 4
"""A partition is split into pieces of at most a quarter of the batch, or LEAST_BYTES if that is
more."""
AVAILABLE_PATIENCE = 60.0
"""Seconds that an `available_now` run waits for the brokers' first answer."""
_HEADER = {"log": "files", "version": 1, "format": KAFKA}


class KafkaInput:
    """The records of a topic. The driver opens it with the store's record of the source."""

    stream = ""

    def __init__(self, topic: SourceTopic, record: RecordLog | None, *, wait: bool = False) -> None:
        """Without `record` this only names the topic and does not ask the brokers.

        `wait`: the run ends when it has read what is there, so `look` waits for the brokers'
        answer.
        """
        self._topic = topic
        self._record = record
        self._wait = wait
        self._watch = TopicWatch(topic)
        self._known: TopicEnds | None = None
        self._begin: list[int] | None = None
        self._committer: Any = None
        self._short_since: float | None = None
        self._sampled: float | None = None
        self.record_bytes = RECORD_BYTES
        if record is not None:
            self._read_record(record)

    @property
    def begin(self) -> Position:
        if self._known is None:
            return []
        begin = self._begin or []
        return [
            max(low, begin[number]) if number < len(begin) else low
            for number, low in enumerate(self._known.begins)
        ]

    @property
    def end(self) -> Position:
        return [] if self._known is None else list(self._known.ends)

    @property
    def folders(self) -> list[str]:
        return []

    def watch(self, changed: Callable[[], None]) -> None:
        self._watch.changed = changed

    def look(self) -> list[str]:
        self._watch.start()
        if self._wait and self._known is None:
            self._await()
        if self._watch.error is not None:
            raise self._watch.error
        known = self._watch.ends
        if known is not None and self._begin is None:
            self._set_begin(list(known.ends if self._topic.start == "latest" else known.begins))
        self._known = known
        return self._watch.sentences()

    def learn(self, record_bytes: float) -> None:
        """Takes the average size of the records read last; 0 if that is not known.

        Then a first batch of many records has a size too: otherwise large ones would fill the
        memory, and small ones make a batch that is far smaller than it may be.
        """
        self.record_bytes = record_bytes or self._sample() or RECORD_BYTES

    def take(self, position: Sequence[int], max_bytes: int | None = None) -> Position:
        if self._known is None:
            return list(position)
        start = self._checked(position)
        if start is None:
            return list(position)
        waiting = [max(0, end - at) for at, end in zip(start, self._known.ends, strict=True)]
        records = sum(waiting)
        if max_bytes is not None:
            records = min(records, max(1, int(max_bytes / self.record_bytes)))
        self._watch.is_behind = records < sum(waiting)
        return [at + part for at, part in zip(start, shares(records, waiting), strict=True)]

    def shares(self, start: Sequence[int], end: Sequence[int], parts: int) -> list[InputShare]:
        """Returns one share per partition; several if it has more than a quarter of all records."""
        begin = self._complete(start)
        lengths = [stop - at for at, stop in zip(begin, end, strict=False)]
        most = max(1, int(LEAST_BYTES / self.record_bytes), -(-sum(lengths) // QUARTERS))
        pieces = []
        for number, length in enumerate(lengths):
            for low, high in cut_evenly(begin[number], end[number], -(-length // most)):
                if low < high:
                    split = InputSplit(self._topic.partition(number), low, high)
                    pieces.append(InputShare(int(self.record_bytes * (high - low)), [split]))
        return pieces

    def bytes_between(self, start: Sequence[int], end: Sequence[int]) -> int:
        begin = self._complete(start)
        pairs = zip(begin, self._complete(end), strict=False)
        return int(self.record_bytes * sum(max(0, stop - at) for at, stop in pairs))

    def records_after(self, position: Sequence[int]) -> int:
        pairs = zip(self._complete(position), self.end, strict=False)
        return sum(max(0, end - at) for at, end in pairs)

    def stamp_at(self, position: Sequence[int]) -> int | None:
        return self._watch.stamp_at(position)

    def commit(self, reader: str, position: Sequence[int]) -> None:
        """Commits to a consumer group, for tools that show a consumer's progress.

        Best effort: nothing here depends on it.
        """
        if self._known is None or not position:
            return
        kafka = library()
        try:
            if self._committer is None:
                settings = client_settings(self._topic.options, self._topic.where)
                group = self._topic.group or f"millstream-{reader}"
                own = {"group.id": group, "enable.auto.commit": False}
                self._committer = kafka.Consumer({**settings, **own})
            places = [
                kafka.TopicPartition(self._topic.name, number, offset)
                for number, offset in enumerate(position)
            ]
            self._committer.commit(offsets=places, asynchronous=True)
            self._committer.poll(0)
        except (InputError, kafka.KafkaException):
            pass

    def knows(self, reader: str) -> bool:
        return True

    def located(self, split: InputSplit) -> SourceTopic:
        return self._topic

    def close(self) -> None:
        self._watch.close()
        if self._committer is not None:
            close_in_time(self._committer)  # a commit that is under way may wait for a broker
            self._committer = None
        if self._record is not None:
            self._record.close()

    def _sample(self) -> float:
        """Returns the average size of the first records; 0 if there are few. Asks brokers once."""
        if self._sampled is None:
            places = {
                number: low
                for number, (low, end) in enumerate(zip(self.begin, self.end, strict=True))
                if low < end
            }
            if sum(self.end[number] - low for number, low in places.items()) > SAMPLE:
                self._sampled = sampled_bytes(self._topic, places)
        return self._sampled or 0.0

    def _await(self) -> None:
        """Waits for the brokers' first answer; raises InputError if it does not come."""
        deadline = time.monotonic() + AVAILABLE_PATIENCE
        while not self._watch.wait(0.2):
            if time.monotonic() > deadline:
                reason = "; ".join(self._watch.sentences()) or "they do not answer"
                raise InputError(
                    f"{self._topic.where}: the brokers must report the offsets of the topic, and "
                    f"have not for {AVAILABLE_PATIENCE:.0f} s: {reason}"
                )

    def _complete(self, position: Sequence[int]) -> list[int]:
        """Extends a position to all known partitions."""
        return [*position, *self.begin[len(position) :]]

    def _checked(self, position: Sequence[int]) -> list[int] | None:
        """Completes a position, and checks that the records after it still exist.

        Raises InputError if some were removed. Returns None while a partition seems to end before
        the position: a broker that has just come back may report this for a while.
        """
        assert self._known is not None
        at = self._complete(position)
        while (short := self._ends_before(at)) is not None:
            now = time.monotonic()
            self._short_since = self._short_since or now
            if now - self._short_since > SHORT_PATIENCE:
                raise truncated(self._topic, short, at[short])
            if not self._wait:
                return None
            time.sleep(0.05)
            self._known = self._watch.ends or self._known
        self._short_since = None
        for number, low in enumerate(self._known.begins):
            if at[number] < low and self._topic.lost == "fail":
                raise removed(self._topic, number, at[number], low)
        return at

    def _ends_before(self, position: Sequence[int]) -> int | None:
        """Returns a partition that ends before the position, if there is one."""
        ends = self.end
        for number, at in enumerate(position):
            if number >= len(ends) or at > ends[number]:
                return number
        return None

    def _read_record(self, record: RecordLog) -> None:
        rows = record.read()
        if not rows:
            record.append(_HEADER)
            return
        if rows[0].get("format") != KAFKA:
            raise StoreError(
                f"log {record.path}: this source has read {rows[0].get('format')} until now, and "
                f"its address says {KAFKA}; its positions mean nothing there: give the source the "
                "address it had, or another name"
            )
        for row in rows[1:]:
            if row["topic"] != self._topic.name:
                raise StoreError(
                    f"log {record.path}: this source has read the topic {row['topic']} until now, "
                    f"and its address says {self._topic.name}; its offsets mean nothing there: "
                    "give the source the address it had, or another name"
                )
            self._begin = row["begin"]

    def _set_begin(self, begin: list[int]) -> None:
        self._begin = begin
        if self._record is not None:
            self._record.append({"topic": self._topic.name, "begin": begin})


def shares(records: int, waiting: Sequence[int]) -> list[int]:
    """Divides `records` among partitions in proportion to the records that wait in each.

    No partition gets more than wait in it.

    >>> shares(10, [30, 10, 0])
    [8, 2, 0]
    >>> shares(1, [5, 5])
    [1, 0]
    """
    total = sum(waiting)
    if records >= total:
        return list(waiting)
    parts = [records * here // total for here in waiting]
    rest = records - sum(parts)
    for number in sorted(range(len(parts)), key=lambda part: parts[part] - waiting[part]):
        if rest == 0:
            break
        if parts[number] < waiting[number]:
            parts[number] += 1
            rest -= 1
    return parts
