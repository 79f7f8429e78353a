"""The parsing of server-sent events: by the standard, however the bytes are cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from millstream.client.sse import EventParser, ServerEvent


def parsed(data: bytes, *cuts: int) -> list[ServerEvent]:
    parser, places = EventParser(), [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(places)]
    return [event for piece in pieces for event in parser.feed(piece)]


WHOLE = (
    "\ufeff: a comment\r\n"
    "retry: 250\r\n\r\n"
    'event: record\r\nid: 7\r\ndata: {"a":\r\ndata:  1}\r\n\r\n'
    "data:é\u2028x\rdata\r\r"
    "id: 8\n\n"
    "event: gone\n\n"
    "other: field\ndata: last\n\n"
    "data: unfinished\n"
).encode()
EVENTS = [
    ServerEvent("record", '{"a":\n 1}', "7"),
    ServerEvent("message", "é\u2028x\n", "7"),
    ServerEvent("message", "last", "8"),
]


def test_the_standard():
    """Comments and unknown fields are skipped, data lines are joined, one blank is taken off, an
    event without data is none, an id stays until the next, what is unfinished is dropped."""
    assert parsed(WHOLE) == EVENTS


@given(st.lists(st.integers(0, len(WHOLE)), max_size=30))
def test_cut_anywhere(cuts):
    """Where the bytes are cut makes no difference: not in a character, a mark or a line end."""
    assert parsed(WHOLE, *cuts) == EVENTS


def test_byte_by_byte():
    """Nor does it if every byte comes alone."""
    assert parsed(WHOLE, *range(len(WHOLE))) == EVENTS


def test_line_ends_are_equal():
    """LF, CR and CRLF end a line alike, and blank lines in a row are no events."""
    for end in ("\n", "\r", "\r\n"):
        text = f"data: 1{end}{end}{end}data: 2{end}{end}"
        for cuts in ((), range(len(text))):
            assert [event.data for event in parsed(text.encode(), *cuts)] == ["1", "2"]


def test_ids_and_retries():
    """An id may come alone and may be emptied, one with a NUL is none; a retry must be digits."""
    parser = EventParser("4")
    assert [*parser.feed(b"id: 5\n\n")] == []
    assert (parser.last_id, parser.retry) == ("5", None)
    assert [*parser.feed(b"id: 6\x00\nretry: 1s\ndata: x\n\n")] == [
        ServerEvent("message", "x", "5")
    ]
    assert parser.retry is None
    assert [*parser.feed(b"id\nretry: 1500\ndata: y\n\n")] == [ServerEvent("message", "y", "")]
    assert parser.retry == 1.5
    assert [*parser.feed(b"id: 9\ndata: z\n")] == []
    assert parser.last_id == ""
    """An event that is not whole was not seen."""
