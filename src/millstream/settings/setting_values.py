"""Parsers for the value of each setting, from a flag, a variable, a TOML file or code.

A parser takes the value and the place where it was set. It returns the parsed value, or raises a
DefinitionError that says what the value must be. The same parsers read all four places, so they
accept text wherever it is unambiguous.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from millstream.actions.address import parse_action_address
from millstream.databases.options import database_options
from millstream.errors import DefinitionError, InputError, PlaceError
from millstream.kafka.sink_topic import sink_topic
from millstream.kafka.topic import source_topic
from millstream.model.duration import UNITS, microseconds
from millstream.model.function import RESERVED_STREAMS
from millstream.model.size import MIB as MIB
from millstream.model.size import byte_count
from millstream.model.source import Source
from millstream.model.text_form import PLAIN_TEXT
from millstream.nearest import nearest
from millstream.places.place_address import is_place
from millstream.settings.cluster_options import INSTALLED, MASTERS, master_kind, spark_settings
from millstream.sources.address import (
    CASSANDRA,
    FORMATS,
    KAFKA,
    LOG,
    PARQUET,
    POSTGRES,
    SERVICES,
    SQLITE,
    parse_address,
)

SOURCE_FORMATS = ("json", "csv", "text", "parquet", LOG, KAFKA)
SINK_FORMATS = ("json", "parquet", LOG, SQLITE, POSTGRES, CASSANDRA, KAFKA)
LANES = ("auto", "one-task", "shuffled")
SECOND, MINUTE, DAY = UNITS["s"], UNITS["m"], UNITS["d"]
FOR_EVER = "for ever"
_FLAGS = {"1": True, "true": True, "yes": True, "on": True}
_FLAGS |= {"0": False, "false": False, "no": False, "off": False}


def check_address(text: object, where: str, *, sink: bool, stream: str = "") -> None:
    """DefinitionError unless `text` is FORMAT:PATH with a format that a source (a sink) has."""
    if not isinstance(text, str):
        raise _wrong(where, "FORMAT:PATH, as in json:data/in", text)
    known = SINK_FORMATS if sink else SOURCE_FORMATS
    form, colon, path = text.partition(":")
    if colon and FORMATS.get(form.strip().lower()) not in known:
        near = nearest(form.strip(), [name for name, right in FORMATS.items() if right in known])
        hint = "" if near is None else f"; did you mean {FORMATS[near]}:{path}?"
        raise DefinitionError(
            f"{where}: a {'sink' if sink else 'source'}'s format must be one of "
            f"{', '.join(known)}; got {text!r}{hint}"
        )
    try:
        address = parse_address(text, where)
        if address.format == KAFKA and sink:
            sink_topic(address.path, address.options, where)
        if address.format == KAFKA and not sink:
            source_topic(address.path, address.options, where)
    except InputError as error:  # here it is the definition that is wrong, not yet the input
        raise DefinitionError(str(error)) from None
    if address.format in (SQLITE, POSTGRES, CASSANDRA) and stream in RESERVED_STREAMS:
        raise DefinitionError(
            f"{where}: {stream!r} has events of several streams, with more to them than a table's "
            "columns hold; give it json:DIR, parquet:DIR or log:DIR"
        )
    if address.format == PARQUET and address.options:
        if not sink:
            raise DefinitionError(f"{where}: only a sink has the option columns; got {text!r}")
        if address.option("columns") != "json":
            raise DefinitionError(
                f"{where}: columns must be json, or be left out: then a type that is declared has "
                f"a column for each field; got {text!r}"
            )
    if address.format in (POSTGRES, CASSANDRA):
        database_options(address.format, address.path, dict(address.options), where)


_FORMS = {
    "pattern": ("text",),
    "starts": ("text",),
    "encoding": ("text", "csv"),
    "delimiter": ("csv",),
}
"""The file formats to which each text option of a source applies. Records that are sent to a source
may be text too."""


def check_form(source: Source, address: str) -> None:
    """Refuses options of a source that do not apply to the format of its records."""
    parsed = parse_address(address)
    form, log = parsed.format, parsed.format == LOG
    if form == KAFKA:
        form, log = parsed.option("format") or "json", False
    for word, formats in _FORMS.items():
        is_set = getattr(source.text, word) != getattr(PLAIN_TEXT, word)
        if is_set and not log and form not in formats:
            raise DefinitionError(
                f"source {source.name!r}: {word} must be left out, or be of {' or '.join(formats)} "
                f"files; got it with the address {address}; did you mean "
                f"{formats[0]}:{address.partition(':')[2]}?"
            )
    plain = form == "text" and source.text.pattern is None
    for word, field in (("key", source.key), ("ts", source.ts)):
        if plain and isinstance(field, str) and field != "line":
            raise DefinitionError(
                f"source {source.name!r}: {word} must be 'line', which is all that a line of text "
                f"has without a pattern; got {field!r}; give it a pattern with that group"
            )
    if source.jump is not None and parsed.format in (LOG, KAFKA):
        kind = "an event log" if log else "a topic"
        raise DefinitionError(
            f"source {source.name!r}: jump must be left out, or be of files, where the records "
            f"after one are known; its records come from {kind}: give it an address such as "
            "text:DIR"
        )


def relative_to(address: str, directory: Path) -> str:
    """Returns the address with a relative path resolved against `directory`."""
    form, _, path = address.partition(":")
    if FORMATS.get(form.strip().lower()) in SERVICES:
        return address
    return address if "://" in path or not path else f"{form}:{directory / Path(path).expanduser()}"


def _whole(least: int, most: int | None = None) -> Callable[[Any, str], int]:
    must = (
        f"a whole number, {least} or more"
        if most is None
        else f"a whole number from {least} to {most}"
    )

    def parse(value: Any, where: str) -> int:
        text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
        number = int(text) if re.fullmatch(r"\d{1,9}", text) else -1
        if number < least or (most is not None and number > most):
            raise _wrong(where, must, value)
        return number

    return parse


def _bytes(least: int) -> Callable[[Any, str], int]:
    def parse(value: Any, where: str) -> int:
        count = byte_count(value, where)
        if count < least:
            raise _wrong(where, f"{least} byte or more", value)
        return count

    return parse


def _flag(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _FLAGS:
        return _FLAGS[value.lower()]
    raise _wrong(where, "true or false", value)


def _lane(value: Any, where: str) -> str:
    if value not in LANES:
        raise _wrong(where, f"one of {', '.join(LANES)}", value)
    return str(value)


def _path(value: Any, where: str) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise _wrong(where, "a path", value)
    return Path(value).expanduser()


def _store(value: Any, where: str) -> Path | str:
    """Parses a folder, or the address of a place."""
    try:
        return str(value) if is_place(value) else _path(value, where)
    except PlaceError as error:
        raise DefinitionError(f"{where}: {error}") from None


def _master(value: Any, where: str) -> str:
    if not isinstance(value, str) or master_kind(value) is None:
        raise _wrong(where, f"a Spark master: {MASTERS}", value)
    return value


def _command(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value or any(letter.isspace() for letter in value):
        raise _wrong(where, "a command or a path, such as python3.11", value)
    return value


def _runtime(value: Any, where: str) -> str:
    """Parses the file of a runtime archive, or INSTALLED."""
    return INSTALLED if value == INSTALLED else str(_path(value, where))


def _memory(value: Any, where: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[1-9]\d*[kmgtKMGT]b?", value):
        raise _wrong(where, "an amount of memory such as 512m or 2g", value)
    return value.lower()


def _addresses(sink: bool) -> Callable[[Any, str], dict[str, str]]:
    def parse(value: Any, where: str) -> dict[str, str]:
        if not isinstance(value, Mapping):
            raise _wrong(where, "a mapping of streams to addresses", value)
        for name, address in value.items():
            check_address(address, f"{where}, {name!r}", sink=sink, stream=name)
        return dict(value)

    return parse


def _actions(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _wrong(where, "a mapping of actions to addresses", value)
    for name, address in value.items():
        parse_action_address(address, f"{where}, {name!r}")
    return dict(value)


def _limits(value: Any, where: str) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise _wrong(where, "a mapping of updates to numbers of events", value)
    return {name: _whole(1)(limit, f"{where}, {name!r}") for name, limit in value.items()}


def _positive(value: Any, where: str) -> int:
    duration = microseconds(value, where)
    if duration <= 0:
        raise _wrong(where, "a duration over 0", value)
    return duration


def _wrong(where: str, must: str, value: object) -> DefinitionError:
    return DefinitionError(f"{where} must be {must}; got {value!r}")


def _name(value: Any, where: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9.:\[\]_-]+", value):
        raise _wrong(where, "a host's name or address, such as 127.0.0.1", value)
    return value


def _hosts(value: Any, where: str) -> tuple[str, ...]:
    hosts = value.split(",") if isinstance(value, str) else value
    if not isinstance(hosts, list | tuple):
        raise _wrong(where, "names of hosts", value)
    return tuple(_name(host, where) for host in hosts)


def _networks(value: Any, where: str) -> tuple[str, ...]:
    networks = value.split(",") if isinstance(value, str) else value
    if not isinstance(networks, list | tuple):
        raise _wrong(where, "addresses or networks", value)
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            must = "an address or a network, such as 10.0.0.7 or 10.0.0.0/8"
            raise _wrong(where, must, network) from None
    return tuple(networks)


def _file_or_stderr(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(where, "a file, or - for stderr", value)
    return value


def _age(value: Any, where: str) -> int | None:
    return None if value == FOR_EVER else microseconds(value, where)


def _names(value: Any, where: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) and name for name in names):
        raise _wrong(where, "names that `millstream plan` gives, or 'all'", value)
    return names


def _flush(value: Any, where: str) -> int | None:
    if value == "batch":
        return None
    try:
        interval = microseconds(value, where)
    except DefinitionError:
        raise _wrong(where, "'batch' or an interval such as '10s'", value) from None
    if not interval:
        raise _wrong(where, "'batch' or an interval over 0", value)
    return interval


def _kept(value: Any, where: str) -> int | None:
    return None if value == FOR_EVER else _bytes(0)(value, where)


PARSERS: dict[str, Callable[[Any, str], Any]] = {
    "store": _store,
    "cache": _path,
    "standby": _flag,
    "accept_loss": _names,
    "lease": _positive,
    "sources": _addresses(sink=False),
    "sinks": _addresses(sink=True),
    "actions": _actions,
    "action_tries": _whole(1),
    "action_patience": _age,
    "action_timeout": _positive,
    "shards": _whole(1, 1024),
    "tasks": _whole(1),
    "available_now": _flag,
    "final": _flag,
    "batch_bytes": _bytes(1),
    "batch_seconds": _positive,
    "limits": _limits,
    "small_bytes": _bytes(0),
    "lane": _lane,
    "master": _master,
    "memory": _memory,
    "spark": spark_settings,
    "listen": _name,
    "secret_file": _path,
    "encrypt": _flag,
    "python": _command,
    "runtime": _runtime,
    "serve": _flag,
    "host": _name,
    "port": _whole(0, 65535),
    "hosts": _hosts,
    "token_file": _path,
    "tokens": _path,
    "trusted_proxies": _networks,
    "access_log": _file_or_stderr,
    "tls_cert": _path,
    "tls_key": _path,
    "max_body": _bytes(1),
    "rate": _whole(1),
    "connections": _whole(1),
    "fan_out": _whole(1),
    "backlog_bytes": _bytes(1),
    "retain_age": _age,
    "retain_bytes": _kept,
    "package": _path,
    "slate_warn": _bytes(1),
    "slate_limit": _bytes(1),
    "flush": _flush,
    "check_store": _flag,
    "sink_patience": microseconds,
}
"""Every setting's name and parser."""
