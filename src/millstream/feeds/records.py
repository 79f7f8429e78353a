"""The records that feeds accept, on the source `NAME.events`: one Struct for each kind.

A record is an object with a `kind`, the time `at` in microseconds, and the fields of its kind. It
may have other fields, which are ignored.

The server and the map of the records share `read_record`: every function downstream accepts a
record that it has read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from millstream.errors import InputError
from millstream.feeds.names import Position
from millstream.nearest import did_you_mean

LONGEST_NAME = 200
MOST_SOURCES = 10_000
"""The maximum number of sources of an aggregated producer."""
LATEST = 10**17
"""Times are below this, since they are written with 17 digits."""
NAME_PATTERN = r"^[^\x00-\x1f\x7f-\x9f" "\U0010ffff]+$"
"""The characters of names: no control characters, which separate the parts of an entry's name, and
not the last character, which marks references (`names.MARKS`)."""
LARGEST = 1.7e308

# `CHECKS` has the error messages. These types are for the OpenAPI document; tests compare the two.
Name = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_NAME, extra_json_schema={"pattern": NAME_PATTERN}),
]
"""The name of a consumer or a producer, or the id of a post."""
Time = Annotated[int, Meta(gt=0, lt=LATEST)]
"""In microseconds since 1970."""
Positive = Annotated[float, Meta(gt=0, le=LARGEST)]
NotNegative = Annotated[float, Meta(ge=0, le=LARGEST)]


def _kind(class_name: str) -> str:
    return class_name.removesuffix("Record").lower()


class RecordFields(msgspec.Struct, frozen=True, tag_field="kind", tag=_kind, kw_only=True):
    """The fields of all records."""

    at: Time

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class PairFields(RecordFields, frozen=True):
    """The fields of a record about a consumer and a producer."""

    consumer: Name
    producer: Name


class FollowRecord(PairFields, frozen=True):
    pass


class UnfollowRecord(PairFields, frozen=True):
    pass


class BlockRecord(PairFields, frozen=True):
    """Ends the follow. The producer cannot be followed until it is unblocked."""


class UnblockRecord(PairFields, frozen=True):
    pass


class ViewRecord(RecordFields, frozen=True):
    """A consumer viewed its feed."""

    consumer: Name
    count: Positive = 1.0
    """The number of views."""
    flow: NotNegative | None = None
    """The posts a second in the feed."""
    ratio: Positive | None = None
    """The cost of a push relative to a pull, as measured by then."""
    wholesale: bool = False
    """True if all of the consumer's producers must be on push."""


class SeenRecord(RecordFields, frozen=True):
    """A consumer has read its feed up to a post."""

    consumer: Name
    upto: Position


class PostRecord(RecordFields, frozen=True):
    producer: Name
    id: Name
    value: Any
    ratio: Positive | None = None
    """As in `ViewRecord`."""


class EditRecord(RecordFields, frozen=True):
    producer: Name
    id: Name
    value: Any


class DeleteRecord(RecordFields, frozen=True):
    producer: Name
    id: Name


class AggregateRecord(RecordFields, frozen=True):
    """Names all producers whose posts a producer has besides its own. An empty list ends the
    aggregation."""

    producer: Name
    sources: Annotated[list[Name], Meta(max_length=MOST_SOURCES)]


PairChange = FollowRecord | UnfollowRecord | BlockRecord | UnblockRecord
PostChange = PostRecord | EditRecord | DeleteRecord
ConsumerRecord = PairChange | ViewRecord | SeenRecord
ProducerRecord = PostChange | AggregateRecord
Record = ConsumerRecord | ProducerRecord


def _fields(records: Any) -> dict[str, dict[str, bool]]:
    """By kind: the fields of a record, and whether it must have them."""
    return {
        record.__struct_config__.tag: {
            field.name: field.required for field in msgspec.structs.fields(record)
        }
        for record in get_args(records)
    }


FIELDS: Mapping[str, Mapping[str, bool]] = _fields(Record)
OF_CONSUMER, OF_PRODUCER = tuple(_fields(ConsumerRecord)), tuple(_fields(ProducerRecord))
KINDS = tuple(FIELDS)
_is_name = re.compile(NAME_PATTERN).fullmatch


def read_record(record: Any) -> Record:
    """Reads a record. Raises InputError with what it must be."""
    if not isinstance(record, dict):
        raise InputError(f"a record of feeds must be an object; got {type(record).__name__}")
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        hint = did_you_mean(str(kind), KINDS)
        raise InputError(f"kind must be one that feeds know; got {kind!r}; {hint}")
    _check_fields(kind, record)
    try:
        read = convert_record(record)
    except msgspec.ValidationError as error:
        raise InputError(f"a record of kind {kind!r}: {error}") from None
    if isinstance(read, AggregateRecord) and read.producer in read.sources:
        raise InputError(f"producer {read.producer!r} must not be a source of itself")
    return read


def convert_record(record: Mapping[str, Any]) -> Record:
    """Converts a record that has been checked."""
    converted: Record = msgspec.convert(record, Record)
    return converted


def _check_fields(kind: str, record: dict[str, Any]) -> None:
    """Checks that all fields are present and have valid values, for clearer messages than those of
    a conversion."""
    fields = FIELDS[kind]
    for field, is_required in fields.items():
        if is_required and field != "at" and field not in record:
            raise InputError(f"a record of kind {kind!r} must have {field!r}; got {_keys(record)}")
    for field, check in CHECKS.items():
        if field in fields and (field in record or field == "at"):
            check(field, record.get(field))


def check_name(field: str, name: Any) -> None:
    """Checks a consumer, a producer or an id: it must be text that can be part of an entry's
    name."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise InputError(f"{field} must be text of 1 to {LONGEST_NAME} characters; got {name!r}")
    if not _is_name(name):
        raise InputError(f"{field} must have no control characters; got {name!r}")


def _check_time(field: str, time: Any) -> None:
    if isinstance(time, bool) or not isinstance(time, int) or not 0 < time < LATEST:
        raise InputError(f"{field} must be a time in whole microseconds since 1970; got {time!r}")


def _check_position(field: str, position: Any) -> None:
    has_shape = isinstance(position, list) and len(position) == 3 and isinstance(position[0], int)
    if not has_shape or not all(isinstance(part, str) for part in position[1:]):
        raise InputError(f"{field} must be [time, producer, id] of a post; got {position!r}")


def _check_positive(field: str, number: Any) -> None:
    if number is not None and (not _is_finite(number) or number <= 0):
        raise InputError(f"{field} must be a number over 0; got {number!r}")


def _check_not_negative(field: str, number: Any) -> None:
    if number is not None and (not _is_finite(number) or number < 0):
        raise InputError(f"{field} must be a number from 0; got {number!r}")


def _check_sources(field: str, sources: Any) -> None:
    if not isinstance(sources, list):
        raise InputError(f"{field} must be a list of producers; got {sources!r}")
    if len(sources) > MOST_SOURCES:
        raise InputError(f"{field} must be {MOST_SOURCES} at most; got {len(sources)}")
    for source in sources:
        check_name("a source", source)


def _is_finite(given: Any) -> bool:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return is_number and -LARGEST <= given <= LARGEST


CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    **dict.fromkeys(("consumer", "producer", "id"), check_name),
    "at": _check_time,
    "upto": _check_position,
    **dict.fromkeys(("ratio", "count"), _check_positive),
    "flow": _check_not_negative,
    "sources": _check_sources,
}
"""By field: how its values are checked."""


def _keys(record: dict[str, Any]) -> str:
    return ", ".join(sorted(map(str, record))) or "nothing"
