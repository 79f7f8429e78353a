"""A topic of Kafka to which each batch is published whole, exactly once.

An event becomes a record with its key and its value: JSON, or bytes unchanged; null is a record
without a value. A dead letter, a late or a dropped event is its whole row as JSON, under its key. A
change of a slate has the slate's key and the slate as its value, or no value if the slate is gone:
so a compacted topic keeps the slates. A table's entry has the key `["key","entry"]`, as JSON.

kafka/batch_producer.py ensures that each batch is published once.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from millstream.codec import BYTES_TAG, encode_value
from millstream.kafka.batch_producer import BatchProducer, TopicRecord
from millstream.kafka.sink_topic import SinkTopic
from millstream.sinks.columns import ENTRY_CHANGE_COLUMNS, EVENT_COLUMNS, Columns
from millstream.sinks.row_files import JsonRows, Row
from millstream.slate_changes import SlateChanges

_encode_names = msgspec.json.Encoder().encode


class KafkaSink:
    """The records of one output, of events or of changes, in a topic."""

    def __init__(self, topic: SinkTopic, query: str, output: str, columns: Columns) -> None:
        """Raises SinkError if the topic cannot be reached now."""
        self._columns = columns
        self._rows = JsonRows(columns)
        self._producer = BatchProducer(topic, query, output)
        self._producer.check()

    def publish(self, batch: int, rows: list[Row]) -> None:
        """Sends the rows of a batch, unless the topic has them. After a SinkError a retry may
        succeed."""
        if rows:
            events = self._columns == EVENT_COLUMNS
            records = _event_records(rows) if events else self._row_records(rows)
            self._producer.send(batch, records)

    def publish_changes(self, batch: int, changes: SlateChanges) -> None:
        """Sends changes of slates in the same way; they may be of several batches up to `batch`."""
        if changes:
            entries = self._columns == ENTRY_CHANGE_COLUMNS
            self._producer.send(batch, _change_records(changes, entries))

    def close(self) -> None:
        """Closes the connection to the brokers."""
        self._producer.close()

    def _row_records(self, rows: list[Row]) -> Iterator[TopicRecord]:
        for row, line in zip(rows, self._rows.lines(rows), strict=True):
            yield TopicRecord(row["key"].encode(), line, row["ts"])


def _event_records(rows: list[Row]) -> Iterator[TopicRecord]:
    for row in rows:
        value = row["value"]
        encoded = None if value is None else encode_value(value)
        yield TopicRecord(row["key"].encode(), _plain(encoded), row["ts"])


def _change_records(changes: SlateChanges, entries: bool) -> Iterator[TopicRecord]:
    for key, entry, slate, ts in zip(
        changes.keys, changes.entries, changes.slates, changes.ts, strict=True
    ):
        record_key = _encode_names((key, entry)) if entries else key.encode()
        yield TopicRecord(record_key, _plain(slate), ts)


def _plain(encoded: bytes | None) -> bytes | None:
    return encoded[1:] if encoded is not None and encoded[:1] == BYTES_TAG else encoded
