"""Parses the address of a source that is a topic.

    kafka:TOPIC?servers=HOST:PORT,...&OPTION=VALUE

| option | |
|---|---|
| `format` | the format of a record's value: `json` (the default), `text` or `bytes` |
| `key` | `record`: the key is the record's, even if the source declares a field |
| `time` | `record`: the time is the record's, even if the source declares a field |
| `headers` | a field that the record's headers are put into |
| `start` | where a source that has read nothing begins: `earliest` (the default), or `latest` |
| `lost` | records that retention removed before they were read: `fail`, or `skip` and count them |
| `group` | the consumer group that the store's positions are committed to, for others to see |
| `client.NAME` | a setting of the client library |
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl

import msgspec

from millstream.errors import InputError
from millstream.kafka.client import CLIENT, SERVERS, check_client_options
from millstream.nearest import did_you_mean

RECORD = "record"
_CHOICES = {
    "format": ("json", "text", "bytes"),
    "key": (RECORD,),
    "time": (RECORD,),
    "start": ("earliest", "latest"),
    "lost": ("fail", "skip"),
}
_FREE = (SERVERS, "headers", "group")


class SourceTopic(msgspec.Struct, frozen=True):
    """A topic, and how its records become events. Contains no secrets."""

    name: str
    options: tuple[tuple[str, str], ...]
    """All options, for the client."""
    format: str = "json"
    key: str = ""
    time: str = ""
    headers: str = ""
    start: str = "earliest"
    lost: str = "fail"
    group: str = ""

    @property
    def where(self) -> str:
        """The start of an error message.

        >>> SourceTopic("clicks", ()).where
        'kafka:clicks'
        """
        return f"kafka:{self.name}"

    def partition(self, number: int) -> str:
        """The location of a record without its offset, as a dead letter names it.

        >>> SourceTopic("clicks", ()).partition(3)
        'kafka:clicks/3'
        """
        return f"{self.where}/{number}"


def topic_at(address: str) -> SourceTopic | None:
    """The topic that a source's whole address names; None if the address is of another kind.

    >>> topic_at("kafka:clicks?servers=a:9092,b:9092&lost=skip").lost
    'skip'
    >>> topic_at("json:/data")
    """
    kind, _, path = address.partition(":")
    if kind != "kafka":
        return None
    name, _, options = path.partition("?")
    return source_topic(name, parse_qsl(options, keep_blank_values=True))


def source_topic(
    name: str, options: Iterable[tuple[str, str]], where: str = "address"
) -> SourceTopic:
    """The topic that an address names; InputError if its options are not those of a source.

    >>> source_topic("clicks", [("servers", "a:9092"), ("start", "latest")]).start
    'latest'
    """
    given = tuple(options)
    check_client_options(given, where)
    known = {}
    for option, value in given:
        if option.startswith(CLIENT):
            continue
        if option not in _CHOICES and option not in _FREE:
            hint = did_you_mean(option, [*_CHOICES, *_FREE, f"{CLIENT}..."])
            raise InputError(f"{where}: unknown option {option!r} of a topic; {hint}")
        choices = _CHOICES.get(option)
        if choices is not None and value not in choices:
            must = " or ".join(choices)
            raise InputError(f"{where}: the option {option} must be {must}; got {value!r}")
        if option != SERVERS:
            known[option] = value
    return SourceTopic(name, given, **known)
