"""Clients that do not speak TLS as they should: those who do are served all the same."""

from __future__ import annotations

import resource
import socket
import ssl
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from abuse import MOST_MEMORY, SOON, TOKEN, Door
from checkins import checkins_store
from raw_http import connected, rest
from server.forked_server import ForkedServer

from millstream.server.options import ServerOptions

CERTIFICATE = Path(__file__).parent / "localhost.pem"
CONNECTIONS = 40


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    made = checkins_store(tmp_path_factory.mktemp("tls") / "store")
    made.commit({"count": {"Walmart": {"count": 1}}})
    secured = {"tls_cert": CERTIFICATE, "tls_key": CERTIFICATE, "connections": CONNECTIONS}
    server = ForkedServer(
        ServerOptions(made.path, port=0, token=TOKEN, body_timeout=3.0, **secured)
    )
    try:
        yield Door(server.url, server.pid, True, made.path)
    finally:
        server.kill()


@pytest.fixture(autouse=True)
def _served(door: Door) -> Iterator[None]:
    """Checks that the server still answers an authorised client, and that its memory is small."""
    yield
    assert asked(door) == 200
    assert door.peak() < MOST_MEMORY


def asked(door: Door) -> int:
    found = httpx.get(f"{door.url}/slates", headers=door.right, verify=False, timeout=SOON)
    return found.status_code


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextmanager
def secured(door: Door) -> Iterator[ssl.SSLSocket]:
    with connected(door.url) as plain, trusting().wrap_socket(plain) as connection:
        yield connection


@pytest.mark.parametrize(
    "data",
    [
        b"GET /slates HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\xff\xff" + b"\x00" * 60_000,
        b"\x16\x03\x01\x00\x05hello",
        b"\x80\x2e\x01\x00\x02" + b"\x00" * 100,
        b"\x00" * 100_000,
        b"SSH-2.0-x\r\n",
    ],
    ids=["http", "a long record", "no hello", "ssl 2", "zeros", "ssh"],
)
def test_what_is_no_handshake(door: Door, data: bytes):
    """The connection is closed without an answer in plain text."""
    with connected(door.url) as connection:
        try:
            connection.sendall(data)
        except OSError:
            return
        assert b"HTTP" not in rest(connection)


def test_thousands_who_never_begin(door: Door):
    """More connections than the server may have descriptors, none of which begins its handshake:
    they displace each other, and whoever comes meanwhile is answered."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4_096)), hard))
    try:
        place = urlsplit(door.url)
        with ExitStack() as stack:
            for _ in range(1_500):
                stack.enter_context(socket.create_connection((place.hostname, place.port), 10.0))
            for _ in range(3):
                assert asked(door) == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(list(Path(f"/proc/{door.pid}/fd").iterdir())) < CONNECTIONS + 256


def test_a_handshake_that_stops_halfway(door: Door):
    """Half of a hello, from more clients than there may be connections."""
    hello = ssl.MemoryBIO(), ssl.MemoryBIO()
    begun = trusting().wrap_bio(*hello)
    with pytest.raises(ssl.SSLWantReadError):
        begun.do_handshake()
    half = hello[1].read()[:100]
    with ExitStack() as stack:
        for _ in range(2 * CONNECTIONS):
            connection = stack.enter_context(connected(door.url))
            connection.sendall(half)
        assert asked(door) == 200


def test_secured_connections_that_do_nothing(door: Door):
    """More of them than there may be: the idle ones make room."""
    with ExitStack() as stack:
        for _ in range(CONNECTIONS + 20):
            stack.enter_context(secured(door))
        assert asked(door) == 200


def test_a_request_that_comes_with_the_handshake(door: Door):
    """Bytes sent right after the handshake are not lost, however they are cut."""
    head = door.head("GET /healthz HTTP/1.1")
    for cut in (len(head), 1, 20):
        with secured(door) as connection:
            connection.sendall(head[:cut])
            connection.sendall(head[cut:])
            assert connection.recv(12) == b"HTTP/1.1 200"


def test_old_versions_are_refused(door: Door):
    """TLS 1.1 and before are no TLS any more."""
    context = trusting()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with connected(door.url) as plain, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(plain)


def test_a_wrong_token_over_tls(door: Door):
    """Encrypted or not, only the token opens."""
    wrong = {"Authorization": "Bearer wrong"}
    assert httpx.get(f"{door.url}/slates", headers=wrong, verify=False).status_code == 401
