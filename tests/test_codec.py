"""The codec: canonical bytes and their laws, the coding of slates, and the shard hash."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.codec import (
    canonical,
    decode_value,
    decode_values,
    encode_slate,
    encode_value,
    shard_of,
    shards_of,
    slate_codec,
)

TEXT = st.text()  # hypothesis leaves out lone surrogates, as UTF-8 does
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
VALUES = JSON | st.binary()


class Share(msgspec.Struct, rename={"more": "a"}):
    of: float
    more: Any = None


@dataclass
class Place:
    name: str = ""
    at: tuple[float, float] = (0.0, 0.0)


@dataclass
class Visits:
    """A slate with the kinds of fields that slates have, not in alphabetical order."""

    total: int = 0
    share: float = 0.0
    last: Place | None = None
    by_day: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    raw: bytes = b""


@dataclass
class Hours:
    by_hour: dict[int, int] = field(default_factory=dict)


@given(VALUES)
def test_a_value_comes_back(value: Any) -> None:
    """An encoded value is decoded to the same value, of the same types."""
    back = decode_value(encode_value(value))
    assert back == value
    assert repr(back) == repr(value) or isinstance(value, dict | list)


@given(JSON)
def test_canonical_bytes_are_sorted_json(value: Any) -> None:
    """The bytes are compact JSON for any reader, and never start with the tag of bytes."""
    encoded = encode_value(value)
    assert json.loads(encoded) == value
    assert not encoded.startswith(b"\x00")


@given(VALUES)
def test_canonical_bytes_are_a_fixed_point(value: Any) -> None:
    """Decoding and encoding again gives the same bytes, and so does `canonical`."""
    encoded = encode_value(value)
    assert encode_value(decode_value(encoded)) == encoded
    assert canonical(encoded) == encoded


@given(JSON, st.sampled_from([None, 2]))
def test_any_text_of_a_value_has_the_same_canonical_bytes(value: Any, indent: int | None) -> None:
    """White space and escapes do not matter."""
    written = json.dumps(value, indent=indent, ensure_ascii=True).encode()
    assert canonical(written) == encode_value(value)
    assert decode_value(written) == value


@given(st.dictionaries(TEXT, SCALARS), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    """Equal dicts have equal bytes, whatever order they were filled in."""
    items = list(value.items())
    random.shuffle(items)
    assert encode_value(dict(items)) == encode_value(value)


@given(JSON, JSON)
def test_different_values_have_different_bytes(one: Any, other: Any) -> None:
    """Bytes are equal only if the values are."""
    if encode_value(one) == encode_value(other):
        assert one == other


@given(st.lists(VALUES, max_size=5))
def test_many_values_at_once(values: list[Any]) -> None:
    """Decoding many is decoding each."""
    assert decode_values([encode_value(value) for value in values]) == values


@given(st.binary())
def test_bytes_are_carried_as_they_are(value: bytes) -> None:
    """Bytes get a tag and nothing else, so that any bytes can be a value."""
    assert encode_value(value) == b"\x00" + value
    assert canonical(encode_value(value)) == encode_value(value)


def test_a_consumer_sees_the_decoded_form() -> None:
    """Tuples arrive as lists, sets as sorted lists, and a dataclass as a dict."""
    assert decode_value(encode_value((1, (2,)))) == [1, [2]]
    assert decode_value(encode_value({"b", "a"})) == ["a", "b"]
    assert decode_value(encode_value(Place("x"))) == {"name": "x", "at": [0.0, 0.0]}


def test_the_fields_of_a_dataclass_are_sorted_too() -> None:
    """A dataclass has the bytes of the dict that it arrives as, alone or inside another value."""
    assert encode_value(Place("x")) == b'{"at":[0.0,0.0],"name":"x"}'
    for value in (Place("x"), [Place("y")], {"z": Visits()}):
        encoded = encode_value(value)
        assert canonical(encoded) == encoded


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(number: float) -> None:
    """JSON has no NaN and no infinity: refused wherever it stands, never turned into null."""
    wanted = f"a value must be what JSON can carry, and {number!r} is not: use None"
    nested: list[Any] = [number, [number], {"a": {"b": number}}, (1, number), {number}]
    structs = [Share(number), {"a": [Share(1.0, [number])]}, Share(0.5, Share(number))]
    for value in [
        *(*nested, [None, number], Visits(share=number), [Place(at=(number, 0.0))]),
        *structs,
    ]:
        with pytest.raises(ms.CodecError) as raised:
            encode_value(value)
        assert str(raised.value) == wanted


def test_a_struct_has_the_bytes_of_its_dict() -> None:
    """Its fields are sorted, by the names that they have in JSON; those that are unset are left
    out, and null is no NaN."""
    assert encode_value(Share(0.5)) == b'{"a":null,"of":0.5}'
    assert encode_value([Share(1.0, Share(2.0))]) == b'[{"a":{"a":null,"of":2.0},"of":1.0}]'
    assert encode_value(Share(0.5, msgspec.UNSET)) == b'{"of":0.5}'


def test_a_set_in_a_struct_is_ordered() -> None:
    """A slate with a set has the same bytes in every process, also if a Struct holds the set."""
    assert encode_slate({"a": Share(0.5, {"c", "a", "b"})}) == b'{"a":{"of":0.5,"a":["a","b","c"]}}'


def test_null_is_not_taken_for_nan() -> None:
    """None, and text that says null, pass."""
    for value in (None, [None], "null", {"null": None, "n": 1.5}):
        assert decode_value(encode_value(value)) == value


@pytest.mark.parametrize("value", [object(), {1: 2}, {None: 1}, {"a": object}, "\ud800", 1j])
def test_what_json_cannot_carry_is_refused(value: Any) -> None:
    """Objects, keys that are not text and broken text are told as such."""
    with pytest.raises(ms.CodecError, match=r"^a value must be what JSON can carry, or bytes: "):
        encode_value(value)


def test_keys_that_are_not_text() -> None:
    """A dict counts by text: the message says so, in words that mean something to a user."""
    with pytest.raises(ms.CodecError) as raised:
        encode_value({5: "five"})
    assert str(raised.value) == (
        "a value must be what JSON can carry, or bytes: Only dicts with str keys are supported"
    )


def test_a_value_that_holds_itself_is_refused() -> None:
    """An endless value is an error, not a crash."""
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ms.CodecError):
        encode_value(value)


@given(
    st.builds(
        Visits,
        total=st.integers(),
        share=st.floats(allow_nan=False, allow_infinity=False),
        last=st.none() | st.builds(Place, name=TEXT),
        by_day=st.dictionaries(TEXT, st.integers()),
        seen=st.sets(TEXT),
        raw=st.binary(),
    )
)
def test_a_dataclass_slate_comes_back_typed(slate: Visits) -> None:
    """A dataclass slate is decoded to itself: nested ones, sets, tuples and bytes included."""
    codec = slate_codec(Visits)
    assert codec.decode(codec.encode(slate)) == slate


@given(st.dictionaries(TEXT, JSON))
def test_a_dict_slate_comes_back(slate: dict[str, Any]) -> None:
    """A dict slate is a value like any other."""
    codec = slate_codec(dict)
    assert codec.decode(codec.encode(slate)) == slate


def test_a_dict_slate_keeps_the_order_of_its_keys() -> None:
    """The order in which keys were set is part of a dict slate; of an event's value it is not."""
    codec = slate_codec(dict)
    slate = {"b": 1, "a": {"d": 1, "c": 2}}
    assert json.dumps(codec.decode(codec.encode(slate))) == json.dumps(slate)
    assert list(decode_value(encode_value(slate))) == ["a", "b"]


