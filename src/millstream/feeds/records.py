"""The records that feeds accept, on the source `NAME.events`: one Struct for each kind.

A record is an object with a `kind`, the time `at` in microseconds, and the fields of its kind. It
may have other fields, which are ignored.

The server and the map of the records share `checked`: every function downstream accepts a record
that it has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, get_args

import msgspec

from millstream.errors import InputError
from millstream.feeds.names import Position
from millstream.nearest import did_you_mean


class RecordFields(msgspec.Struct, frozen=True, tag_field="kind", tag=str.lower, kw_only=True):
    """The fields of all records."""

    at: int

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class PairFields(RecordFields, frozen=True):
    """The fields of a record about a consumer and a producer."""

    consumer: str
    producer: str


class Follow(PairFields, frozen=True):
    pass


class Unfollow(PairFields, frozen=True):
    pass


class Block(PairFields, frozen=True):
    """Ends the follow. The producer cannot be followed until it is unblocked."""


class Unblock(PairFields, frozen=True):
    pass


class View(RecordFields, frozen=True):
    """A consumer viewed its feed."""

    consumer: str
    count: float = 1.0
    """The number of views."""
    flow: float | None = None
    """The posts a second in the feed."""
    ratio: float | None = None
    """The cost of a push relative to a pull, as measured by then."""
    wholesale: bool = False
    """True if all of the consumer's producers are to be on push."""


class Seen(RecordFields, frozen=True):
    """A consumer has read its feed up to a post."""

    consumer: str
    upto: Position


class Post(RecordFields, frozen=True):
    producer: str
    id: str
    value: Any
    ratio: float | None = None
    """As in `View`."""


class Edit(RecordFields, frozen=True):
    producer: str
    id: str
    value: Any


class Delete(RecordFields, frozen=True):
    producer: str
    id: str


class Aggregate(RecordFields, frozen=True):
    """Names all producers whose posts a producer has besides its own. An empty list ends the
    aggregation."""

    producer: str
    sources: list[str]


PairRecord = Follow | Unfollow | Block | Unblock
PostRecord = Post | Edit | Delete
ConsumerRecord = PairRecord | View | Seen
ProducerRecord = PostRecord | Aggregate
Record = ConsumerRecord | ProducerRecord


def _needs(records: Any) -> dict[str, tuple[str, ...]]:
    """By kind: the fields that a record must have besides `at`."""
    return {
        record.__struct_config__.tag: tuple(
            field.name
            for field in msgspec.structs.fields(record)
            if field.required and field.name != "at"
        )
        for record in get_args(records)
    }


NEEDS: Mapping[str, tuple[str, ...]] = _needs(Record)
OF_CONSUMER, OF_PRODUCER = tuple(_needs(ConsumerRecord)), tuple(_needs(ProducerRecord))
KINDS = (*OF_CONSUMER, *OF_PRODUCER)
NUMBERS = {"ratio": ("post", "view"), "count": ("view",)}
"""Fields that must be a number over 0 if present, with the kinds of record that have them."""
LONGEST_NAME = 200
MOST_SOURCES = 10_000
"""The maximum number of sources of an aggregated producer."""
LATEST = 10**17
"""Times are below this, since they are written with 17 digits."""


def checked(record: Any) -> dict[str, Any]:
    """Returns a valid record unchanged. Raises InputError with what it must be."""
    read_record(record)
    return record  # type: ignore[no-any-return]


def read_record(record: Any) -> Record:
    """Reads a record. Raises InputError with what it must be."""
    _check(record)
    try:
        return convert_record(record)
    except msgspec.ValidationError as error:
        raise InputError(f"a record of kind {record['kind']!r}: {error}") from None


def convert_record(record: Mapping[str, Any]) -> Record:
    """Converts a record that has been checked."""
    converted: Record = msgspec.convert(record, Record)
    return converted


def _check(record: Any) -> None:
    if not isinstance(record, dict):
        raise InputError(f"a record of feeds must be an object; got {type(record).__name__}")
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in NEEDS:
        hint = did_you_mean(str(kind), KINDS)
        raise InputError(f"kind must be one that feeds know; got {kind!r}; {hint}")
    for field in NEEDS[kind]:
        if field not in record:
            raise InputError(f"a record of kind {kind!r} must have {field!r}; got {_keys(record)}")
    for field in ("consumer", "producer", "id"):
        if field in NEEDS[kind]:
            check_name(field, record[field])
    at = record.get("at")
    if isinstance(at, bool) or not isinstance(at, int) or not 0 < at < LATEST:
        raise InputError(f"at must be a time in whole microseconds since 1970; got {at!r}")
    if kind == "seen":
        _check_upto(record["upto"])
    for field, kinds in NUMBERS.items():
        if kind in kinds and not _is_number(record.get(field, 1)):
            raise InputError(f"{field} must be a number over 0; got {record[field]!r}")
    if kind == "view" and record.get("flow", 0) != 0 and not _is_number(record["flow"]):
        raise InputError(f"flow must be a number from 0; got {record['flow']!r}")
    if kind == "aggregate":
        _check_sources(record["producer"], record["sources"])


def check_name(what: str, name: Any) -> None:
    """Checks a consumer, a producer or an id: it must be text that can be part of an entry's
    name."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise InputError(f"{what} must be text of 1 to {LONGEST_NAME} characters; got {name!r}")
    if not name.isprintable():
        raise InputError(f"{what} must have no control characters; got {name!r}")


def _check_upto(upto: Any) -> None:
    has_shape = isinstance(upto, list) and len(upto) == 3 and isinstance(upto[0], int)
    if not has_shape or not all(isinstance(part, str) for part in upto[1:]):
        raise InputError(f"upto must be [time, producer, id] of a post; got {upto!r}")


def _check_sources(producer: str, sources: Any) -> None:
    if not isinstance(sources, list):
        raise InputError(f"sources must be a list of producers; got {sources!r}")
    if len(sources) > MOST_SOURCES:
        raise InputError(f"sources must be {MOST_SOURCES} at most; got {len(sources)}")
    for source in sources:
        check_name("a source", source)
        if source == producer:
            raise InputError(f"producer {producer!r} must not be a source of itself")


def _is_number(given: Any) -> bool:
    """True if it is a finite number over 0."""
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < inf


def _keys(record: dict[str, Any]) -> str:
    return ", ".join(sorted(map(str, record))) or "nothing"
