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
from millstream.model.migration import FORMERLY, former_names
from millstream.model.path import is_unicode
from millstream.model.slate import Table

_encode_json = msgspec.json.Encoder(order="sorted").encode  # the fields of dataclasses too
_encode_as_is = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode
BYTES_TAG = b"\x00"


def encode_value(value: Any) -> bytes:
    """Returns the canonical bytes of a value; CodecError if JSON cannot carry it."""
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
    """Decodes a value from its canonical bytes, or from any JSON text."""
    if encoded[:1] == BYTES_TAG:
        return encoded[1:]
    return _decode_json(encoded)


def decode_values(encoded: Sequence[bytes]) -> list[Any]:
    """Decodes many values with one call of the JSON decoder."""
    joined = b",".join(encoded)
    if BYTES_TAG in joined:
        return [decode_value(value) for value in encoded]
    values: list[Any] = _decode_json(b"[" + joined + b"]")
    return values


def canonical(encoded: bytes) -> bytes:
    """Returns the canonical bytes of a value from any encoding of it."""
    return encoded if encoded[:1] == BYTES_TAG else _encode_json(_decode_json(encoded))


_FINITE = frozenset({str, int, bool, bytes, type(None), msgspec.UnsetType})


def _refuse_not_finite(value: Any) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise CodecError(f"a value must be what JSON can carry, and {value!r} is not: use None")
        return
    for item in _within(value):
        if type(item) not in _FINITE:
            _refuse_not_finite(item)


def encode_slate(slate: Any) -> bytes:
    """Encodes a slate as JSON. Keys keep the order in which they were set: it is part of a dict."""
    try:
        encoded = _encode_as_is(slate)
        if b"[" in encoded and _holds_set(slate):
            encoded = _encode_as_is(_sets_in_order(slate))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise CodecError(f"a slate must be what JSON can carry: {error}") from None
    if b"null" in encoded:
        _refuse_not_finite(slate)
    return encoded


FEW = 8
"""Up to this many entries, looking at each is faster than encoding them."""
BITS = 63
"""A whole number of at most so many bits, and a sign, is written and read by any JSON library. One
of thousands of digits is not, not even by Python."""


def settled(slate: dict[Any, Any]) -> bool:
    """True if a dict slate has only a few entries, and none that JSON could change or refuse."""
    if len(slate) > FEW:
        return False
    for name, item in slate.items():
        if type(name) is not str or not (name.isascii() or is_unicode(name)):
            return False
        kind = type(item)
        if kind is int:
            if item.bit_length() > BITS:
                return False
        elif kind is str:
            if not (item.isascii() or is_unicode(item)):
                return False
        elif item is not None and kind is not bool:  # a float may be NaN
            return False
    return True


def _encode_dict_slate(slate: Any) -> bytes:
    """Encodes a dict slate as JSON. Only text can be a key, at any depth: another key would come
    back as text, and a count under 5 would be found under "5"."""
    try:
        if type(slate) is dict and settled(slate):
            return _encode_as_is(slate)
        encoded = _encode_as_is(slate)
        if b"[" in encoded and _holds_set(slate):
            slate = _sets_in_order(slate)
            encoded = _encode_as_is(slate)
        _encode_json(slate)  # it refuses such keys, faster than a loop over them here would
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        why = str(error).removesuffix(" when `order` is not `None`")
        raise CodecError(f"a slate must be what JSON can carry: {why}") from None
    if b"null" in encoded:
        _refuse_not_finite(slate)
    return encoded


_SETS = frozenset({set, frozenset})
_LEAVES = frozenset({str, int, float, bool, bytes, type(None)})


