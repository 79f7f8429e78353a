"""The guard, against requests of all kinds over real sockets."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import httpx
import pytest
from guarding import is_refused, make, post
from raw_http import answer, connected, ended, exchange, head
from served import asked, get, served

from millstream.server.openapi.operations import OPERATIONS

TOKEN = "a-token-of-20-letter"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[str]:
    with served(make(tmp_path_factory.mktemp("guarded") / "store"), token=TOKEN) as url:
        yield url


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


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
    assert get(f"{guarded}/healthz", headers={"Authorization": given}).status_code == 200


def test_the_token_guards_every_route(guarded):
    """Reads too, paths that do not exist, and every method."""
    for operation in OPERATIONS:
        assert (
            httpx.request(operation.method, guarded + operation.path, verify=False).status_code
            == 401
        )
    assert get(f"{guarded}/nothing").status_code == 401
    assert httpx.delete(f"{guarded}/slates").status_code == 401


def test_wrong_tokens_are_limited(tmp_path):
    """After too many, an address is told to wait; the right one is answered all the same."""
    with asked(make(tmp_path / "store"), token=TOKEN) as client:
        wrong = {"Authorization": "Bearer guess"}
        tried = [client.get("/healthz", headers=wrong) for _ in range(60)]
        assert {found.status_code for found in tried} == {401, 429}
        limited = [found for found in tried if found.status_code == 429]
        assert int(limited[-1].headers["retry-after"]) >= 1
        assert client.get("/healthz").status_code == 200


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
    """For a path that only takes events, `Allow` is POST."""
    found = get(f"{url}/streams/checkins")
    assert (found.status_code, found.headers["allow"]) == (405, "POST")
    assert httpx.post(f"{url}/slates/count/dump", verify=False).headers["allow"] == "GET, HEAD"


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
    """The answer is JSON, too, and the connection is closed."""
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
