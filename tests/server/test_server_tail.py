"""GET /streams/{name}/tail: server-sent events, over loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from checkins import NDJSON, append, checkin, checkins_store
from listening import Heard, listening, open_sockets, received
from raw_http import connected, head
from served import MadeStore, asked, served, until

from millstream.log.writer import Entry, LogWriter, Retention


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeStore:
    return checkins_store(tmp_path_factory.mktemp("tail") / "store")


@pytest.fixture(scope="module")
def client(made: MadeStore) -> Iterator[httpx.Client]:
    with asked(made.path) as client:
        yield client


def numbers(heard: list[Heard]) -> list[int]:
    """The numbers of records, each of which holds its own as `n`."""
    assert all(one.name == "record" for one in heard)
    assert [int(one.id) for one in heard] == [one.data["n"] for one in heard]
    return [int(one.id) for one in heard]


def write(log: Path, first: int, count: int) -> None:
    assert append(log, *(b'{"n":%d}' % n for n in range(first, first + count))) == first


def test_records_as_they_come(client: httpx.Client, made: MadeStore) -> None:
    """From the end on, each new record is sent with its number, as its line is in the log."""
    append(made.home.log_of("counts"), b'{"key":"old"}')
    with listening(client, "/streams/counts/tail") as heard:
        rows = [b'{"ts":1,"key":"a","value":{"n": 1}}', b'{"ts":2,"key":"b","bytes":"AAE="}']
        append(made.home.log_of("counts"), *rows)
        found = heard.take(2)
        assert heard.retry == 1000
        assert [one.id for one in found] == ["1", "2"]
        assert found[0].data == {"ts": 1, "key": "a", "value": {"n": 1}}
        assert found[1].data == {"ts": 2, "key": "b", "bytes": "AAE="}
        append(made.home.log_of("counts"), b"5")
        assert heard.next() == Heard("record", "3", 5)


def test_what_is_posted_is_tailed(client: httpx.Client, made: MadeStore) -> None:
    """A source's log is tailed while the server itself appends to it; it need not exist before."""
    with listening(client, "/streams/checkins/tail") as heard:
        for user in ("ann", "bob"):
            client.post("/streams/checkins", content=checkin(user), headers=NDJSON)
            assert heard.next().data["user"] == user
        body = b"\n".join(b'{"user":"c","time":%d}' % n for n in range(3000))
        client.post("/streams/checkins", content=body, headers=NDJSON)
        assert [one.data["time"] for one in heard.take(3000)] == list(range(3000))


def test_where_it_begins(client: httpx.Client, made: MadeStore) -> None:
    """A tail begins at the start, at a record, or some before the end; `limit` ends it."""
    log = made.home.log_of("late")
    for first in range(0, 40, 10):
        write(log, first, 10)

    def tail(begin: str, limit: int) -> list[int]:
        with listening(client, "/streams/late/tail", **{"from": begin, "limit": limit}) as heard:
            return numbers(list(heard))

    assert tail("start", 40) == list(range(40))
    assert tail("start", 3) == [0, 1, 2]
    assert tail("17", 5) == [17, 18, 19, 20, 21]
    assert tail("-15", 15) == list(range(25, 40))
    assert tail("-1000", 1) == [0]
    with listening(client, "/streams/late/tail", **{"from": "42", "limit": 2}) as heard:
        write(log, 40, 10)
        assert numbers(list(heard)) == [42, 43]


def test_going_on_where_it_was_broken_off(client: httpx.Client, made: MadeStore) -> None:
    """Over connections that break, every record comes once, whatever came between them."""
    log = made.home.log_of("deadletters")
    write(log, 0, 25)
    found: list[Heard] = []
    last = None
    for connection in range(10):
        with listening(client, "/streams/deadletters/tail", last, **{"from": "start"}) as heard:
            found += heard.take(7)
        last = found[-1].id
        write(log, 25 + 7 * connection, 7)
    assert numbers(found) == list(range(70))


