"""Clients that want the server's memory, its connections or its time: it keeps them for those who
may ask."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
from abuse import MOST_MEMORY, SOON, Door, doors, many, opened, unharmed
from checkins import append
from raw_http import answer, connected, ended
from served import until

pytestmark = pytest.mark.usefixtures("stays_unharmed")
CHUNKED = "Transfer-Encoding: chunked"
MB = 1 << 20


@pytest.fixture(scope="module", params=["open", "token"])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    """With as many connections as one attacker has, and some to spare."""
    path = tmp_path_factory.mktemp("abuse")
    yield from doors(path, request, connections=200, body_timeout=3.0, stall=3.0)


def pour(connection: socket.socket, piece: bytes, most: int) -> int:
    """Send a piece again and again until the server hangs up; how many bytes it has taken."""
    sent = 0
    with suppress(OSError):
        while sent < most:
            connection.sendall(piece)
            sent += len(piece)
    return sent


def first_status(connection: socket.socket) -> int | None:
    """The status of the answer on a connection, whose bytes stay unread; None if it was cut off."""
    try:
        begun = connection.recv(12, socket.MSG_PEEK)
    except OSError:
        return None
    return int(begun[9:12]) if len(begun) == 12 else None


@pytest.mark.parametrize(
    "begin",
    [b"0\r\nX: ", b"0\r\n", b"1;x=", b"1\r\n1\r\n0\r\nX: "],
    ids=["one trailer", "trailers", "an extension", "after a body"],
)
@pytest.mark.parametrize("right", [False, True])
def test_trailers_without_an_end(door: Door, begin: bytes, right: bool):
    """60 MB of trailers, or of a chunk's extension: the server hangs up after the first of them,
    whether it had answered already or not."""
    piece = b"x: y\r\n" * 10_000 if begin == b"0\r\n" else b"x" * 60_000
    with connected(door.url) as connection:
        connection.sendall(door.post(CHUNKED, right=right) + begin)
        sent = pour(connection, piece, 60 * MB)
        assert sent < 20 * MB  # what the system's buffers took among it


def test_a_body_that_goes_on_after_its_answer(door: Door):
    """The rest of a refused request's body is discarded, up to a limit."""
    with connected(door.url) as connection:
        connection.sendall(door.post(f"Content-Length: {10**12}"))
        assert answer(connection).status == 413
        assert pour(connection, b"x" * MB, 100 * MB) < 40 * MB


def test_answers_that_nobody_reads(door: Door):
    """Requests for large answers, none of them read: those who leave the most are cut off."""
    log = door.store / "logs" / "counts"
    if not log.exists():
        append(log, *(b'"' + b"x" * (4 * MB) + b'"' for _ in range(3)))
    ask = door.head("GET /streams/counts/records?from=start HTTP/1.1")
    with ExitStack() as stack:
        for _ in range(60):
            connection = stack.enter_context(connected(door.url))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            with suppress(OSError):
                connection.sendall(ask * 3)
        assert door.answers() < SOON
        page = f"{door.url}/streams/counts/records?from=start"
        with httpx.Client(headers=door.right, timeout=30) as client:
            until(lambda: len(client.get(page).content) > 4 * MB)
    assert door.peak() < MOST_MEMORY


def test_tails_that_nobody_reads(door: Door):
    """250 tails of large records, none of them read: those past the 200 connections are refused,
    and a tail may be cut off to make room. Once they have left, others are answered."""
    log = door.store / "logs" / "counts"
    if not log.exists():
        append(log, *(b'"' + b"x" * (4 * MB) + b'"' for _ in range(3)))
    ask = door.head("GET /streams/counts/tail?from=start HTTP/1.1")
    with ExitStack() as stack:
        tails = []
        for _ in range(250):
            connection = stack.enter_context(connected(door.url))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            with suppress(OSError):
                connection.sendall(ask)
            tails.append(connection)
        by_status: dict[int | None, list[socket.socket]] = {200: [], 503: [], None: []}
        for tail in tails:
            by_status[first_status(tail)].append(tail)
        assert len(by_status[200]) >= 100
        assert len(by_status[503]) >= 1
        for tail in by_status[503]:
            refused = answer(tail)
            assert "there are 200 connections, and no more are taken" in refused.body.decode()
            assert int(refused.headers["retry-after"]) > 0
        assert door.peak() < MOST_MEMORY
    assert door.answers() < SOON
    assert door.peak() < MOST_MEMORY


