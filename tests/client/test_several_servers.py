"""A client of several servers of one shared store goes on with the next when one is gone."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from server.served import until
from server.shared_shop import RunningShop

from millstream.client import Client, Record
from millstream.client.wire import Wire
from millstream.errors import ClientError
from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions


class Servers:
    """Two servers of one shared store, each with a mirror of its own."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.children = [
            ServerChild.start(
                ServerOptions(
                    Path("unused"),
                    port=0,
                    place=f"shared:{folder / 'place'}",
                    cache=str(folder / f"host{number}"),
                    wait=True,
                    **options,
                )
            )
            for number in range(2)
        ]

    @property
    def urls(self) -> list[str]:
        return [child.url for child in self.children]

    def kill(self, url: str) -> None:
        """End one as a crash does."""
        (child,) = (one for one in self.children if one.url == url)
        os.kill(child.pid, signal.SIGKILL)
        child.stop()

    def close(self) -> None:
        for child in self.children:
            child.stop()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    with ExitStack() as open_:
        open_.enter_context(RunningShop(tmp_path, "log"))
        made = Servers(tmp_path)
        open_.callback(made.close)
        yield made


def test_reads_go_on_with_the_next(servers: Servers) -> None:
    """Slates, statuses and pages are read from the other server, and each is named in `url`."""
    with Client(",".join(servers.urls)) as client:
        client.send("checkins", [{"venue": "Walmart"}, {"venue": "Target"}])
        until(lambda: len([*client.scan("count")]) == 2)
        first = client.url
        servers.kill(first)
        slate = until(lambda: client.get("count", "Walmart"))  # this one may be a moment behind
        assert slate.value == {"n": 1}
        assert client.url != first
        assert client.status().app == "shop"


def test_what_is_sent_counts_once(servers: Servers) -> None:
    """Events that are sent while a server is killed are in the log once each, however often their
    batch had to be sent."""
    count = 6_000
    with Client(servers.urls) as client:
        killed = client.url

        def kill_soon(sent: Any) -> None:
            if killed == client.url and kill.acquire(blocking=False):
                threading.Thread(target=servers.kill, args=(killed,)).start()

        kill = threading.Semaphore(1)
        events = ({"venue": f"venue{number % 50}"} for number in range(count))
        sent = client.send("checkins", events, progress=kill_soon)
        assert sent.accepted == count
        assert client.url != killed
        until(lambda: sum(slate.value["n"] for slate in client.scan("count")) >= count, 30)
        until(lambda: client.status().waiting == 0)
        assert sum(slate.value["n"] for slate in client.scan("count")) == count


def test_a_tail_goes_on_with_the_next(servers: Servers) -> None:
    """Every record comes once and in order, also if the other server has not got them yet."""
    with Client(servers.urls) as client, Client(servers.urls[1]) as sender:
        sender.send("checkins", ({"venue": "a", "n": n} for n in range(100)))
        found: list[int] = []
        for record in client.tail("checkins", start=0, limit=300):
            assert isinstance(record, Record), record
            found.append(record.value["n"])
            if len(found) == 50:
                servers.kill(servers.urls[0])
                sender.send("checkins", ({"venue": "a", "n": n} for n in range(100, 300)))
        assert found == [*range(300)]


def test_no_server_answers() -> None:
    """All addresses are named, and nothing is waited for if none was ever reached."""
    urls = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            urls.append(f"http://127.0.0.1:{free.getsockname()[1]}")
    with Client(urls) as client, pytest.raises(ClientError) as refused:
        client.status()
    assert all(url in str(refused.value) for url in urls)


def test_servers_of_some_shards(tmp_path: Path) -> None:
    """Servers that have some shards each answer for all slates together."""
    with RunningShop(tmp_path, "log"), ExitStack() as open_:
        children = []
        for number, shards in enumerate([[0, 1], [2, 3]]):
            options = ServerOptions(
                Path("unused"),
                port=0,
                place=f"shared:{tmp_path / 'place'}",
                cache=str(tmp_path / f"host{number}"),
                wait=True,
                shards=shards,
            )
            children.append(ServerChild.start(options))
            open_.callback(children[-1].stop)
        with Client([child.url for child in children]) as client:
            venues = [f"venue{number}" for number in range(20)]
            client.send("checkins", [{"venue": venue} for venue in venues])
            for venue in venues:
                until(lambda venue=venue: client.get("count", venue) is not None)  # type: ignore[misc]
            with pytest.raises(ClientError, match="only the shards"):
                [*client.scan("count")]


@pytest.mark.parametrize("url", ["", "http://a,,http://b", []])
def test_addresses_that_are_none(url: Any) -> None:
    """An empty address among several is refused."""
    with pytest.raises(ClientError, match="must not be empty"):
        Wire(url, None, 1.0, 0)