@pytest.mark.parametrize("last", ["x", "-2", "1.5", "9" * 30])
def test_a_last_event_that_is_none(client: httpx.Client, last: str) -> None:
    """The last event's id must be one that was sent."""
    answer = client.get("/streams/counts/tail", headers={"Last-Event-ID": last})
    assert answer.status_code == 400
    assert "Last-Event-ID" in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/streams/conts/tail", 404, "did you mean 'counts'?"),
        ("/streams/recognised/tail", 409, "only what is in a log"),
        ("/streams/old/tail", 409, "json:/data/old"),
        ("/streams/counts/tail?from=begin", 400, "'from' must be"),
        ("/streams/counts/tail?limit=0", 400, "'limit' must be"),
    ],
)
def test_what_cannot_be_tailed(client: httpx.Client, path: str, status: int, said: str) -> None:
    """A wrong address is an error that says what is right."""
    answer = client.get(path)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_records_that_are_gone(tmp_path: Path) -> None:
    """If retention has removed requested records, a gap is reported, and the rest follows."""
    made = checkins_store(tmp_path / "store")
    writer = LogWriter(
        made.home.log_of("counts"), segment_bytes=200, retention=Retention(None, 400)
    )
    for number in range(50):
        writer.append([Entry.of([b'{"n":%d}' % number])])
    writer.retain()
    with asked(made.path) as client:
        with listening(client, "/streams/counts/tail", **{"from": "0"}) as heard:
            gap = heard.next()
            start = gap.data["to"]
            assert (gap.name, gap.data["from"]) == ("gap", 0)
            assert 0 < start < 50
            assert numbers(heard.take(50 - start)) == list(range(start, 50))
            # Records may be gone before it has got them: then gaps say which.
            for number in range(50, 100):
                writer.append([Entry.of([b'{"n":%d}' % number])])
            at = 50
            while at < 100:
                event = heard.next()
                if event.name == "gap":
                    assert event.data["from"] == at < event.data["to"]
                    at = event.data["to"]
                else:
                    assert numbers([event]) == [at]
                    at += 1
        with listening(client, "/streams/counts/tail", "20") as heard:
            gap = heard.next()
            assert (gap.name, gap.data["from"]) == ("gap", 21)
            last = gap.id
            start = gap.data["to"]
        with listening(client, "/streams/counts/tail", last) as heard:
            assert numbers(heard.take(1)) == [start]
        page = client.get("/streams/counts/records", params={"from": 0}).json()
        assert page["records"][0]["record"] == start
    writer.close()


def test_a_log_that_was_made_anew(tmp_path: Path) -> None:
    """The tail of a replaced log ends. A client that returns is told of a gap, and continues."""
    made = checkins_store(tmp_path / "store")
    log = made.home.log_of("counts")
    write(log, 0, 10)
    with asked(made.path) as client:
        with listening(client, "/streams/counts/tail", **{"from": "start"}) as heard:
            last = heard.take(10)[-1].id
            shutil.rmtree(log)
            write(log, 0, 3)
            assert list(heard) == []
        with listening(client, "/streams/counts/tail", last) as heard:
            assert heard.next() == Heard("gap", "2", {"from": 10, "to": 3})
            write(log, 3, 1)
            assert numbers(heard.take(1)) == [3]


def test_a_log_of_many_small_blocks(tmp_path: Path) -> None:
    """A record is found among many blocks, wherever it is."""
    made = checkins_store(tmp_path / "store")
    writer = LogWriter(made.home.log_of("counts"))
    for number in range(400):
        writer.append([Entry.of([b'{"n":%d}' % number])])
    writer.close()
    with asked(made.path) as client:
        with listening(client, "/streams/counts/tail", **{"from": "-10", "limit": 10}) as heard:
            assert numbers(list(heard)) == list(range(390, 400))
        with listening(client, "/streams/counts/tail", "199", limit=200) as heard:
            assert numbers(list(heard)) == list(range(200, 400))