def _holds_set(value: Any) -> bool:
    """True if there is a set anywhere in the value; called only if its JSON has an array."""
    kinds = set(map(type, _within(value)))
    if kinds & _SETS:
        return True
    return not kinds <= _LEAVES and any(
        _holds_set(item) for item in _within(value) if type(item) not in _LEAVES
    )


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.astuple(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return ()


def _sets_in_order(value: Any) -> Any:
    """Returns the value with its sets as lists, ordered by their items' JSON. A set has no order of
    its own, so each process would store it in a different order."""
    if isinstance(value, set | frozenset):
        return sorted(map(_sets_in_order, value), key=_item_order)
    if isinstance(value, dict):
        return {key: _sets_in_order(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sets_in_order(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: _sets_in_order(getattr(value, field.name)) for field in fields}
    if isinstance(value, msgspec.Struct):
        fields_in_order = {
            name: _sets_in_order(getattr(value, name)) for name in value.__struct_fields__
        }
        return msgspec.structs.replace(value, **fields_in_order)
    return value


def _item_order(item: Any) -> tuple[bool, Any, bytes]:
    """Sorts numbers by value, before everything else, which is sorted by its JSON."""
    number = type(item) in (int, float)
    return not number, item if number else 0, _encode_json(item)


def encode_slates(slates: list[Any]) -> list[bytes]:
    """Encodes many dict slates, each as `slate_codec` does; raises if any cannot be encoded."""
    encoded = _encode_dict_slate(slates)  # checks all of them at once
    if len(slates) > 1:
        return list(map(_encode_as_is, slates))
    return [encoded[1:-1]] if slates else []


@dataclasses.dataclass(frozen=True, slots=True)
class SlateCodec:
    """Creates, encodes and decodes one kind of slate. A table's entries are coded one by one."""

    fresh: Callable[[], Any]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


@cache
def slate_codec(slate: type) -> SlateCodec:
    """Returns the codec of a slate type: dict or dataclass (tables: see `SlateCodec`)."""
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
    return SlateCodec(slate, encode_slate, _decode_fields(slate, decoder.decode))


Decode = Callable[[bytes], Any]


def _decode_fields(slate: type, decode: Decode) -> Decode:
    """Returns the decoder of a dataclass: it reads former names of fields, and sets fields that
    were not stored to their defaults in the slate itself. (msgspec would leave such fields unset.
    They would not be stored, and would change with the class's default.)"""
    names = former_names(slate)
    if names:
        decode = _decode_renamed(decode, names)
    nested = any(part is not slate for part in _dataclasses_in(slate))
    for part in _dataclasses_in(slate):
        if part is not slate and any(FORMERLY in f.metadata for f in dataclasses.fields(part)):
            raise DefinitionError(
                f"slate {slate.__name__}: {part.__name__} is part of it, and a field of it has "
                "formerly=, which only the slate's own fields may have; write a migration"
            )
    if not hasattr(slate(), "__dict__"):
        return decode
    fields = [field.name for field in dataclasses.fields(slate)]
    count = len(fields)

    def complete(data: bytes) -> Any:
        decoded = decode(data)
        if len(decoded.__dict__) < count:
            decoded.__dict__ = {name: getattr(decoded, name) for name in fields}
        return decoded

    def complete_all(data: bytes) -> Any:
        decoded = decode(data)
        _complete(decoded)
        return decoded

    return complete_all if nested else complete


def _decode_renamed(decode: Decode, names: dict[str, str]) -> Decode:
    marks = [_encode_json(name) + b":" for name in names]

    def renamed(data: bytes) -> Any:
        if not any(mark in data for mark in marks):  # nearly always, once slates are rewritten
            return decode(data)
        stored = _decode_json(data)
        if not isinstance(stored, dict) or stored.keys().isdisjoint(names):
            return decode(data)
        for former, name in names.items():
            if former in stored:
                stored.setdefault(name, stored[former])
                del stored[former]
        return decode(_encode_as_is(stored))

    return renamed


def _dataclasses_in(slate: type) -> set[type]:
    """Returns the dataclasses that a slate is made of, itself included."""
    classes: set[type] = set()
    seen: set[int] = set()
    types: list[Any] = [msgspec.inspect.type_info(slate)]
    while types:
        info = types.pop()
        if isinstance(info, list | tuple):
            types.extend(info)
        elif isinstance(info, msgspec.inspect.Field):
            types.append(info.type)
        elif isinstance(info, msgspec.inspect.Type) and id(info) not in seen:
            seen.add(id(info))
            if isinstance(info, msgspec.inspect.DataclassType):
                classes.add(info.cls)
            types.extend(getattr(info, name) for name in info.__struct_fields__)
    return classes


def _complete(value: Any) -> None:
    """Sets the fields of every dataclass in a value that only its class has so far."""
    if dataclasses.is_dataclass(value) and hasattr(value, "__dict__"):
        fields = dataclasses.fields(value)
        if len(value.__dict__) < len(fields):
            whole = {field.name: getattr(value, field.name) for field in fields}
            vars(value).clear()
            vars(value).update(whole)
    for item in _within(value):
        if type(item) not in _LEAVES:
            _complete(item)


def readable_slate(slate: type, memory: Any) -> bytes:
    """Encodes a slate and checks that it can be read back; CodecError if not.

    A dataclass lets a function put anything into a field. Without this check that event would pass,
    and every later event of its key would fail.
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
    """Returns the shards of a function's keys: a stable hash, modulo the number of shards."""
    start = crc32(function.encode() + b"\x00")
    return [crc32(key.encode(), start) % shards for key in keys]


def shard_of(function: str, key: str, shards: int) -> int:
    """Returns the shard that holds the slate of (function, key)."""
    return shards_of(function, (key,), shards)[0]
