"""Kafka records that never became events keep their key, time and headers when they are retried."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import msgspec
import pytest
from confluent_kafka import Message

import millstream as ms
from millstream.codec import decode_value
from millstream.engine.intake import Intake
from millstream.engine.plan import Plan
from millstream.engine.retry_intake import RetryIntake
from millstream.engine.router import Router
from millstream.engine.sink_rows import letter_row, sink_row
from millstream.kafka.topic import source_topic
from millstream.letters.letter_row import LetterRow
from millstream.letters.selection import why_not
from millstream.model.rules import DeadLetter
from millstream.model.source import Source
from millstream.sinks.columns import DEADLETTER_COLUMNS
from millstream.sources.kafka_records import TopicRecordReader, taken_source, topic_attributes

CLOCK = 1_700_000_000_000_000
Letter = dict[str, Any]


def workflow_of(**source: Any) -> Any:
    """Returns a workflow with an update that reads the source."""
    app = ms.App("retries")
    app.source("clicks", **source)
    app.update("clicks", name="count")(lambda event, slate: None)
    return app.workflow()


def message(value: bytes, key: bytes | None = b"ann", at: int = 5) -> Message:
    """A record of a topic; `at` is in milliseconds."""
    headers = [("via", b"web")]
    return Message("clicks", 1, 7, key=key, value=value, headers=headers, timestamp=(1, at))


def letters_of(records: list[Message], options: str = "", **source: Any) -> list[Letter]:
    """The rows of the dead letters that come of the records."""
    workflow = workflow_of(**source)
    given = [tuple(option.split("=")) for option in options.split()]
    topic = source_topic("clicks", [("servers", "broker:9092"), *given])  # type: ignore[list-item]
    router = Router(Plan(workflow, 1, frozenset()), batch=4)
    taken = taken_source(workflow.sources[0], topic)
    intake = Intake(taken, router, CLOCK, None, topic_attributes(topic, taken))
    reader = TopicRecordReader(topic, taken, CLOCK, intake.fields)
    place = topic.partition(1)
    for taken_chunk, _ in chain(reader.take([*records]), reader.rest()):
        chunk = taken_chunk.whole() if taken_chunk.whole is not None else taken_chunk
        intake.take(chunk.records, chunk.raw, place, chunk.line_of, chunk.stamps, chunk.keys)
        for bad in chunk.bad:
            intake.refuse(bad, place)
    return [sink_row(letter_row(letter)) for letter in router.dead]


def retried(
    letters: list[Letter], **source: Any
) -> tuple[list[tuple[int, str, Any]], list[Letter]]:
    """The events (ts, key, value) and the dead letters that come of retried letters."""
    router = Router(Plan(workflow_of(**source), 1, frozenset()), batch=5)
    given = map(read, letters)
    RetryIntake(Source("deadletters.retried"), router, CLOCK + 1).take(given, "retried", 1)
    inbox = router.placed.get((0, 0))
    events = list(zip(inbox.ts, inbox.keys, inbox.values, strict=True)) if inbox else []
    rows = [sink_row(letter_row(letter)) for letter in router.dead]
    return [(ts, key, decode_value(value)) for ts, key, value in events], rows


def read(letter: Letter) -> LetterRow:
    return msgspec.convert(letter, LetterRow)


def failing(record: Any) -> str:
    raise KeyError("user")


def test_the_key_and_time_of_the_record_are_kept() -> None:
    """A source that declares neither takes both from the record, in a retry as in the first try.
    The letter shows the key, and a record that fails again keeps it."""
    letters = letters_of([message(b"{"), message(b"17", b"bob", 6)], "headers=via")
    assert [letter["key"] for letter in letters] == ["ann", "bob"]
    _, again = retried(letters)
    assert [(letter["key"], letter["line"]) for letter in again] == [("ann", 7), ("bob", 7)]
    mended = [{**letter, "value": '{"n":1}'} for letter in again]
    events, _ = retried(mended)
    value = {"n": 1, "via": {"via": "web"}}
    assert events == [(5_000, "ann", value), (6_000, "bob", value)]


def test_the_key_of_the_record_replaces_the_declared_one() -> None:
    """`key=record` holds for a retry too; the time comes from the field, as declared now."""
    (letter,) = letters_of([message(b'{"user":"x","at":9}')], "key=record", key="user", ts="at")
    events, _ = retried([letter], key="user", ts="at", unit="us")
    assert events == [(9, "ann", {"user": "x", "at": 9})]


def test_the_time_of_the_record_replaces_the_declared_one() -> None:
    """`time=record` holds for a retry too; the key comes from the field, as declared now."""
    (letter,) = letters_of([message(b'{"user":"x"}')], "time=record", key=failing, ts="at")
    events, _ = retried([letter], key="user", ts="at")
    assert events == [(5_000, "x", {"user": "x"})]


def test_what_the_source_declares_by_now_counts() -> None:
    """Without `key=record` and `time=record` a field that is declared since then is used."""
    (letter,) = letters_of([message(b"{")])
    letter["value"] = '{"user":"x","at":9}'
    events, _ = retried([letter], key="user", ts="at", unit="us")
    assert events == [(9, "x", {"user": "x", "at": 9})]


@pytest.mark.parametrize(
    ("source", "missing"), [({"ts": "at", "unit": "us"}, "key"), ({"key": "user"}, "ts")]
)
def test_a_letter_without_the_key_or_time_is_refused(source: Any, missing: str) -> None:
    """Its source took it from the value then, and takes it from the record now."""
    (letter,) = letters_of([message(b'{"at":9}')], key="user", ts="at", unit="us")
    events, (again,) = retried([letter], **source)
    assert events == []
    assert f"takes {missing} from the Kafka record, so its letter must have it" in again["error"]


@pytest.mark.parametrize(
    ("record", "options"),
    [
        (message(b'{"n":1}', b"\xff"), ""),
        (message(b'{"n":1}', b"k" * 5_000), ""),
        (message(b'{"n":1}', at=10**13), ""),
        (message(b"1", b"\xff"), "format=bytes"),
    ],
)
def test_a_record_whose_key_or_time_is_wrong(record: Message, options: str) -> None:
    """It is not retried, since the letter cannot hold them."""
    (letter,) = letters_of([record], options)
    assert "a record that was not kept whole" in (why_not(read(letter)) or "")


def test_a_key_that_is_missing_stays_missing() -> None:
    """With `key=record` a record without a key has the empty one, whatever the source declares."""
    (letter,) = letters_of([message(b'{"user":"x"}', None)], "key=record", key="user", ts="at")
    events, _ = retried(
        [{**letter, "value": '{"user":"x","at":9}'}], key="user", ts="at", unit="us"
    )
    assert events == [(9, "", {"user": "x", "at": 9})]


def test_letters_of_earlier_versions_can_be_retried() -> None:
    """They have no attributes; their key and time are those of the letter."""
    (letter,) = letters_of([message(b"{")])
    letter = {**letter, "value": '{"n":1}', "attributes": None}
    assert why_not(read(letter)) is None
    assert retried([letter])[0] == [(5_000, "ann", {"n": 1})]


def test_a_time_of_arrival_is_kept() -> None:
    """A record of an event log is retried with the time at which it came."""
    workflow = workflow_of(key=failing)
    router = Router(Plan(workflow, 1, frozenset()), batch=4)
    intake = Intake(replace(workflow.sources[0]), router, CLOCK, None)
    intake.take([{"user": "x"}], None, "log", lambda index: 3, [77])
    events, _ = retried([sink_row(letter_row(letter)) for letter in router.dead], key="user")
    assert events == [(77, "x", {"user": "x"})]


def test_a_retry_has_all_fields_of_a_letter() -> None:
    """What a sink writes of a letter is what a retry reads of it."""
    columns = {column.name for column in DEADLETTER_COLUMNS}
    assert {*LetterRow.__struct_fields__} - {"bytes"} == columns == {*DeadLetter.__slots__}
