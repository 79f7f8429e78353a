"""How events become the bodies of requests."""

import dataclasses
import math
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.client.batches import MAX_BYTES, MAX_EVENTS, as_lines, batches, encoded
from millstream.errors import CodecError


@given(st.lists(st.sampled_from([0, 1, 20, 3000, MAX_BYTES, MAX_BYTES + 1]), max_size=40))
def test_every_line_is_in_one_batch(sizes):
    """Each line that is not blank is sent once, in order, with its number, or refused as too long;
    no body is larger than it may be."""
    lines = [b"x" * size for size in sizes]
    sent, refused = [], []
    for batch in batches(lines):
        assert batch.lines or batch.refused
        assert len(batch.body) <= MAX_BYTES
        assert batch.body == b"\n".join(batch.lines)
        sent += zip(batch.numbers, batch.lines, strict=True)
        refused += [one.line for one in batch.refused]
    numbered = [*enumerate(lines, 1)]
    assert sent == [(n, line) for n, line in numbered if 0 < len(line) <= MAX_BYTES]
    assert refused == [n for n, line in numbered if len(line) > MAX_BYTES]


def test_a_batch_is_full():
    """A batch has at most 500 events. A None ends it early, and an empty batch is not sent."""
    sizes = [len(batch.lines) for batch in batches([b"1"] * (2 * MAX_EVENTS + 1))]
    assert sizes == [MAX_EVENTS, MAX_EVENTS, 1]
    parts = [batch.numbers for batch in batches([None, b"1", None, None, b"", b"3", b"4"])]
    assert parts == [[1], [3, 4]]


def test_a_generator_is_not_held():
    """A full batch is given before another event is asked for."""
    asked = []

    def events():
        for number in range(10 * MAX_EVENTS):
            asked.append(number)
            yield number

    next(batches(encoded(events())))
    assert len(asked) == MAX_EVENTS


@dataclasses.dataclass
class Checkin:
    venue: str
    photo: bytes | None = None


def test_what_an_event_may_be():
    """Anything that JSON can carry becomes one line of it."""
    events = [{"b": "x\ny", "a": [1, None]}, "é", 1.5, True, None, (1, 2), Checkin("Walmart")]
    assert list(encoded(events)) == [
        b'{"a":[1,null],"b":"x\\ny"}', '"é"'.encode(), b"1.5", b"true", b"null", b"[1,2]",
        b'{"photo":null,"venue":"Walmart"}',
    ]  # fmt: skip
    assert list(encoded([datetime(2024, 5, 6)])) == [b'"2024-05-06T00:00:00"']


@pytest.mark.parametrize(
    "event", [b"x", {"a": [b"x"]}, {"a": {"b": bytearray(b"x")}}, Checkin("Walmart", b"x")]
)
def test_bytes_are_refused(event):
    """Bytes, at any depth, are refused by name: as base64 text nobody would expect them."""
    with pytest.raises(CodecError, match=r"^event 2: an event must be .* bytes are not; send them"):
        list(encoded([1, event]))


@pytest.mark.parametrize("event", [math.nan, {"a": math.inf}, object(), {1: 2}, "\ud800"])
def test_what_json_cannot_carry_is_refused(event):
    """So is any value that would arrive changed."""
    with pytest.raises(CodecError, match=r"^event 1: a value must be what JSON can carry"):
        list(encoded([event]))


def test_lines_lose_their_ends():
    """Lines may be text or bytes and have their ends; a line break inside one is refused."""
    assert list(as_lines(["1\n", b" 2 \r\n", "\n", None, "é"])) == [
        b"1", b"2", b"", None, "é".encode(),
    ]  # fmt: skip
    with pytest.raises(CodecError, match="line 2 holds a line break"):
        list(as_lines(["1", "[\n1]"]))
