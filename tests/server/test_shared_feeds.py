"""Feeds on a shared store: records are sent to one server and read from another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from server.served import until
from server.shared_shop import RunningApp
from server.test_served_place import serving

import millstream as ms
from millstream.client import Client
from millstream.settings.settings import Settings


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningApp]:
    """An application with feeds, whose store is in `place`."""
    app = ms.App("social")
    app.add(ms.feeds.Feeds(), name="feeds")
    settings = Settings.of(
        "social",
        tmp_path / "work",
        {"feeds.events": "log"},
        shards=4,
        place=f"shared:{tmp_path / 'place'}",
        cache=str(tmp_path / "cache"),
    )
    with RunningApp(app, settings) as running:
        yield running


def shown(url: str, consumer: str) -> list[str]:
    """The posts of a page of a feed, which must be complete."""
    answer = httpx.get(f"{url}/feeds/{consumer}", params={"limit": 50})
    assert answer.status_code == 200, answer.text
    page = answer.json()
    assert page["complete"], page
    return [item["id"] for item in page["items"]]


def test_what_one_server_takes_the_other_shows(running: RunningApp, tmp_path: Path) -> None:
    """Each post comes to the feed on the other server, and pages there never report an error, also
    while commits are ahead of the log there."""
    with ExitStack() as open_:
        first, second = (
            open_.enter_context(serving(tmp_path, cache=str(tmp_path / host), wait=True))
            for host in ("host1", "host2")
        )
        client = open_.enter_context(Client(first))
        client.feeds.follow("ann", "bob")
        for number in range(20):
            client.feeds.post("bob", {"number": number}, id=f"post{number}")
            until(lambda number=number: f"post{number}" in shown(second, "ann"))  # type: ignore[misc]
        assert shown(second, "ann") == [f"post{number}" for number in reversed(range(20))]


def test_commits_are_ahead_of_the_log(running: RunningApp, tmp_path: Path) -> None:
    """A server whose mirror does not have the log yet shows what the last batch has; once it has
    the log, it shows what is posted then."""
    logs = tmp_path / "place" / "logs"
    with ExitStack() as open_:
        url = open_.enter_context(serving(tmp_path, wait=True))
        client = open_.enter_context(Client(url))
        client.feeds.follow("ann", "bob")
        client.feeds.post("bob", {}, id="before")
        until(lambda: [item.how for item in client.feeds.read("ann").items] in (["pull"], ["push"]))
        running.stop()
        logs.rename(tmp_path / "logs")
        late = open_.enter_context(serving(tmp_path, cache=str(tmp_path / "late")))
        assert shown(late, "ann") == ["before"]
        (tmp_path / "logs").rename(logs)
        client.feeds.post("bob", {}, id="after")
        until(lambda: shown(late, "ann") == ["after", "before"])
