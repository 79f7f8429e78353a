"""Requests that no honest client would send, to a server without a token and to one with: none gets
in, none is taken for two, none harms the server."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from abuse import TOKEN, Door, doors, statuses_in
from raw_http import connected

pytestmark = pytest.mark.usefixtures("stays_unharmed")
NOT_HTTP = [400]
CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture(scope="module", params=["open", "token"])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    yield from doors(tmp_path_factory.mktemp("abuse"), request)


SMUGGLED = b"POST /streams/clicks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
INNER = SMUGGLED + b"Content-Length: 1\r\n\r\n1"
HIDDEN = b"0\r\n\r\n" + INNER


@pytest.mark.parametrize(
    "framing",
    [
        ("Content-Length: 5", CHUNKED),
        (CHUNKED, "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5, 5",),
        ("Content-Length: +5",),
        ("Content-Length: -5",),
        ("Content-Length: 0x5",),
        ("Content-Length: 5 5",),
        ("Content-Length: " + "9" * 30,),
        ("Content-Length: \xb2",),
        ("Transfer-Encoding: xchunked", "Content-Length: 5"),
        ("Transfer-Encoding: identity", "Content-Length: 5"),
        ("Transfer-Encoding: chunked, identity", "Content-Length: 5"),
        ("Transfer-Encoding : chunked", "Content-Length: 5"),
        ("Transfer-Encoding:\x0bchunked", "Content-Length: 5"),
        ("X: y\r\n Transfer-Encoding: chunked", "Content-Length: 5"),
    ],
    ids=lambda framing: " + ".join(framing)[:40].encode("unicode_escape").decode(),
)
def test_a_request_in_a_request(door: Door, framing: tuple[str, ...]):
    """If a body's length is given twice, or wrongly, the server and a proxy cannot disagree about
    it: there is at most one answer, and the hidden event is not accepted."""
    before = door.events()
    found = door.statuses(door.post(*framing) + HIDDEN)
    assert len(found) <= 1
    assert found in ([400], [413])
    assert door.events() == before


@pytest.mark.parametrize(
    "chunks",
    [
        b"-1\r\n1\r\n0\r\n\r\n",
        b"1 1\r\n1\r\n0\r\n\r\n",
        b"g\r\n1\r\n0\r\n\r\n",
        b"ffffffffffffffff1\r\n1\r\n0\r\n\r\n",
        b"1\r\n12\r\n0\r\n\r\n",
        b"1\n1\n0\n\n",
        b"0x1\r\n1\r\n0\r\n\r\n",
        b"\r\n1\r\n1\r\n0\r\n\r\n",
    ],
)
def test_chunks_that_are_none(door: Door, chunks: bytes):
    """A body in chunks that breaks the rules is refused, and nothing of it is taken."""
    before = door.events()
    found = door.statuses(door.post(CHUNKED) + chunks)
    assert found == [400]
    assert door.events() == before


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n: empty\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n",
        b"GET /\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x80\x2e\x01\x00\x02\x00",
    ],
)
def test_heads_that_are_none(door: Door, head: bytes):
    """An invalid request head is refused before it is processed, and so is the rest."""
    found = door.statuses(head + door.head())
    assert found in ([], [400], [421], [505])


@pytest.mark.parametrize(
    "headers",
    [
        ("Origin: http://evil.test",),
        ("Origin: null",),
        ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"),
        ("Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"),
        ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"),
        ("Sec-Fetch-Site: cross-site",),
    ],
)
def test_pages_of_other_sites(door: Door, headers: tuple[str, ...]):
    """A page of another site gets nothing, though its browser would send the password along; a link
    that a user follows leads here."""
    assert door.statuses(door.head("GET /healthz HTTP/1.1", *headers)) == [403]
    link = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
    assert door.statuses(door.head("GET / HTTP/1.1", *link)) == [200]
    assert door.statuses(door.head("POST /streams/clicks HTTP/1.1", *link)) == [403]


@pytest.mark.parametrize(
    "given",
    [
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN} {TOKEN}",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        "Basic " + base64.b64encode(TOKEN.encode()).decode(),
        "Bearer " + "x" * 60_000,
        "Bearer \xff\xfe",
    ],
    ids=lambda given: given[:24].encode("unicode_escape").decode(),
)
def test_tokens_that_are_none(door: Door, given: str):
    """Nothing but the token itself is one."""
    found = door.statuses(door.head("GET /slates HTTP/1.1", f"Authorization: {given}", right=False))
    assert found == [401 if door.guarded else 200]


def test_two_tokens(door: Door):
    """The right one before or after a wrong one: one header is asked, not the better of two."""
    wrong, right = "Authorization: Bearer wrong", f"Authorization: Bearer {TOKEN}"
    found = door.statuses(door.head("GET /slates HTTP/1.1", right, wrong, right=False))
    assert found == [401 if door.guarded else 200]


@pytest.mark.parametrize(
    "trailer", [f"Authorization: Bearer {TOKEN}", "Idempotency-Key: a", "Host: localhost"]
)
def test_trailers_are_no_headers(door: Door, trailer: str):
    """Trailers after a body do not act as headers."""
    lines = f"1\r\n1\r\n0\r\n{trailer}\r\n\r\n".encode()
    found = [door.said(door.post(CHUNKED, right=False) + lines) for _ in range(2)]
    for answer in found:
        assert answer.split()[1] == (b"401" if door.guarded else b"200")
        assert b'"repeated":true' not in answer


def test_a_body_does_not_count_to_the_next_head(door: Door):
    """A large body and a request behind it: both are answered, nothing is cut off."""
    body = b'"' + b"x" * 200_000 + b'"'
    first = door.post(f"Content-Length: {len(body)}") + body
    for following in (door.head(), door.head("GET /healthz HTTP/1.1", "X: " + "y" * 30_000)):
        with connected(door.url) as connection:
            connection.sendall(first + following)
            said = b""
            while said.count(b"HTTP/1.1 ") < 2 and (piece := connection.recv(1 << 16)):
                said += piece
            assert statuses_in(said) == [200, 200]


def test_keys_have_a_length(door: Door):
    """An event whose slate nobody could ask for is refused, and says why."""
    body = b'{"user": "%s", "time": 1}' % (b"k" * 4_097)
    kind = "Content-Type: application/json"
    length = f"Content-Length: {len(body)}"
    said = door.said(door.head("POST /streams/checkins HTTP/1.1", kind, length) + body)
    assert said.split()[1] == b"422"
    assert b"at most 4096 bytes" in said
    body = body.replace(b"k" * 4_097, b"\xc3\xa9" * 2_048)
    length = f"Content-Length: {len(body)}"
    said = door.said(door.head("POST /streams/checkins HTTP/1.1", kind, length) + body)
    assert said.split()[1] == b"200"
