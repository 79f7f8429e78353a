"""Slates over HTTP: one, pages, dumps, while the store changes."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_http import connected, head
from served import MadeStore, asked, served, until

from millstream.server.child import ServerChild
from millstream.server.lock import served_at
from millstream.server.options import ServerOptions
from millstream.stores.home import held

KEYS = [
    "Walmart",
    "a/b",
    "a//b/",
    "/",
    "%2F",
    "%",
    "50%",
    "a b",
    "a+b",
    "?x=1&y=2",
    "#top",
    "a;b",
    "Ünïcödé 🎉 日本",
    "e\u0301",
    "<script>alert(1)</script>",
    "'; drop table slates; --",
    "\x00",
    "a\x00b",
    "\n\r\t",
    "\ufeff\u202e",
    "key",
    "x" * 3_000,
    "tail",
    "🎉" * 300,
]
HIDDEN = ["", ".", "..", "dump", "watch"]
"""Keys that a path cannot name."""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> MadeStore:
    made = MadeStore(tmp_path_factory.mktemp("slates") / "store", {"count": "dict", "top": "table"})
    made.commit(
        {
            "count": {key: {"key": key} for key in KEYS + HIDDEN},
            "top": {"all": {"2": [1, "x"], "1": {"n": None}, "b": b"\x00\xff", 'q"': 1}, "no": {}},
        },
        slates={"count": len(KEYS + HIDDEN)},
    )
    return made


@pytest.fixture(scope="module")
def client(made) -> Iterator[httpx.Client]:
    with asked(made.path) as client:
        yield client


def dumped(client: httpx.Client, update: str) -> tuple[int, list[dict[str, object]]]:
    """The batch and the lines of a dump."""
    found = client.get(f"/slates/{update}/dump")
    assert found.headers["content-type"] == "application/x-ndjson"
    lines = found.content.split(b"\n")  # not splitlines: of text, that knows ten kinds of lines
    assert lines.pop() == b""
    return int(found.headers["millstream-batch"]), [json.loads(line) for line in lines]


def test_which_there_are(client):
    """Each update with its kind, and how many slates it has if that was counted."""
    assert client.get("/slates").json() == {
        "batch": 0,
        "updates": [
            {"name": "count", "kind": "dict", "slates": len(KEYS + HIDDEN)},
            {"name": "top", "kind": "table", "slates": None},
        ],
    }


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_any_characters(client, key):
    """A key is one segment of the path, percent-encoded, or the parameter `key`."""
    expected = {"update": "count", "key": key, "slate": {"key": key}, "ts": 0, "batch": 0}
    for found in (
        client.get(f"/slates/count/{quote(key, safe='')}"),
        client.get("/slates/count", params={"key": key}),
    ):
        assert found.status_code == 200, found.text
        answered = found.json()
        assert 0 <= answered.pop("age") < 300
        assert answered == expected


@pytest.mark.parametrize("key", HIDDEN)
def test_keys_that_a_path_cannot_name(client, key):
    """A key that would be another path can be given with the parameter."""
    assert client.get("/slates/count", params={"key": key}).json()["slate"] == {"key": key}


def test_a_table(client):
    """A table is one object of its entries in their order, bytes as base64."""
    found = client.get("/slates/top/all")
    assert '"slate":{"1":{"n":null},"2":[1,"x"],"b":"AP8=","q\\"":1}' in found.text
    assert client.get("/slates/top?key=no").json()["slate"] == {}
    assert [one["key"] for one in client.get("/slates/top").json()["slates"]] == ["all", "no"]


def test_what_is_not_there(client):
    """No slate, and no update: 404, with the nearest name."""
    assert "no slate for key 'Target'" in client.get("/slates/count/Target").json()["error"]
    for path in ("/slates/cuont/x", "/slates/cuont", "/slates/cuont?key=x", "/slates/cuont/dump"):
        found = client.get(path)
        assert found.status_code == 404
        assert "did you mean 'count'?" in found.json()["error"]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "limit=", "limit=1e3"]
)
def test_wrong_parameters(client, query):
    """A parameter that cannot be meant is refused by its name."""
    found = client.get(f"/slates/count?{query}")
    assert found.status_code == 400
    assert query.split("=")[0] in found.json()["error"]


def paged(client: httpx.Client, update: str, **query: object) -> list[str]:
    """The keys of all pages, as a client follows them."""
    keys: list[str] = []
    while True:
        found = client.get(f"/slates/{update}", params=query).json()
        page = [slate["key"] for slate in found["slates"]]
        assert len(page) <= int(query.get("limit", 100))
        keys += page
        if found["next"] is None:
            return keys
        assert found["next"] == page[-1]
        query["after"] = found["next"]


def test_pages_have_every_key_once(client):
    """For any page size all keys come once and in order, including the empty one and long ones."""
    ordered = sorted(KEYS + HIDDEN, key=str.encode)
    for limit in (1, 2, 7, len(ordered) - 1, len(ordered), 1_000):
        assert paged(client, "count", limit=limit) == ordered
    assert paged(client, "count", prefix="a", limit=2) == [k for k in ordered if k[:1] == "a"]
    assert paged(client, "count", after="Walmart") == [k for k in ordered if k > "Walmart"]
    assert paged(client, "count", prefix="nothing") == []


TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Iterator[Callable[[set[str]], httpx.Client]]:
    """Makes a store have just these keys, in a batch, and gives a client of its server."""
    made, before = MadeStore(tmp_path_factory.mktemp("generated") / "store", {"g": "dict"}), set()
    with asked(made.path) as client:

        def keep(keys: set[str]) -> httpx.Client:
            fresh: dict[str, object] = {key: {} for key in keys - before}
            made.commit({"g": {**fresh, **dict.fromkeys(before - keys)}})
            before.clear()
            before.update(keys)
            return client

        yield keep


@settings(max_examples=examples(20))
@given(st.sets(TEXTS, max_size=40), st.integers(1, 10), TEXTS)
def test_pages_of_any_keys(generated, keys, limit, prefix):
    """Held for generated keys, sizes and prefixes, against a sorted list."""
    client = generated(keys)
    wanted = sorted((key for key in keys if key.startswith(prefix)), key=str.encode)
    assert paged(client, "g", limit=limit, prefix=prefix) == wanted
    assert [line["key"] for line in dumped(client, "g")[1]] == sorted(keys, key=str.encode)


def test_a_page_of_large_slates_is_shorter(tmp_path):
    """A page ends before it is too large; following it still gives every key."""
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    keys = [f"{n:02}" for n in range(30)]
    made.commit({"count": {key: {"x": "y" * 500_000} for key in keys}})
    with asked(made.path) as client:
        assert 2 < len(client.get("/slates/count?limit=1000").json()["slates"]) < 20
        assert paged(client, "count", limit=1_000) == keys


def test_a_dump(client, made):
    """Every slate, a line each, in key order, with the batch that it is of."""
    batch, lines = dumped(client, "count")
    assert batch == 0
    assert lines == [
        {"key": key, "slate": {"key": key}, "ts": 0}
        for key in sorted(KEYS + HIDDEN, key=str.encode)
    ]
    assert dumped(client, "top")[1][1] == {"key": "no", "slate": {}, "ts": 0}


def test_reads_follow_the_commits(tmp_path):
    """A read after a commit sees it; rows that are not committed are not seen."""
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    with asked(made.path) as client:
        assert client.get("/healthz").json() == {"ok": True, "running": False, "batch": -1}
        assert client.get("/slates/count/a").status_code == 404
        assert dumped(client, "count") == (-1, [])
        for n in range(50):
            assert made.commit({"count": {"a": {"n": n}}}) == n
            found = client.get("/slates/count/a").json()
            assert (found["slate"], found["batch"], found["ts"]) == ({"n": n}, n, n)
        made.write({"count": {"a": {"n": -1}}})
        assert client.get("/slates/count/a").json()["slate"] == {"n": 49}
        made.commit({"count": {"a": None}}, written=1)
        assert client.get("/slates/count/a").status_code == 404
        assert client.get("/slates/count").json() == {
            "update": "count",
            "batch": 50,
            "slates": [],
            "next": None,
        }


def test_dumps_and_pages_while_the_store_changes(tmp_path):
    """Each dump and each page is of one batch, whichever, while batches are committed."""
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    keys = [f"key {n}" for n in range(300)]
    made.commit({"count": dict.fromkeys(keys, 0)})
    stop = threading.Event()

    def committing() -> None:
        while not stop.is_set():
            made.commit({"count": dict.fromkeys(keys, made.progress.batch + 1)})

    def read() -> bool:
        batch, lines = dumped(client, "count")
        assert [line["slate"] for line in lines] == [batch] * 300
        page = client.get("/slates/count?limit=1000").json()
        assert {slate["slate"] for slate in page["slates"]} == {page["batch"]}
        one = client.get("/slates/count/key%201").json()
        assert one["slate"] == one["batch"]
        batches.append(batch)
        return len(batches) >= 20 and len(set(batches)) >= 5

    batches: list[int] = []
    with asked(made.path) as client:
        thread = threading.Thread(target=committing)
        thread.start()
        try:
            until(read, 30.0)
        finally:
            stop.set()
            thread.join()


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> MadeStore:
    """About 40 MB of slates."""
    made = MadeStore(tmp_path_factory.mktemp("large") / "store", {"count": "dict"})
    made.commit({"count": {f"{n:06}": {"x": "y" * 1_900} for n in range(20_000)}})
    return made


def resident(pid: int) -> int:
    """The memory of a process that is its own, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1_024
    raise AssertionError


