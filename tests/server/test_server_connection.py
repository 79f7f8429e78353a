"""The connection: bodies, heads and clients that take their time, over real sockets."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from guarding import is_refused, make, post
from raw_http import answer, connected, ended, exchange, head
from served import asked, served, until

from millstream.errors import DefinitionError
from millstream.server.http.descriptors import Fit, fit
from millstream.server.options import ServerOptions, check

CERTIFICATE = Path(__file__).parent / "localhost.pem"


def test_a_body_that_says_it_is_too_large(url):
    """The body is refused before any of it is read."""
    found = exchange(url, post(url, "Content-Length: 100001"))
    assert is_refused(found, 413, "at most 100000 bytes")


def test_a_body_that_turns_out_too_large(url):
    """A chunked body is refused once it exceeds the limit, even if it never ends."""
    with connected(url) as connection:
        connection.sendall(post(url, "Transfer-Encoding: chunked"))
        for _ in range(11):
            connection.sendall(b"2710\r\n" + b"1" * 10_000 + b"\r\n")
        assert is_refused(answer(connection), 413)


def test_a_body_of_just_the_limit(url):
    """The limit itself is allowed, with a length and in chunks."""
    record = b'"' + b"x" * 99_998 + b'"'
    assert exchange(url, post(url, "Content-Length: 100000") + record).status == 200
    chunk = b"186a0\r\n" + record + b"\r\n0\r\n\r\n"
    assert exchange(url, post(url, "Transfer-Encoding: chunked") + chunk).status == 200


def test_a_connection_outlives_a_body_too_large(url):
    """A client that sends the body anyway can read the answer, and continue."""
    with connected(url) as connection:
        connection.sendall(post(url, "Content-Length: 3000000") + b"x" * 3_000_000)
        assert is_refused(answer(connection), 413)
        connection.sendall(head(url))
        assert answer(connection).status == 200


def test_a_body_that_does_not_come(url):
    """A client that says it sends and does not is answered, and its connection closed."""
    began = time.monotonic()
    with connected(url) as connection:
        connection.sendall(post(url, "Content-Length: 10") + b"123")
        assert is_refused(answer(connection), 408, "no pause of over 0.6")
        assert ended(connection)
    assert 0.5 < time.monotonic() - began < 5


def test_a_body_in_drops(url):
    """A client that never pauses for long, but takes very long in all, is cut off too."""
    began = time.monotonic()
    with connected(url) as connection:
        connection.sendall(post(url, "Content-Length: 100000"))
        connection.settimeout(0.2)
        found = b""
        while not found and time.monotonic() - began < 10:
            connection.sendall(b"1")
            try:
                found = connection.recv(12)
            except TimeoutError:
                pass
    assert found == b"HTTP/1.1 408"
    assert time.monotonic() - began > 2


def test_many_large_bodies_at_once(url):
    """Each is within the limit, all together are not: some are refused, and none is held after."""
    part = post(url, "Transfer-Encoding: chunked") + b"17318\r\n" + b"1" * 95_000 + b"\r\n"
    with ExitStack() as stack:
        senders = [stack.enter_context(connected(url)) for _ in range(12)]
        for sender in senders:
            sender.sendall(part)
        statuses = {answer(sender).status for sender in senders}
    assert statuses == {408, 503}
    assert httpx.post(f"{url}/streams/checkins", json="x" * 90_000).status_code == 200


def test_a_body_that_is_asked_for(url):
    """A client that waits for `100 Continue` gets it."""
    with connected(url) as connection:
        connection.sendall(post(url, "Content-Length: 4", "Expect: 100-continue"))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"true")
        assert answer(connection).status == 200


def test_a_head_that_does_not_come(url):
    """A connection without a whole request's head does not stay, whether it is the first request
    or one after another; whoever has begun one is told."""
    parts = [b"", b"\r\n", b"GET /hea", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: y"]
    with ExitStack() as stack:
        first = [stack.enter_context(connected(url)) for _ in parts]
        later = [stack.enter_context(connected(url)) for _ in parts[1:]]
        for connection in later:
            connection.sendall(head(url))
            assert answer(connection).status == 200
        for connection, sent in zip(first + later, parts + parts[1:], strict=True):
            connection.sendall(sent)
        for connection in first + later:
            assert is_refused(answer(connection), 408)
            assert ended(connection)


def test_a_flood_of_headers(url):
    """A head without end is refused while it comes; so are too many headers."""
    many = head(url, "GET /healthz HTTP/1.1", *(f"X-{n}: {n}" for n in range(100)))
    assert is_refused(exchange(url, many), 431, "100 headers")
    with connected(url) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        try:
            for _ in range(100):
                connection.sendall(b"x" * 65_536)
        except OSError:
            pass  # it hung up
        else:
            pytest.fail("a head of 6 MB was taken")


def test_one_address_has_its_rate(tmp_path):
    """Requests above the rate are refused with when to come again, and later taken again."""
    with asked(make(tmp_path / "store"), rate=20.0) as client:
        found = [client.get("/healthz") for _ in range(60)]
        assert {one.status_code for one in found} == {200, 429}
        assert sum(one.status_code == 200 for one in found) >= 40
        assert found[-1].headers["retry-after"] == "1"
        until(lambda: client.get("/healthz").status_code == 200)


def test_a_client_that_takes_nothing(url):
    """Answers that nobody reads do not pile up: the connection is broken."""
    with connected(url) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(0.1)
        sent = until(lambda: _sends(connection, head(url, "GET /openapi.json HTTP/1.1") * 50))
        assert sent == "broken"


def _sends(connection: socket.socket, data: bytes) -> str:
    try:
        connection.sendall(data)
    except TimeoutError:
        return ""
    except OSError:
        return "broken"
    return ""


def test_there_is_an_end_to_connections(tmp_path):
    """At most `connections` connections are active. A further one gets 503 with Retry-After. Idle
    ones are displaced by newer ones. Room is reused when others close."""
    with served(make(tmp_path / "store"), connections=20) as url, ExitStack() as stack:
        place = ("127.0.0.1", int(url.rpartition(":")[2]))
        opened = [stack.enter_context(connected(url)) for _ in range(20)]
        for connection in opened:
            connection.sendall(head(url, "GET /slates/count/Walmart/watch HTTP/1.1"))
            assert connection.recv(12) == b"HTTP/1.1 200"
        with connected(url) as surplus:
            surplus.sendall(post(url, "Content-Length: 5000") + b"1" * 5_000)
            found = answer(surplus)
            assert is_refused(found, 503, "there are 20 connections")
            assert found.headers["retry-after"] == "5"
        many = [stack.enter_context(socket.create_connection(place, 10)) for _ in range(70)]
        assert ended(many[0])
        for connection in (*many, *opened):
            connection.close()
        until(lambda: httpx.get(f"{url}/healthz").status_code == 200)


def test_connections_fit_into_the_descriptors():
    """The limit is raised as far as it may be; a default that does not fit is made smaller, and
    said; a number that was asked for and does not fit is refused."""
    assert fit(None, soft=1_024, hard=10_000) == Fit(4_096, 4_352)
    assert fit(100, soft=1_024, hard=1_024) == Fit(100, 1_024)
    fewer = fit(None, soft=1_024, hard=2_048)
    assert (fewer.connections, fewer.descriptors) == (1_792, 2_048)
    assert "ulimit -n" in fewer.warning
    with pytest.raises(DefinitionError, match="set connections to at most 1792"):
        fit(5_000, soft=1_024, hard=2_048)
    with pytest.raises(DefinitionError, match="connections must be above 0; got 0"):
        check(ServerOptions(Path("store"), connections=0))


def test_tls(tmp_path):
    """With a certificate it speaks TLS, and nothing else."""
    store = make(tmp_path / "store")
    with served(store, tls_cert=CERTIFICATE, tls_key=CERTIFICATE) as url:
        assert url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
        with httpx.Client(base_url=url, verify=trusting) as client:
            assert client.get("/slates/count/Walmart").json()["slate"] == {"count": 1}
            assert len(client.get("/slates/count/dump").text.splitlines()) == 1
        with pytest.raises(httpx.HTTPError):
            httpx.get(url.replace("https", "http"))
