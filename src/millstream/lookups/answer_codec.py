"""Encodes answers of lookups as JSON, with the types that the clients of databases return.

The types are recognised by name: their libraries are optional, and are not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)
from typing import Any

import msgspec

from millstream.errors import CodecError

_TEXTS = (IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network)
_TEXT_NAMES = {
    *("cassandra.util.Date", "cassandra.util.Time", "cassandra.util.Duration"),
    *("psycopg.types.range.Range", "psycopg.types.multirange.Multirange"),
}
_LIST_NAMES = {"cassandra.util.SortedSet"}
_WRONG = (TypeError, ValueError, RecursionError, OverflowError)


def _as_json(value: Any) -> Any:
    """Returns a text, list or dict for a value that msgspec does not know."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__}
    if isinstance(value, _TEXTS) or names & _TEXT_NAMES:
        return str(value)
    if names & _LIST_NAMES:
        return list(value)
    if isinstance(value, Mapping):
        return {_key_text(key): item for key, item in value.items()}
    raise TypeError(f"a value of type {_type_name(value)}")


_encode = msgspec.json.Encoder(enc_hook=_as_json).encode


def _key_text(key: Any) -> str:
    """Returns a map's key as text: itself if its JSON is a string, otherwise its JSON."""
    encoded = _encode(key)
    return msgspec.json.decode(encoded) if encoded[:1] == b'"' else encoded.decode()


def encode_answer(answer: Any) -> bytes:
    """Returns the JSON of an answer. If JSON cannot carry it, raises CodecError, which names the
    column and its type.

    >>> encode_answer({"place": IPv4Address("10.0.0.1")})
    b'{"place":"10.0.0.1"}'
    """
    try:
        return _encode(answer)
    except _WRONG as error:
        raise CodecError(_what_is_wrong(answer, error)) from error


def _what_is_wrong(answer: Any, error: Exception) -> str:
    if isinstance(answer, Mapping):
        for column, value in answer.items():
            try:
                _encode(value)
            except _WRONG as wrong:
                return f"column {column!r} must be of a type that JSON can carry; got {wrong}"
    return f"the answer must be what JSON can carry; got {error}"


def _type_name(value: Any) -> str:
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"