def test_a_dump_needs_no_memory(large):
    """For a dump of any size the server holds a piece of it, not the whole."""
    child = ServerChild.start(ServerOptions(large.path, port=0))
    try:
        httpx.get(f"{child.url}/slates/count?limit=1")
        before, size, most = resident(child.pid), 0, 0
        with httpx.stream("GET", f"{child.url}/slates/count/dump") as found:
            for piece in found.iter_bytes():
                size += len(piece)
                most = max(most, resident(child.pid))
        assert size > 35_000_000
        assert most - before < 10_000_000
    finally:
        child.stop()


def test_dumps_that_nobody_takes(large):
    """At most two dumps run at once. A dump that is not read is aborted, so the client sees an
    incomplete answer. Its slot and its reader are released. Other reads continue meanwhile."""
    with asked(large.path, stall=1.0) as client, connected(str(client.base_url)) as first:
        with connected(str(client.base_url)) as second:
            for connection in (first, second):
                connection.sendall(head(str(client.base_url), "GET /slates/count/dump HTTP/1.1"))
                connection.recv(100)
            third = client.get("/slates/count/dump")
            assert third.status_code == 503
            assert int(third.headers["retry-after"]) > 0
            assert client.get("/slates/count/000001").status_code == 200
            assert len(readers(large)) == 8
        until(lambda: client.get("/slates/count/dump").status_code == 200)  # one has left
        until(lambda: len(readers(large)) == 0)
        taken = b""
        with pytest.raises((ConnectionResetError, EOFError)):  # noqa: PT012
            while piece := first.recv(1 << 20):
                taken += piece
            raise EOFError
        assert len(taken) < 35_000_000
        assert not taken.endswith(b"0\r\n\r\n")