def test_requests_that_do_not_wait(door: Door):
    """Thousands of requests at once on each of fifty connections, whose answers nobody reads."""
    burst = door.head() * 1_000
    with many(door, 50) as connections:
        for connection in connections:
            connection.setblocking(False)
            with suppress(OSError):
                connection.send(burst)
        assert door.answers() < SOON


def test_pipelined_requests_are_all_answered(door: Door):
    """A client that reads gets every answer, however many requests it sent before."""
    count = 500
    with connected(door.url) as connection:
        sending = threading.Thread(target=connection.sendall, args=(door.head() * count,))
        sending.start()
        said = b""
        while said.count(b"HTTP/1.1 200") < count:
            said += connection.recv(1 << 16)
        sending.join()


@pytest.mark.parametrize(
    "begin", [b"", b"GET /heal", b"POST /streams/clicks HTTP/1.1\r\nHost: x\r\nContent-Length: 9"]
)
def test_connections_that_do_nothing(door: Door, begin: bytes):
    """More of them than there may be do not keep anybody out who asks for something."""
    with many(door, 200) as connections:
        for connection in connections:
            connection.sendall(begin)
        for _ in range(5):
            assert door.answers() < SOON


def test_bodies_that_do_not_come(door: Door):
    """The same with requests whose bodies are awaited, of clients without the token."""
    with many(door, 200) as connections:
        for connection in connections:
            connection.sendall(door.post("Content-Length: 9", right=False))
        for _ in range(5):
            assert door.answers() < SOON


def test_connections_that_come_and_go(door: Door):
    """A flood of them leaves nothing behind."""
    for _ in range(10):
        with many(door, 60):
            pass
    assert door.answers() < SOON


@pytest.mark.parametrize("given", [None, "Authorization: Bearer wrong"])
def test_a_flood_without_the_right_token(door: Door, given: str | None):
    """A client with the right token is answered at once, from the same address too."""
    lines = () if given is None else (given,)
    burst = door.head("GET /healthz HTTP/1.1", *lines, right=False) * 200
    with connected(door.url) as flood:
        flood.sendall(burst)
        for _ in range(20):
            assert door.answers() < SOON
        wrong = answer(flood).status
        assert wrong == door.refused
    if door.guarded and given is not None:
        wrong_one = {"Authorization": "Bearer wrong"}
        found = httpx.get(f"{door.url}/healthz", headers=wrong_one)
        assert found.status_code in (401, 429)


