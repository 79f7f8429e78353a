"""Canonical bytes of values, the encoding of slates, and the shard hash.

A value is whatever JSON can carry, or bytes. Its **canonical bytes** are compact JSON with sorted
keys, or, for bytes, a zero byte and the bytes themselves (JSON text never holds a zero byte). They
decide the content order of events, so the reference and the engine both use them, and a consumer
always sees the decoded form: a tuple that was emitted arrives as a list.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any
from zlib import crc32

import msgspec

from millstream.errors import CodecError, DefinitionError
from millstream.model.slate import Table

_encode_json = msgspec.json.Encoder(order="sorted").encode  # the fields of dataclasses too
_encode_as_is = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode
BYTES_TAG = b"\x00"


def encode_value(value: Any) -> bytes:
    """The canonical bytes of a value; CodecError if JSON cannot carry it."""
    if type(value) is bytes:
        return BYTES_TAG + value
    try:
        encoded = _encode_json(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        why = str(error).removesuffix(" when `order` is not `None`")
        raise CodecError(f"a value must be what JSON can carry, or bytes: {why}") from None
    if b"null" in encoded:  # NaN and infinity are written as null: look closer, rarely
        _refuse_not_finite(value)
    return encoded


def decode_value(encoded: bytes) -> Any:
    """The value whose bytes these are (canonical or any JSON text)."""
    if encoded[:1] == BYTES_TAG:
        return encoded[1:]
    return _decode_json(encoded)


def decode_values(encoded: Sequence[bytes]) -> list[Any]:
    """Many values at once: one call of the JSON decoder for all of them."""
    joined = b",".join(encoded)
    if BYTES_TAG in joined:
        return [decode_value(one) for one in encoded]
    values: list[Any] = _decode_json(b"[" + joined + b"]")
    return values


def canonical(encoded: bytes) -> bytes:
    """Canonical bytes from any encoding of the same value."""
    return encoded if encoded[:1] == BYTES_TAG else _encode_json(_decode_json(encoded))


def _refuse_not_finite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise CodecError(f"a value must be what JSON can carry, and {value!r} is not: use None")
    if isinstance(value, dict):
        for one in value.values():
            _refuse_not_finite(one)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            _refuse_not_finite(one)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            _refuse_not_finite(getattr(value, field.name))


def encode_slate(slate: Any) -> bytes:
    """A slate's JSON, its keys in the order they were set: that order is part of a dict slate."""
    try:
        encoded = _encode_as_is(slate)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise CodecError(f"a slate must be what JSON can carry: {error}") from None
    if b"null" in encoded:
        _refuse_not_finite(slate)
    return encoded


def _encode_dict_slate(slate: Any) -> bytes:
    """A dict slate's JSON. Only text can be a key, at any depth: another key would come back as
    text, and what was counted under 5 would be found under "5"."""
    try:
        encoded = _encode_as_is(slate)
        _encode_json(slate)  # it refuses such keys, and faster than a look at each of them here
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        why = str(error).removesuffix(" when `order` is not `None`")
        raise CodecError(f"a slate must be what JSON can carry: {why}") from None
    if b"null" in encoded:
        _refuse_not_finite(slate)
    return encoded


def encode_slates(slates: list[Any]) -> list[bytes]:
    """Many dict slates, as the codec of one writes each; raises if any of them cannot be."""
    encoded = _encode_dict_slate(slates)  # looks at all of them at once
    if len(slates) > 1:
        return list(map(_encode_as_is, slates))
    return [encoded[1:-1]] if slates else []


@dataclasses.dataclass(frozen=True, slots=True)
class SlateCodec:
    """How one kind of slate is made, written and read. A table's entries are coded one by one."""

    fresh: Callable[[], Any]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


@cache
def slate_codec(slate: type) -> SlateCodec:
    """The codec of a slate type: dict or dataclass (tables: see `SlateCodec`)."""
    if slate is Table:
        raise TypeError("a table has no codec of its own")
    if slate is dict:
        return SlateCodec(dict, _encode_dict_slate, _decode_json)
    try:
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(slate)
    except (TypeError, NameError) as error:
        raise DefinitionError(
            f"slate {slate.__name__}: its fields must be of types that JSON can carry: {error}"
        ) from None
    try:
        slate()
    except TypeError as error:
        raise DefinitionError(
            f"slate {slate.__name__}: every field needs a default, so that a new key finds a "
            f"fresh slate: {error}"
        ) from None
    return SlateCodec(slate, encode_slate, decoder.decode)


def readable_slate(slate: type, memory: Any) -> bytes:
    """The bytes of a slate, once it is known that they can be read back as one.

    A dataclass lets a function put anything into a field; without this check the event that did
    would pass, and every later event of its key would fail.
    """
    codec = slate_codec(slate)
    encoded = codec.encode(memory)
    if slate is not dict:
        try:
            codec.decode(encoded)
        except msgspec.ValidationError as error:
            raise CodecError(f"slate {slate.__name__} cannot be read back: {error}") from None
    return encoded


def shards_of(function: str, keys: Iterable[str], shards: int) -> list[int]:
    """The shards that hold the slates of a function's keys: a stable hash, modulo the shards."""
    start = crc32(function.encode() + b"\x00")
    return [crc32(key.encode(), start) % shards for key in keys]


def shard_of(function: str, key: str, shards: int) -> int:
    """The shard that holds the slate of (function, key)."""
    return shards_of(function, (key,), shards)[0]
