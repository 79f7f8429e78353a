"""Parses the address of a sink that is a topic.

    kafka:TOPIC?servers=HOST:PORT,...&OPTION=VALUE

| option | |
|---|---|
| `delivery` | `exactly-once` (the default); `at-least-once` for brokers without transactions |
| `time` | a record's own time: `publish`, when it is sent (the default), or `event`, its event's |
| `client.NAME` | a setting of the client library |
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from millstream.errors import InputError
from millstream.kafka.client import CLIENT, SERVERS, check_client_options
from millstream.nearest import did_you_mean

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
PUBLISH, EVENT = "publish", "event"
_CHOICES = {"delivery": (EXACTLY_ONCE, AT_LEAST_ONCE), "time": (PUBLISH, EVENT)}


class SinkTopic(msgspec.Struct, frozen=True):
    """A topic, and how records are put into it. Contains no secrets."""

    name: str
    options: tuple[tuple[str, str], ...]
    """All options, for the client."""
    delivery: str = EXACTLY_ONCE
    time: str = PUBLISH

    @property
    def where(self) -> str:
        """The start of an error message."""
        return f"sink kafka:{self.name}"


def sink_topic(name: str, options: Iterable[tuple[str, str]], where: str = "address") -> SinkTopic:
    """The topic that an address names; InputError if its options are not those of a sink.

    >>> sink_topic("counts", [("servers", "a:9092"), ("delivery", "at-least-once")]).delivery
    'at-least-once'
    """
    given = tuple(options)
    check_client_options(given, where)
    known = {}
    for option, value in given:
        if option == SERVERS or option.startswith(CLIENT):
            continue
        if option not in _CHOICES:
            hint = did_you_mean(option, [*_CHOICES, SERVERS, f"{CLIENT}..."])
            raise InputError(f"{where}: unknown option {option!r} of a topic; {hint}")
        if value not in _CHOICES[option]:
            must = " or ".join(_CHOICES[option])
            raise InputError(f"{where}: the option {option} must be {must}; got {value!r}")
        known[option] = value
    return SinkTopic(name, given, **known)
