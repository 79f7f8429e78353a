"""Requests for what is not there, must not be had, or would cost too much: to a server without a
token and to one with. Each is answered with a sentence, or not at all, and costs little."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from abuse import MOST_MEMORY, SOON, Door, doors, many, opened
from raw_http import answer, connected

pytestmark = pytest.mark.usefixtures("stays_unharmed")
MB = 1 << 20
JSON = "Content-Type: application/json"
BOMB = gzip.compress(b"1\n" * (10 * MB), compresslevel=1)


@pytest.fixture(scope="module", params=["open", "token"])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    """A server over a store with large slates and with large keys."""
    slates = {f"large-{number}": {"text": "x" * (2 * MB)} for number in range(4)}
    slates |= {"k" * 4_096: {"count": 1}}
    path = tmp_path_factory.mktemp("abuse")
    yield from doors(path, request, slates=slates, stall=3.0, body_timeout=3.0)


@pytest.mark.parametrize(
    "path",
    [
        "/page/../../../../etc/passwd",
        "/page/..%2F..%2F..%2Fetc%2Fpasswd",
        "/page/%2e%2e%2fapp.py",
        "/page/..%252f..%252fapp.py",
        "/page/index.html%00.js",
        "/page//etc/passwd",
        "/packages/..%2F..%2Fstore.json",
        "/packages/%2Fetc%2Fpasswd",
        "/packages/" + "a" * 64,
        "/streams/..%2Fcount/records",
        "/streams/%2e%2e/records",
        "/slates/..%2F..%2Fetc/passwd",
        "/slates/count%00/Walmart",
        "/slates/count/%ff%fe",
        "/slates/count/%zz",
        "/../slates/count/Walmart",
        "//slates/count/Walmart",
    ],
)
def test_paths_lead_nowhere(door: Door, path: str):
    """A name in a path is looked up, and never a file's."""
    said = door.said(door.head(f"GET {path} HTTP/1.1"))
    assert said.split()[1] in (b"400", b"404", b"409")
    assert b"root:" not in said
    assert b'"shards"' not in said


@pytest.mark.parametrize(
    "method",
    ["CONNECT", "TRACE", "TRACK", "OPTIONS", "PATCH", "PROPFIND", "DELETE", "get", "G" * 40],
)
def test_methods_that_are_none(door: Door, method: str):
    """None is taken for another, and none tells a page of another site that it may come."""
    said = door.said(door.head(f"{method} /healthz HTTP/1.1", "Origin: http://localhost"))
    assert said.split()[1] in (b"400", b"403", b"405")
    assert b"access-control-allow" not in said.lower()


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "localhost.evil.test",
        "localhost@evil.test",
        "evil.test#localhost",
        "localhost:99999999",
        "[::1]evil.test",
        "127.0.0.1.evil.test",
        "localhost, evil.test",
        "",
    ],
)
def test_names_that_are_not_the_servers(door: Door, host: str):
    """A page whose name was made to point here comes under its own name, and gets nothing."""
    lines = ["GET /slates HTTP/1.1", f"Host: {host}", *door.right_lines, "", ""]
    assert door.statuses("\r\n".join(lines).encode()) in ([421], [400])


def test_two_names(door: Door):
    """A request with two hosts is refused, even if one of them is right. So is a foreign host in
    the request line."""
    assert door.statuses(door.head("GET /slates HTTP/1.1", "Host: evil.test")) == [400]
    assert door.statuses(door.head("GET http://evil.test/slates HTTP/1.1")) == [400]
    assert door.statuses(door.head(f"GET {door.url}/slates HTTP/1.1")) == [200]


@pytest.mark.parametrize(
    "query",
    [
        "limit=-1",
        "limit=0",
        "limit=" + "9" * 400,
        "limit=1e9",
        "limit=%D9%A3",
        "limit=1&limit=2",
        "after=" + "z" * 15_000,
        "prefix=%ff",
        "unknown=1",
        "&".join(f"x{number}=1" for number in range(400)),
        "key=" + "k" * 5_000 + "&prefix=x",
    ],
    ids=lambda query: query[:24],
)
def test_questions_without_sense(door: Door, query: str):
    """Senseless parameters for slates and records get an empty answer or a refusal."""
    for path in ("/slates/count", "/streams/clicks/records"):
        said = door.said(door.head(f"GET {path}?{query} HTTP/1.1"))
        assert said.split()[1] in (b"200", b"400", b"404")
        assert len(said) < MB


