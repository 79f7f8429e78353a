"""The guard and the connection, against requests of all kinds over real sockets."""

from __future__ import annotations

import base64
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from raw_http import Answered, answer, connected, ended, exchange, head
from served import MadeStore, asked, served, until

from millstream.description import Description, SourceDescription, write_description
from millstream.server.operations import OPERATIONS

TOKEN = "a-token-of-20-letter"
CERTIFICATE = Path(__file__).parent / "localhost.pem"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}


def make(path: Path) -> Path:
    """A store with a slate and a source that takes events."""
    made = MadeStore(path, {"count": "dict"})
    made.commit({"count": {"Walmart": {"count": 1}}})
    address = f"log:{made.home.log_of('checkins')}"
    source = SourceDescription("checkins", None, None, None, True, address)
    write_description(path, Description("retail", "arrival", [source], [], ["checkins"], [], {}))
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("guard") / "store")


@pytest.fixture(scope="module")
def url(store) -> Iterator[str]:
    with served(store, max_body=100_000, body_timeout=0.6, stall=1.0, hosts=("mill.test",)) as url:
        yield url


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[str]:
    with served(make(tmp_path_factory.mktemp("guarded") / "store"), token=TOKEN) as url:
        yield url


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def is_refused(found: Answered, status: int, said: str = "") -> bool:
    """Whether it is a JSON error of this status; what it says and its headers are held too."""
    assert found.status == status, found
    assert found.headers["content-type"] == "application/json"
    assert HEADERS.items() <= found.headers.items()
    body = httpx.Response(200, content=found.body).json()
    assert body["status"] == status
    assert said in body["error"]
    return True


def post(url: str, *headers: str) -> bytes:
    return head(url, "POST /streams/checkins HTTP/1.1", "Content-Type: application/json", *headers)


# The token


@pytest.mark.parametrize(
    "given",
    [
        None,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer ",
        "Bearer",
        TOKEN,
        basic(f"{TOKEN}:"),
        basic("me:wrong"),
        basic(TOKEN),
        "Basic %%%",
        "Basic",
        f"Digest {TOKEN}",
        "Bearer \xff",
    ],
)
def test_no_entry_without_the_token(guarded, given):
    """No token, a wrong one, or the right one in the wrong place: 401, and how to log in."""
    headers = () if given is None else (f"Authorization: {given}",)
    found = exchange(guarded, head(guarded, "GET /healthz HTTP/1.1", *headers))
    assert is_refused(found, 401, "token")
    assert found.headers["www-authenticate"] == 'Basic realm="millstream", charset="UTF-8"'


@pytest.mark.parametrize(
    "given", [f"Bearer {TOKEN}", f"bearer {TOKEN}", basic(f"me:{TOKEN}"), basic(f":{TOKEN}")]
)
def test_entry_with_the_token(guarded, given):
    """As a bearer's token, or as the password of any user, so that a browser can log in."""
    assert httpx.get(f"{guarded}/healthz", headers={"Authorization": given}).status_code == 200


def test_the_token_guards_every_route(guarded):
    """Reads too, paths that do not exist, and every method."""
    for operation in OPERATIONS:
        assert httpx.request(operation.method, guarded + operation.path).status_code == 401
    assert httpx.get(f"{guarded}/nothing").status_code == 401
    assert httpx.delete(f"{guarded}/slates").status_code == 401


def test_wrong_tokens_are_limited(tmp_path):
    """After too many, an address is not listened to for a while, even with the right one."""
    with asked(make(tmp_path / "store"), token=TOKEN) as client:
        wrong = {"Authorization": "Bearer guess"}
        tried = [client.get("/healthz", headers=wrong) for _ in range(60)]
        assert {found.status_code for found in tried} == {401, 429}
        assert int(tried[-1].headers["retry-after"]) >= 1
        until(lambda: client.get("/healthz").status_code == 200)