def test_a_slow_client_holds_up_nobody(tmp_path: Path) -> None:
    """A client that takes nothing is cut off after a while; others get every record."""
    made = checkins_store(tmp_path / "store")
    log = made.home.log_of("counts")
    line = b'"%s"' % (b"x" * 100_000)
    path = "/streams/counts/tail"
    with served(made.path, stall=0.5) as url, httpx.Client(base_url=url) as client:
        with listening(client, path) as fast:
            before = open_sockets(made.path)
            with connected(url) as slow:
                slow.sendall(head(url, f"GET {path}?from=start HTTP/1.1"))
                for _ in range(10):
                    append(log, *[line] * 25)
                    assert all(len(one.data) == 100_000 for one in fast.take(25))
                until(lambda: open_sockets(made.path) == before)
                assert received(slow) < 20 << 20
        # A client that is slow but takes all gets all.
        with connected(url) as slow:
            slow.sendall(
                head(url, f"GET {path}?from=start&limit=250 HTTP/1.1", "Connection: close")
            )
            assert received(slow) > 25_000_000


def test_no_more_than_so_many(tmp_path: Path) -> None:
    """At most 256 event streams are open. The next one is refused until one ends."""
    made = checkins_store(tmp_path / "store")
    append(made.home.log_of("counts"), b"1")
    path = "/streams/counts/tail?from=start"
    with served(made.path) as url, httpx.Client(base_url=url) as client:
        streams = []
        for _ in range(256):
            context = connected(url)
            streams.append((context, context.__enter__()))
            streams[-1][1].sendall(head(url, f"GET {path} HTTP/1.1"))
        for _, stream in streams:
            heard = b""
            while b"data: 1" not in heard:
                heard += stream.recv(65536)
        answer = client.get(path)
        assert answer.status_code == 503
        assert "256 event streams" in answer.json()["error"]
        assert answer.headers["retry-after"]
        streams.pop()[0].__exit__(None, None, None)
        until(lambda: _opens(client, path))
        for context, _ in streams:
            context.__exit__(None, None, None)


def test_no_more_than_so_many_at_the_same_moment(tmp_path: Path) -> None:
    """The limit also holds for requests that all come before any of them was answered."""
    made = checkins_store(tmp_path / "store")
    with served(made.path) as url, ExitStack() as stack:
        streams = [stack.enter_context(connected(url)) for _ in range(400)]
        server = json.loads((made.path / "server.lock").read_bytes())["pid"]
        until(lambda: open_sockets(made.path) > 400)
        os.kill(server, signal.SIGSTOP)
        for stream in streams:
            stream.sendall(head(url, "GET /streams/counts/tail HTTP/1.1"))
        os.kill(server, signal.SIGCONT)
        statuses = [stream.recv(12)[9:] for stream in streams]
        assert statuses.count(b"200") == 256
        assert statuses.count(b"503") == 144


def test_a_log_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    """Clients that tail another log get its records all the same."""
    made = checkins_store(tmp_path / "store")
    broken = ("clicks", "checkins", "late", "deadletters")
    for name in (*broken, "counts"):
        append(made.home.log_of(name), b"1")
    with asked(made.path) as client, ExitStack() as stack:
        for name in (*broken, "counts"):
            heard = stack.enter_context(
                listening(client, f"/streams/{name}/tail", **{"from": "start"})
            )
            assert heard.next().data == 1
        for name in broken:
            (made.home.log_of(name) / "end").unlink()
            (made.home.log_of(name) / "end").mkdir()
        append(made.home.log_of("counts"), b"2")
        assert heard.next().data == 2
        answer = client.get("/streams/clicks/records")
        assert answer.status_code == 503
        assert "cannot be read" in answer.json()["error"]


def _opens(client: httpx.Client, path: str) -> bool:
    with client.stream("GET", path) as response:
        return response.status_code == 200
