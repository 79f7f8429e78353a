"""Messages of a topic become the same records, however many are taken at a time."""

from __future__ import annotations

import json
from itertools import chain, pairwise
from typing import Any
from unittest.mock import patch

from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from millstream.columnar.picked_fields import Fields
from millstream.kafka.topic import source_topic
from millstream.model.source import Source
from millstream.sources import kafka_records
from millstream.sources.formats import Chunk
from millstream.sources.kafka_records import TopicRecordReader

TOPIC = source_topic("clicks", [("servers", "broker:9092")])
SOURCE = Source("clicks", key="key", ts="at", unit="us")
PLAIN = st.builds('{{"key":"{}","at":{}}}'.format, st.sampled_from("abc"), st.integers(0, 99))
VALUES = st.one_of(
    PLAIN.map(str.encode),
    PLAIN.map(str.encode),
    st.sampled_from(
        [None, b"", b"{", b"17", b'{"key":"a",\n"at":5}', b"\n", b"\xff", b'{"at":1,"key":"b"}']
    ),
)
Records = list[tuple[int, Any]]
"""Offsets, and the encoded values of records or the errors of wrong ones."""


def read(parts: list[list[Message]], fields: Fields | None) -> tuple[Records, list[Any], int]:
    """The records, the keys and times that were picked, and the number of bytes."""
    reader = TopicRecordReader(TOPIC, SOURCE, 0, fields)
    records: Records = []
    picked: list[Any] = []
    size = 0
    taken = chain.from_iterable(map(reader.take, parts))
    for chunk, chunk_size in chain(taken, reader.rest()):
        records += records_of(chunk)
        size += chunk_size
        if chunk.picked is not None:
            assert chunk.picked.keys is not None
            assert chunk.picked.times is not None
            times = chunk.picked.times.tolist()
            picked += zip(chunk.picked.keys.to_pylist(), times, strict=True)
    assert not any(parts)
    return records, picked, size


def records_of(chunk: Chunk) -> Records:
    whole = chunk.whole() if chunk.whole is not None else chunk
    assert whole.raw is not None
    offsets = map(whole.line_of, range(len(whole.records)))
    records: Records = list(zip(offsets, whole.raw, strict=True))
    return sorted([*records, *((bad.line, bad.error) for bad in whole.bad)])


def messages(values: list[bytes | None], gaps: list[int]) -> list[Message]:
    offsets = [5 + number + sum(gaps[: number + 1]) for number in range(len(values))]
    return [
        Message("clicks", 1, offset, value=value)
        for offset, value in zip(offsets, values, strict=True)
    ]


@given(st.data(), st.lists(VALUES, max_size=12), st.integers(1, 5))
def test_any_number_of_messages_at_a_time(
    data: st.DataObject, values: list[bytes | None], most: int
) -> None:
    """Picked or not, each message is one record, or one wrong record, at its offset; what is picked
    is what is in the records."""
    gaps = data.draw(
        st.lists(st.sampled_from([0, 0, 2]), min_size=len(values), max_size=len(values))
    )
    cuts = sorted(data.draw(st.sets(st.integers(0, len(values)))) | {0, len(values)})
    one_by_one = [[message] for message in messages(values, gaps)]
    expected, _, size = read(one_by_one, None)
    together = messages(values, gaps)
    parts = [together[low:high] for low, high in pairwise(cuts)]
    with patch.object(kafka_records, "CHUNK_RECORDS", most):
        records, picked, picked_size = read(parts, Fields("key", "at", lines=True))
    assert (records, picked_size) == (expected, size)
    assert len(records) == len(values)
    fields = [(raw["key"], raw["at"]) for raw in decoded(records)]
    assert all(pair in fields for pair in picked)


def test_a_chunk_has_the_messages_of_several_parts() -> None:
    """Messages wait until there are enough for a chunk."""
    reader = TopicRecordReader(TOPIC, SOURCE, 0, Fields("key", "at", lines=True))
    parts = [[message] for message in messages([b'{"key":"a","at":5}'] * 3, [0, 2, 0])]
    assert list(chain.from_iterable(map(reader.take, parts))) == []
    ((chunk, size),) = reader.rest()
    assert chunk.picked is not None
    assert (chunk.picked.size, size) == (3, 54)
    assert [offset for offset, _ in records_of(chunk)] == [5, 8, 9]
    assert list(reader.rest()) == []


def decoded(records: Records) -> list[Any]:
    return [
        json.loads(raw)
        for _, raw in records
        if isinstance(raw, bytes) and raw.startswith(b"{") and raw.endswith(b"}")
    ]