# Host and Origin


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]", "mill.test", "mill.test:80"]
)
def test_names_that_are_answered_to(url, host):
    """The loopback names under any port, and those that the options add."""
    assert exchange(url, head(url, host=host)).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "localhost.evil.test",
        "127.0.0.1.evil.test",
        "127.0.0.2",
        "localhost:port",
        "localhost:1:2",
        "user@localhost",
        "localhost/",
        "[::1",
        "\xff",
        " ",
    ],
)
def test_names_that_are_not(url, host):
    """Another name is refused: a page may have made its own name point here."""
    assert is_refused(exchange(url, head(url, host=host)), 421, "Host header")


def test_a_request_has_one_host(url):
    """None is refused, and so are two."""
    assert is_refused(exchange(url, b"GET /healthz HTTP/1.1\r\n\r\n"), 421)
    assert is_refused(exchange(url, b"GET /healthz HTTP/1.0\r\n\r\n"), 421)
    two = head(url, "GET /healthz HTTP/1.1", "Host: localhost")
    assert is_refused(exchange(url, two), 400, "one Host")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_our_own_page(url, scheme):
    """Our own page may: its origin is the host that the request came under."""
    origin = f"Origin: {scheme}://{url.removeprefix('http://')}"
    assert exchange(url, head(url, "GET /healthz HTTP/1.1", origin)).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.test",
        "http://localhost",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "file://",
        "chrome-extension://abc",
        "http://evil.test, http://127.0.0.1",
    ],
)
def test_pages_of_others(url, origin):
    """A page of any other origin is refused, also of another port of this machine."""
    found = exchange(url, head(url, "GET /healthz HTTP/1.1", f"Origin: {origin}"))
    assert is_refused(found, 403, "Origin header")


# Paths and methods


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/..", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/page/..%2f..%2f..%2fetc%2fpasswd", 404),
        ("/page/%2e%2e/app.py", 404),
        ("/page/", 404),
        ("//", 404),
        ("//slates", 404),
        ("/slates/", 404),
        ("/slates//Walmart", 404),
        ("/slates/count/", 404),
        ("/slates/count/Walmart/", 404),
        ("/./slates", 404),
        ("/%73lates", 404),
        ("/SLATES", 404),
        ("/slates/count/%00", 404),
        ("/slates/%00/Walmart", 404),
        ("/slates/count%00/Walmart", 404),
        ("/slates/..%2f..%2fstore.json/x", 404),
        ("/streams/..%2f..%2flock/tail", 404),
        ("/slates/count/%2e%2e", 404),
        ("/slates/count/a;b=c", 404),
        ("/slates/count/%ff", 400),
        ("/slates/count/%c0%af", 400),
        ("/slates/count/%ed%a0%80", 400),
        ("/slates/count/%", 400),
        ("/slates/count/%4", 400),
        ("/slates/count/%zz", 400),
        ("/slates/%ff", 400),
        ("/slates/count?key=%ff", 400),
        ("/slates/count?key=\xff", 400),
        ("/slates/count?limt=1", 400),
        ("/slates/count?limit=1&limit=2", 400),
        ("/slates/count/Walmart?x=1", 400),
        ("/healthz?" + "&".join("a" * 25), 400),
        ("/slates/count/" + "x" * 16_000, 404),
        ("/slates/count/" + "x" * 17_000, 414),
        ("/slates/count?key=" + "x" * 17_000, 414),
        ("/slates/count/\xff", 400),
        ("*", 404),
        ("slates", 400),
        ("", 400),
    ],
)
def test_path_tricks(url, path, status):
    """No path leads anywhere but to a route's own names; what is no UTF-8 is refused."""
    assert is_refused(exchange(url, head(url, f"GET {path} HTTP/1.1")), status)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods(url, method):
    """A method that a path does not have: 405, and which it has."""
    found = exchange(url, head(url, f"{method} /slates HTTP/1.1"))
    assert is_refused(found, 405)
    assert found.headers["allow"] == "GET, HEAD"
    assert exchange(url, head(url, f"{method} /nothing HTTP/1.1")).status == 404