def readers(made: MadeStore) -> list[str]:
    """The read transactions that are open in all shards, whoever's."""
    import lmdb

    found = []
    for shard in (made.path / "shards").iterdir():
        environment = lmdb.open(str(shard), readonly=True, lock=True, max_readers=512)
        lines = environment.readers().splitlines()[1:]
        environment.close()
        found += [line for line in lines if line.split()[2] != "-" and str(os.getpid()) not in line]
    return found


def test_a_store_that_is_made_again(tmp_path):
    """Without a store, 503; with another in its place, that one's slates; with new updates, those.
    A dump of the old one goes on to its end."""
    path = tmp_path / "store"
    made = MadeStore(path, {"count": "dict"})
    made.commit({"count": {f"{n}": {"old": "x" * 1_000} for n in range(20_000)}})
    with asked(path) as client, httpx.stream("GET", f"{client.base_url}/slates/count/dump") as old:
        lines = old.iter_lines()
        next(lines)
        shutil.rmtree(path)
        until(lambda: client.get("/slates").status_code == 503)
        assert client.get("/healthz").status_code == 503
        assert "no store is there" in client.get("/slates/count/1").json()["error"]
        made = MadeStore(path, {"sum": "dict"})
        made.commit({"sum": {"a": {"new": 1}}})
        assert until(lambda: client.get("/slates/sum/a").json().get("slate")) == {"new": 1}
        assert until(lambda: served_at(path)) == str(client.base_url)
        assert client.get("/slates/count/1").status_code == 404
        made = MadeStore(path, {"sum": "dict", "top": "dict"})
        until(lambda: len(client.get("/slates").json()["updates"]) == 2)
        assert client.get("/slates/top").json()["slates"] == []
        assert sum(1 for _ in lines) == 19_999


def test_a_damaged_progress(tmp_path):
    """The error says what is unreadable and what to do. Reads continue once it is readable."""
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    made.commit({"count": {"a": {}}})
    with asked(made.path) as client:
        whole = (made.path / "progress").read_bytes()
        (made.path / "progress").write_bytes(b"garbage")
        found = client.get("/slates/count/a")
        assert found.status_code == 503
        assert "damaged" in found.json()["error"]
        (made.path / "progress").write_bytes(whole)
        assert client.get("/slates/count/a").status_code == 200


def test_health_says_whether_the_driver_runs(tmp_path):
    """Somebody holds the store's lock; a number in it says nothing, be it of a process or not."""
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    with served(made.path) as url:
        for holder in [str(os.getpid()), "", "4194304"]:
            (made.path / "lock").write_text(holder)
            assert httpx.get(f"{url}/healthz").json()["running"] is False
        with held(made.path):
            assert httpx.get(f"{url}/healthz").json()["running"] is True