@pytest.mark.parametrize(
    "begin", ["-" + "9" * 30, "9" * 30, "18446744073709551616", "-0", "nan", "%00", "end%20", "+1"]
)
def test_places_in_a_stream_that_are_none(door: Door, begin: str):
    """By the query, and as the number of the last event that a client says it had."""
    path = f"/streams/clicks/records?from={begin}"
    assert door.statuses(door.head(f"GET {path} HTTP/1.1")) in ([200], [400])
    ask = door.head("GET /streams/clicks/tail HTTP/1.1", f"Last-Event-ID: {begin}")
    with connected(door.url) as connection:
        connection.sendall(ask)
        assert connection.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 400")


def test_an_address_that_is_too_long(door: Door):
    """16 KiB of path or of query are the most, whoever asks."""
    for line in ("/slates/count/" + "k" * 20_000, "/slates/count?prefix=" + "k" * 20_000):
        assert door.statuses(door.head(f"GET {line} HTTP/1.1")) == [414]


def test_headers_by_the_thousand(door: Door):
    """100 are the most; more bytes than a head may have are cut off."""
    few = [f"X-{number}: y" for number in range(200)]
    assert door.statuses(door.head("GET /healthz HTTP/1.1", *few)) == [431]
    lots = [f"X-{number}: y" for number in range(20_000)]
    assert door.statuses(door.head("GET /healthz HTTP/1.1", *lots)) in ([431], [])


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "x-gzip", "gzip, gzip"])
def test_bodies_that_would_unfold(door: Door, coding: str):
    """Twenty megabytes in a hundred kilobytes are not unpacked."""
    body = BOMB
    coded = (f"Content-Encoding: {coding}", f"Content-Length: {len(body)}")
    before = door.events()
    assert door.statuses(door.post(*coded) + body) == [415]
    assert door.events() == before


@pytest.mark.parametrize("kind", ["", "text/html", "multipart/form-data; boundary=x", "*/*"])
def test_bodies_that_a_form_could_send(door: Door, kind: str):
    """A form of another site sends text, or parts. A body that is not declared as events is
    refused."""
    line = "POST /streams/clicks HTTP/1.1"
    said = door.said(door.head(line, f"Content-Type: {kind}", "Content-Length: 1") + b"1")
    assert said.split()[1] == b"415"


@pytest.mark.parametrize(
    "key", ["", "x" * 201, "x" * 60_000, "\xff\xfe", "a\tb"], ids=lambda key: repr(key[:6])
)
def test_idempotency_keys_that_are_none(door: Door, key: str):
    """Idempotency keys are stored with the records, so they must be short text."""
    before = door.events()
    found = door.statuses(door.post(f"Idempotency-Key: {key}", "Content-Length: 1") + b"1")
    assert found in ([400], [431], [])
    assert door.events() == before


def test_a_key_for_two_bodies(door: Door):
    """A second body under the same idempotency key does not overwrite the first."""
    first = door.post("Idempotency-Key: two", "Content-Length: 1") + b"1"
    assert door.statuses(first) == [200]
    other = door.post("Idempotency-Key: two", "Content-Length: 1") + b"2"
    assert door.statuses(other) == [422]
    before = door.events()
    assert b'"repeated":true' in door.said(first)
    assert door.events() == before


@pytest.mark.parametrize(
    "upgrade",
    [
        (
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ),
        ("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"),
        ("Upgrade: TLS/1.3", "Connection: Upgrade"),
    ],
    ids=["websocket", "h2c", "tls"],
)
def test_other_protocols(door: Door, upgrade: tuple[str, ...]):
    """Nobody gets past the guard by asking for another protocol; a body behind it is no request."""
    found = door.statuses(door.head("GET /healthz HTTP/1.1", *upgrade))
    assert found in ([200], [400])
    before = door.events()
    hidden = door.post("Content-Length: 1") + b"1"
    body = (f"Content-Length: {len(hidden)}",)
    assert door.statuses(door.post(*upgrade, *body) + hidden)[:1] == [400]
    assert door.events() == before