def test_allow_names_what_a_path_has(url):
    """Of a path that only takes events, POST."""
    found = httpx.get(f"{url}/streams/checkins")
    assert (found.status_code, found.headers["allow"]) == (405, "POST")
    assert httpx.post(f"{url}/slates/count/dump").headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"NONSENSE /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"get /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
        b"Content-Length: 2\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 100,
    ],
)
def test_what_is_not_http(url, request_bytes):
    """It is answered with JSON, too, and the connection is closed."""
    assert is_refused(exchange(url, request_bytes), 400)


def test_head(url):
    """HEAD is GET without its body; of a stream only the head is made."""
    for path in ("/healthz", "/slates/count/Walmart"):
        found = exchange(url, head(url, f"HEAD {path} HTTP/1.1"), "HEAD")
        assert (found.status, found.body) == (200, b"")
        assert int(found.headers["content-length"]) > 10
    for _ in range(5):  # more than there may be dumps at once
        for path in ("/slates/count/dump", "/slates/count/Walmart/watch"):
            found = exchange(url, head(url, f"HEAD {path} HTTP/1.1"), "HEAD")
            assert found.status == 200
    assert exchange(url, head(url, "HEAD /slates/count/no HTTP/1.1"), "HEAD").status == 404


def test_pipelined_requests(url):
    """Requests sent without waiting are answered in their order, HEAD among them."""
    words = [("GET", "Walmart", 200), ("HEAD", "Walmart", 200), ("GET", "x", 404)] * 20
    with connected(url) as connection:
        for method, key, _ in words:
            connection.sendall(head(url, f"{method} /slates/count/{key} HTTP/1.1"))
        data = b""
        while data.count(b"HTTP/1.1 ") < len(words) or not data.endswith(b"}"):
            data += connection.recv(1 << 16)
    statuses = [int(part[:3]) for part in data.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [status for _, _, status in words]
    assert data.count(b'"slate":{"count":1}') == 20


def test_an_upgrade_is_not_made(url):
    """A request to become a WebSocket is answered as if it had not asked."""
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    assert exchange(url, head(url, "GET /healthz HTTP/1.1", *upgrade)).status == 200


def test_an_upgrade_with_a_body(url):
    """Its body would be taken for the next request: it is refused, and the connection ends."""
    upgrade = ("Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    inner = head(url, "GET /healthz HTTP/1.1")
    with connected(url) as connection:
        connection.sendall(post(url, *upgrade, f"Content-Length: {len(inner)}"))
        found = answer(connection)
        assert is_refused(found, 400, "Upgrade")
        assert found.headers["connection"] == "close"
        assert ended(connection)
    chunked = post(url, *upgrade, "Transfer-Encoding: chunked")
    assert is_refused(exchange(url, chunked + b"1\r\n1\r\n0\r\n\r\n"), 400, "Upgrade")


# Bodies, heads and clients that take their time


def test_a_body_that_says_it_is_too_large(url):
    """It is refused before any of it is read."""
    found = exchange(url, post(url, "Content-Length: 100001"))
    assert is_refused(found, 413, "at most 100000 bytes")


def test_a_body_that_turns_out_too_large(url):
    """One in chunks is refused when it has passed the limit, though it has no end."""
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
    """Whoever sends it all the same can read the answer, and go on."""
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
    """A client that waits to be told to go on is told."""
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


def test_there_is_an_end_to_connections(url):
    """So many and no more; they are taken again when others have gone."""
    opened = [socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 10)]
    try:
        while len(opened) < 530:
            opened.append(socket.create_connection(opened[0].getpeername(), 10))
        assert is_refused(answer(opened[-1]), 503, "connections")
    finally:
        for connection in opened:
            connection.close()
    until(lambda: httpx.get(f"{url}/healthz").status_code == 200)


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