def test_events_of_many_megabytes(door: Door):
    """Eight megabytes of small objects each: others are answered meanwhile. No event keeps one who
    asks waiting while the server does most of the work of it: work is its processor time, which
    other processes do not change."""
    body = b'{"user":"a","time":1,"x":[' + b"{}," * (8 * MB // 3 - 50) + b"1]}"
    kind = {"Content-Type": "application/json", **door.right}
    waits, posts, stop = list[int](), 5, threading.Event()

    def post() -> None:
        url = f"{door.url}/streams/checkins"
        found = httpx.post(url, content=body, headers=kind, timeout=60)
        assert found.status_code == 200, found.text

    def ask() -> None:
        while not stop.is_set():
            before = door.work()
            door.answers()
            waits.append(door.work() - before)

    began = door.work()
    post()
    alone, asking = door.work() - began, threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(posts):
            post()
    finally:
        stop.set()
        asking.join()
    # Whoever asks may be kept waiting by the machine, but hardly once for each event.
    assert sorted(waits)[-posts] < 0.4 * alone


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 400_000 + b"]" * 400_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"[" * 1_000_000,
        b"1" * 1_000_000,
        b'"\\u' + b"d800" * 100_000 + b'"',
        b'{"user":' + b'"k"' * 100_000 + b"}",
        b'{"user":"' + b"k" * MB + b'","time":1}',
        b'{"user":[' + b"{}," * 100_000 + b'1],"time":1}',
    ],
    ids=["lists", "objects", "half", "digits", "surrogates", "many keys", "a key", "no key"],
)
def test_values_that_are_too_much(door: Door, value: bytes):
    """Nested, endless and broken values are refused with a sentence."""
    kind = {"Content-Type": "application/json", **door.right}
    found = httpx.post(f"{door.url}/streams/checkins", content=value, headers=kind, timeout=30)
    assert found.status_code == 422, found.text
    assert "nothing was accepted" in found.json()["error"]


def test_many_lines_of_nothing(door: Door):
    """Millions of the shortest records are too many for one body, and many may be refused."""
    kind = {"Content-Type": "application/x-ndjson", **door.right}
    url = f"{door.url}/streams/clicks"
    found = httpx.post(url, content=b"\n" * (8 * MB), headers=kind, timeout=60)
    assert found.status_code == 413
    found = httpx.post(url, content=b"x\n" * 300_000, headers=kind, timeout=60)
    assert found.status_code == 422
    assert len(found.content) < MB


def test_many_large_bodies_at_once(door: Door):
    """Sixteen of the largest: what cannot be held is refused, and told to come again."""
    body = b'"' + b"x" * (7 * MB) + b'"\n'
    body += body
    kind = {"Content-Type": "application/x-ndjson", **door.right}
    found: list[int] = []

    def send() -> None:
        try:
            answer = httpx.post(
                f"{door.url}/streams/clicks", content=body, headers=kind, timeout=60
            )
            found.append(answer.status_code)
        except httpx.HTTPError:
            found.append(0)  # cut off while it was still sending

    senders = [threading.Thread(target=send) for _ in range(8)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert set(found) <= {200, 503, 0}
    assert 200 in found


def test_a_client_in_drops(door: Door):
    """A client that sends one byte at a time is cut off when its time is over."""
    began = time.monotonic()
    with connected(door.url) as connection:
        connection.settimeout(0.1)
        with suppress(OSError):
            while time.monotonic() - began < 20:
                connection.sendall(b"G")
                with suppress(TimeoutError):
                    if not connection.recv(1):
                        break
                    break
        assert time.monotonic() - began < 15


def test_a_running_application_is_one_that_holds_the_store(door: Door):
    """A number in a file is nobody: `running` is whether somebody holds the lock."""
    import os

    (door.store / "lock").write_text(str(os.getpid()))

    def running() -> bool:
        return bool(httpx.get(f"{door.url}/healthz", headers=door.right).json()["running"])

    assert not running()
    from millstream.stores.home import held

    with held(door.store):
        until(running)
    until(lambda: not running())


def test_all_event_streams_taken(tmp_path):
    """256 of them, and the rest of the server works on."""
    with opened(tmp_path / "store", guarded=False) as door, unharmed(door), many(door, 270) as all_:
        for connection in all_:
            connection.sendall(door.head("GET /slates/count/Walmart/watch HTTP/1.1"))
        refused = [one for one in all_ if one.recv(12) == b"HTTP/1.1 503"]
        assert len(refused) == 14
        assert door.answers() < SOON


def test_a_connection_that_is_cut_off_is_closed(door: Door):
    """A head that is too large is told so, and the connection ends."""
    with connected(door.url) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)
        assert answer(connection).status == 431
        assert ended(connection)