@pytest.mark.parametrize("slate", [{5: 1}, {"a": {5: 1}}, {"a": [{7: 1}]}, {"a": 1, 2.5: 1}])
def test_a_dict_slate_has_keys_of_text(slate: dict[Any, Any]) -> None:
    """A number as a key would come back as text: refused, deep inside too."""
    with pytest.raises(ms.CodecError) as raised:
        slate_codec(dict).encode(slate)
    assert str(raised.value) == (
        "a slate must be what JSON can carry: Only dicts with str keys are supported"
    )


def test_a_dataclass_slate_may_have_keys_of_its_types() -> None:
    """Where a field says what its keys are, they come back as that."""
    codec = slate_codec(Hours)
    assert codec.decode(codec.encode(Hours({7: 3}))) == Hours({7: 3})


def test_a_fresh_slate_is_its_defaults() -> None:
    """Each fresh slate is a new one."""
    codec = slate_codec(Visits)
    one, other = codec.fresh(), codec.fresh()
    one.seen.add("x")
    assert other == Visits()
    assert slate_codec(dict).fresh() == {}


def test_slates_may_gain_and_lose_fields() -> None:
    """A stored slate with a field too many or too few is read: the default fills the gap."""
    codec = slate_codec(Visits)
    assert codec.decode(b'{"total":3,"gone":true}') == Visits(total=3)


def test_slates_that_cannot_be_coded() -> None:
    """A field of a type that JSON cannot carry, or without a default, is a definition error."""

    @dataclass
    class Odd:
        thing: dict[str, complex] | set[int] | list[int] = field(default_factory=list)

    @dataclass
    class Bare:
        count: int

    with pytest.raises(ms.DefinitionError, match="slate Odd: its fields must be of types that"):
        slate_codec(Odd)
    with pytest.raises(ms.DefinitionError, match="slate Bare: every field needs a default"):
        slate_codec(Bare)


def test_the_shard_hash_is_stable() -> None:
    """Shards are stored on disk and computed elsewhere: these numbers may never change."""
    assert shard_of("count", "Walmart", 1 << 32) == 3_099_585_234
    assert [shard_of("count", key, 16) for key in ("", "Walmart", "é")] == [13, 2, 9]


@given(TEXT, st.integers(1, 64))
def test_a_shard_is_one_of_the_shards(key: str, shards: int) -> None:
    """The shard of a key is in range, and depends on nothing but function, key and number."""
    assert 0 <= shard_of("count", key, shards) < shards
    assert shards_of("count", [key, "x"], shards)[0] == shard_of("count", key, shards)


def test_functions_are_sharded_apart() -> None:
    """The same keys of another function lie elsewhere, and names do not run into keys."""
    keys = [f"user{n}" for n in range(1_000)]
    one = [shard_of("count", key, 16) for key in keys]
    other = [shard_of("score", key, 16) for key in keys]
    assert one != other
    assert shard_of("ab", "c", 1 << 32) != shard_of("a", "bc", 1 << 32)
    assert max(one.count(shard) for shard in range(16)) < 2 * len(keys) / 16
