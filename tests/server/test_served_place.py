"""A server of a shared store, on any host: it follows the commits into a mirror of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from server.listening import listening
from server.served import get, until
from server.shared_shop import RunningShop, add, run_once

from millstream.codec import shard_of
from millstream.errors import MillstreamError
from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[str]:
    """A server of the shared store in a folder; its address."""
    given = {"place": f"shared:{folder / 'place'}", "cache": str(folder / "readers"), **options}
    child = ServerChild.start(ServerOptions(Path("unused"), port=0, **given))
    try:
        yield child.url
    finally:
        child.stop()


def count(url: str, venue: str) -> int | None:
    answer = get(f"{url}/slates/count/{venue}")
    if answer.status_code == 404:
        return None
    assert answer.status_code == 200, answer.text
    found: int = answer.json()["slate"]["n"]
    return found


def test_slates_are_served_while_the_application_runs(tmp_path: Path) -> None:
    """Batches that are committed elsewhere are read here, and the status says how fresh that is."""
    add(tmp_path, "a", "Walmart", "Walmart", "Target")
    with RunningShop(tmp_path) as app, serving(tmp_path, wait=True) as url:
        until(lambda: count(url, "Walmart") == 2)
        answer = get(f"{url}/slates/count/Target")
        assert float(answer.headers["Millstream-Asked-Age"]) < 5
        status = get(f"{url}/status").json()
        assert status["mirror"]["place"] == f"shared:{tmp_path / 'place'}"
        assert status["mirror"]["error"] is None
        assert status["running"]
        add(tmp_path, "b", "Walmart", "Kmart")
        until(lambda: count(url, "Kmart") == 1)
        assert count(url, "Walmart") == 3
        app.stop()
        until(lambda: not get(f"{url}/status").json()["running"])
        assert count(url, "Walmart") == 3


def test_several_servers_on_one_host(tmp_path: Path) -> None:
    """Each has its own mirror, and a restarted server uses the mirror that the last one left."""
    add(tmp_path, "a", "Walmart")
    with RunningShop(tmp_path):
        with serving(tmp_path, wait=True) as first, serving(tmp_path, wait=True) as second:
            until(lambda: count(first, "Walmart") == count(second, "Walmart") == 1)
            add(tmp_path, "b", "Walmart")
            until(lambda: count(first, "Walmart") == count(second, "Walmart") == 2)
        with serving(tmp_path) as third:
            assert count(third, "Walmart") == 2
    assert len([*(tmp_path / "readers").glob("*/mirror-*")]) == 2


def test_a_server_of_some_shards(tmp_path: Path) -> None:
    """Slates of other shards are refused with 421, and the answer says which shards are here."""
    venues = [f"venue{number}" for number in range(20)]
    add(tmp_path, "a", *venues)
    run_once(tmp_path)
    with serving(tmp_path, shards=[0, 1]) as url:
        for venue in venues:
            answer = get(f"{url}/slates/count/{venue}")
            if shard_of("count", venue, 4) < 2:
                assert answer.json()["slate"] == {"n": 1}
            else:
                assert answer.status_code == 421
                assert "only the shards 0-1" in answer.json()["error"]
        assert get(f"{url}/slates/count").status_code == 421
        assert get(f"{url}/slates/count/dump").status_code == 421
        assert get(f"{url}/status").json()["mirror"]["shards"] == [0, 1]


@pytest.mark.parametrize("identity", ["9" * 5_000 + "-x", "-1-x"], ids=["digits", "negative"])
def test_watching_on_from_an_event_that_never_was(tmp_path: Path, identity: str) -> None:
    """A client that names such an event gets the slate as it is."""
    add(tmp_path, "a", "Walmart")
    run_once(tmp_path)
    with serving(tmp_path, wait=True) as url, httpx.Client(base_url=url) as client:
        until(lambda: count(url, "Walmart") == 1)
        with listening(client, "/slates/count/Walmart/watch", identity) as heard:
            assert heard.next().data["slate"]["n"] == 1


def test_the_place_is_away(tmp_path: Path) -> None:
    """Reads continue, and the status says what is wrong and since when. Later the server
    continues."""
    add(tmp_path, "a", "Walmart")
    run_once(tmp_path)
    commits = tmp_path / "place" / "commits"
    with serving(tmp_path) as url:
        commits.rename(tmp_path / "kept")
        commits.symlink_to(commits)  # reading what is below fails
        until(lambda: get(f"{url}/status").json()["mirror"]["error"])
        assert count(url, "Walmart") == 1
        answer = get(f"{url}/slates/count/Walmart")
        ages = [float(answer.headers["Millstream-Asked-Age"])]
        status = get(f"{url}/status").json()["mirror"]
        assert "commits/" in status["error"]
        ages.append(status["asked_age"])
        assert 0 < ages[0] < ages[1]
        commits.unlink()
        (tmp_path / "kept").rename(commits)
        until(lambda: not get(f"{url}/status").json()["mirror"]["error"])


def test_a_follower_that_dies_is_started_again(tmp_path: Path) -> None:
    """The server meanwhile continues with the batches that it has."""
    add(tmp_path, "a", "Walmart")
    with RunningShop(tmp_path), serving(tmp_path, wait=True) as url:
        until(lambda: count(url, "Walmart") == 1)
        os.kill(_follower(url), signal.SIGKILL)
        assert count(url, "Walmart") == 1
        add(tmp_path, "b", "Walmart")
        until(lambda: _count_or_busy(url) == 2)


def _count_or_busy(url: str) -> int | None:
    answer = get(f"{url}/slates/count/Walmart")
    return answer.json()["slate"]["n"] if answer.status_code == 200 else None


def _follower(url: str) -> int:
    """The process id of the follower of the server at an address."""
    port = url.rpartition(":")[2]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            if b"millstream.server.mirror_process" not in words:
                continue
            status = (path.parent / "stat").read_text().rpartition(")")[2].split()
            parent = int(status[1])
        except OSError:
            continue
        if _listens(parent, port):
            return int(path.parent.name)
    raise AssertionError("no follower")


def _listens(pid: int, port: str) -> bool:
    entries = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    wanted = f":{int(port):04X}"
    inodes = {line.split()[9] for line in entries if line.split()[1].endswith(wanted)}
    links = Path(f"/proc/{pid}/fd").iterdir()
    return any(os.readlink(link) in {f"socket:[{inode}]" for inode in inodes} for link in links)


def test_no_store_is_there(tmp_path: Path) -> None:
    """The server does not start, and says what to do."""
    with pytest.raises(MillstreamError, match="no store is there; run the application first"):
        ServerChild.start(
            ServerOptions(
                Path("unused"), port=0, place=f"shared:{tmp_path}/p", cache=str(tmp_path / "c")
            )
        )
