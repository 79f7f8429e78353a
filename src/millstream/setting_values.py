"""The value of each setting, from whatever a flag, a variable, a TOML file or code gives.

A parser takes the value and where it was set, and returns it or raises DefinitionError with what
must be. The same parsers read all four places, so text is taken where it is clear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from millstream.actions.address import parse_action_address
from millstream.errors import DefinitionError, InputError
from millstream.model.duration import UNITS, microseconds
from millstream.model.function import RESERVED_STREAMS
from millstream.model.size import MIB as MIB
from millstream.model.size import byte_count
from millstream.model.source import Source
from millstream.model.text_form import PLAIN_TEXT
from millstream.nearest import nearest
from millstream.sources.address import FORMATS, LOG, SQLITE, parse_address

SOURCE_FORMATS = ("json", "csv", "text", "parquet", LOG)
SINK_FORMATS = ("json", "parquet", LOG, SQLITE)
LANES = ("auto", "one-task", "shuffled")
SECOND, MINUTE, DAY = UNITS["s"], UNITS["m"], UNITS["d"]
FOR_EVER = "for ever"
_MASTER = re.compile(r"local(\[[^\]]+\])?|spark://[A-Za-z0-9._-]+:\d{1,5}")
_FLAGS = {"1": True, "true": True, "yes": True, "on": True}
_FLAGS |= {"0": False, "false": False, "no": False, "off": False}


def check_address(text: object, where: str, *, sink: bool, stream: str = "") -> None:
    """An address is FORMAT:PATH, and the format one that a source reads or a sink writes."""
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
    except InputError as error:  # here it is the definition that is wrong, not yet the input
        raise DefinitionError(str(error)) from None
    if address.format == SQLITE and stream in RESERVED_STREAMS:
        raise DefinitionError(
            f"{where}: {stream!r} has many events of a key, of several streams, and a table holds "
            "only the latest of each key; give it json:DIR, parquet:DIR or log:DIR"
        )


_FORMS = {
    "pattern": ("text",),
    "starts": ("text",),
    "encoding": ("text", "csv"),
    "delimiter": ("csv",),
}
"""The formats of files that each word of a source about its text is for. What is sent to a source
may be text too."""


def check_form(source: Source, address: str) -> None:
    """Refuse what a source says of a form that its records do not have."""
    form = parse_address(address).format
    for word, formats in _FORMS.items():
        given = getattr(source.text, word) != getattr(PLAIN_TEXT, word)
        if given and form != LOG and form not in formats:
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
    if source.jump is not None and form == LOG:
        raise DefinitionError(
            f"source {source.name!r}: jump must be left out, or be of files, where the records "
            "after one are known; its records come from an event log: give it an address such as "
            "text:DIR"
        )


def relative_to(address: str, directory: Path) -> str:
    """The address with its path, if it is a relative one, counted from `directory`."""
    form, _, path = address.partition(":")
    return address if "://" in path or not path else f"{form}:{directory / Path(path).expanduser()}"


def _whole(least: int, most: int | None = None) -> Callable[[Any, str], int]:
    must = f"a whole number, {least} or more" if most is None else f"from {least} to {most}"

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


def _master(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _MASTER.fullmatch(value):
        raise _wrong(
            where,
            "a Spark master: local[*], local[4], or spark://HOST:PORT of a standalone cluster "
            "whose workers are on this machine, as the store is",
            value,
        )
    return value


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
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise _wrong(where, "names of hosts", value)
    return tuple(_name(host, where) for host in given)


def _age(value: Any, where: str) -> int | None:
    return None if value == FOR_EVER else microseconds(value, where)


def _flush(value: Any, where: str) -> int | None:
    if value == "batch":
        return None
    try:
        interval = microseconds(value, where)
    except DefinitionError:
        raise _wrong(where, "'batch' or an interval such as '10s'", value) from None
    if not interval:
        raise _wrong(where, "'batch' or an interval of more than nothing", value)
    return interval


def _kept(value: Any, where: str) -> int | None:
    return None if value == FOR_EVER else _bytes(0)(value, where)


PARSERS: dict[str, Callable[[Any, str], Any]] = {
    "store": _path,
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
    "serve": _flag,
    "host": _name,
    "port": _whole(0, 65535),
    "hosts": _hosts,
    "token_file": _path,
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
PATHS = {name for name, parser in PARSERS.items() if parser is _path}
"""Settings that are paths: in a file they are counted from it."""