def test_a_body_in_the_smallest_chunks(door: Door):
    """A byte a chunk, for two megabytes of them: it is taken, and costs no more than its bytes."""
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in b'"' + b"x" * (MB // 2) + b'"')
    with connected(door.url, 30.0) as connection:
        connection.sendall(door.post("Transfer-Encoding: chunked") + chunks + b"0\r\n\r\n")
        assert answer(connection).status == 200


def test_bodies_where_none_belongs(door: Door):
    """A GET with a body is answered as if there were none, and the body is no request."""
    hidden = door.post("Content-Length: 1") + b"1"
    before = door.events()
    ask = door.head("GET /healthz HTTP/1.1", f"Content-Length: {len(hidden)}")
    assert door.statuses(ask + hidden) == [200]
    ask = door.head("HEAD /healthz HTTP/1.1", f"Content-Length: {len(hidden)}")
    assert door.statuses(ask + hidden) == [200]
    assert door.events() == before


def test_hundreds_who_wait_to_be_told_to_go_on(door: Door):
    """`Expect: 100-continue`, and then nothing: they hold nobody up."""
    ask = door.post("Content-Length: 1000000", "Expect: 100-continue")
    with many(door, 300) as connections:
        for connection in connections:
            connection.sendall(ask)
        assert door.answers() < SOON


@pytest.mark.parametrize(
    "path",
    [
        "/slates/count?limit=1000",
        "/slates/count/large-1",
        "/slates/count/dump",
        "/slates/count/large-2/watch",
        "/openapi.json",
        "/metrics",
        "/history",
    ],
)
def test_large_answers_that_nobody_reads(door: Door, path: str):
    """A hundred clients each ask three times and read nothing: they hold little, and not for
    long."""
    ask = door.head(f"GET {path} HTTP/1.1")
    with ExitStack() as stack:
        for _ in range(100):
            connection = stack.enter_context(connected(door.url))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            with suppress(OSError):
                connection.sendall(ask * 3)
        assert door.answers() < SOON
    assert door.peak() < MOST_MEMORY, f"{door.peak() >> 20} MB"


def test_many_who_watch_a_large_slate(tmp_path: Path):
    """A hundred watchers of one slate of two megabytes, none of which reads, share it."""
    with opened(
        tmp_path / "store", guarded=False, slates={"large": {"text": "x" * (2 * MB)}}
    ) as door:
        ask = door.head("GET /slates/count/large/watch HTTP/1.1")
        before = door.peak()
        with ExitStack() as stack:
            watchers = [stack.enter_context(connected(door.url)) for _ in range(100)]
            for watcher in watchers:
                watcher.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                watcher.sendall(ask)
            for watcher in watchers:
                assert watcher.recv(12) == b"HTTP/1.1 200"
        assert door.peak() - before < 120 * MB


def test_a_long_key_does_not_stop_paging(door: Door):
    """The longest key that there may be can be asked for, and is passed by a page's `after`."""
    with httpx.Client(base_url=door.url, headers=door.right, timeout=30) as client:
        keys, after = [], None
        while True:
            page = client.get(
                "/slates/count", params={"limit": 1} | ({"after": after} if after else {})
            ).json()
            keys += [one["key"] for one in page["slates"]]
            after = page.get("next")
            if after is None:
                break
        assert "k" * 4_096 in keys
        assert len(keys) == 6
        assert client.get("/slates/count/" + "k" * 4_096).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"since": "' + b"9" * 100_000 + b'"}',
        b'{"function": ' + b"[" * 100_000,
        b'{"limit": -1}',
        b'{"limit": 1e400}',
        b'{"kind": "other"}',
        b'{"unknown": 1}',
        b"\xff\xfe",
        b"[]",
        b"null",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_retries_without_sense(door: Door, body: bytes):
    """A request to retry letters takes JSON that says which, and nothing else."""
    length = f"Content-Length: {len(body)}"
    ask = door.head("POST /deadletters/retry HTTP/1.1", JSON, length) + body
    assert door.statuses(ask) in ([400], [422])


def test_retries_of_another_site(door: Door):
    """A page elsewhere cannot have letters retried, whatever it calls its body."""
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
        ask = door.head(
            "POST /deadletters/retry HTTP/1.1",
            *(f"Content-Type: {kind}", "Origin: http://evil.test", "Content-Length: 2"),
        )
        assert door.statuses(ask + b"{}") == [403]


def test_agents_that_are_none(door: Door):
    """A hello must be one, under the name of the path, and no longer than a name."""
    for node, body in (
        ("web1", b"{}"),
        ("web1", b"[" * 200_000),
        ("n" * 10_000, b'{"member": {"node": "%s"}}' % (b"n" * 10_000)),
        ("%00", b"\x00"),
    ):
        line = f"POST /agents/{node} HTTP/1.1"
        found = door.statuses(door.head(line, JSON, f"Content-Length: {len(body)}") + body)
        assert found in ([400], [409], [414])


def test_questions_for_jobs_that_are_none(door: Door):
    """By GET and by POST: there are no news of them, and nobody waits for any."""
    name = "j" * 4_000
    assert door.statuses(door.head(f"GET /jobs/{name}/news?wait=30 HTTP/1.1")) in ([404], [400])
    body = b'{"nodes": [' + b'"n",' * 200_000 + b'"n"]}'
    line = f"POST /jobs/{name}/news HTTP/1.1"
    found = door.statuses(door.head(line, JSON, f"Content-Length: {len(body)}") + body)
    assert found in ([404], [400])
