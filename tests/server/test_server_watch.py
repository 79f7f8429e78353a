"""GET /slates/{update}/{key}/watch: server-sent events, over loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from checkins import checkins_store
from listening import listening, open_sockets, received
from raw_http import connected, head
from served import SHARDS, MadeStore, asked, served, until

from millstream.codec import shard_of
from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions
from millstream.stores.contract import Fence
from millstream.stores.layout import slates_of


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeStore:
    made = checkins_store(tmp_path_factory.mktemp("watch") / "store")
    made.commit({})
    return made


@pytest.fixture(scope="module")
def client(made: MadeStore) -> Iterator[httpx.Client]:
    with asked(made.path) as client:
        yield client


def test_the_current_value_then_each_new_one(client: httpx.Client, made: MadeStore) -> None:
    """The slate is sent at once, and again whenever a batch has changed it."""
    first = made.commit({"count": {"Walmart": {"count": 1}}})
    with listening(client, "/slates/count/Walmart/watch") as heard:
        event = heard.next()
        assert heard.retry == 1000
        assert event.name == "slate"
        assert event.id.startswith(f"{first}-")
        assert event.data["key"] == "Walmart"
        assert event.data["slate"] == {"count": 1}
        assert event.data["ts"] == first
        assert event.data["batch"] == first
        assert 0 <= event.data["age"] < 10
        made.commit({"count": {"Target": {"count": 1}}})
        second = made.commit({"count": {"Walmart": {"count": 2}}})
        event = heard.next()
        assert (event.data["slate"], event.data["batch"]) == ({"count": 2}, second)


def test_a_slate_that_comes_and_goes(client: httpx.Client, made: MadeStore) -> None:
    """A missing slate is reported, and so is one that is deleted."""
    with listening(client, "/slates/count/new/watch") as heard:
        event = heard.next()
        assert (event.name, event.data) == ("gone", {"key": "new", "batch": made.progress.batch})
        made.commit({"count": {"new": {"count": 1}}})
        assert heard.next().data["slate"] == {"count": 1}
        batch = made.commit({"count": {"new": None}})
        event = heard.next()
        assert (event.name, event.data) == ("gone", {"key": "new", "batch": batch})
        made.commit({"count": {"new": {"count": 1}}})
        assert heard.next().name == "slate"


def test_going_on_where_it_was_broken_off(client: httpx.Client, made: MadeStore) -> None:
    """A client that returns with the last id gets the slate only if it has changed since."""
    path = "/slates/count/back/watch"
    made.commit({"count": {"back": {"count": 1}}})
    with listening(client, path) as heard:
        last = heard.next().id
    made.commit({"count": {"another": {}}})
    with listening(client, path, last) as heard:
        made.commit({"count": {"back": {"count": 2}}})
        event = heard.next()
        assert event.data["slate"] == {"count": 2}
        last = event.id
    made.commit({"count": {"back": {"count": 3}}})
    with listening(client, path, last) as heard:
        assert heard.next().data["slate"] == {"count": 3}
    with listening(client, path, "nonsense") as heard:
        assert heard.next().data["slate"] == {"count": 3}


def test_going_on_without_a_slate(client: httpx.Client, made: MadeStore) -> None:
    """That there is none is remembered too."""
    with listening(client, "/slates/count/never/watch") as heard:
        last = heard.next().id
    with listening(client, "/slates/count/never/watch", last) as heard:
        made.commit({"count": {"never": {"count": 1}}})
        assert heard.next().name == "slate"


@pytest.mark.parametrize(
    "key", ["", "watch", "a/b", "?&=%", "\n\r\0", "<script>", "\U0001f600", ".."]
)
def test_keys_of_any_characters(client: httpx.Client, made: MadeStore, key: str) -> None:
    """A key is watched by its path or by a parameter."""
    made.commit({"count": {key: {"of": key}}})
    with listening(client, "/slates/count/watch", key=key) as heard:
        assert heard.next().data["slate"] == {"of": key}
    if key not in ("", ".."):
        with listening(client, f"/slates/count/{quote(key, safe='')}/watch") as heard:
            assert heard.next().data["key"] == key


def test_a_table(client: httpx.Client, made: MadeStore) -> None:
    """A table is sent whole."""
    made.commit({"visitors": {"Walmart": {"ann": 1}}})
    with listening(client, "/slates/visitors/Walmart/watch") as heard:
        assert heard.next().data["slate"] == {"ann": 1}
        made.commit({"visitors": {"Walmart": {"ann": 2, "bob": 1}}})
        assert heard.next().data["slate"] == {"ann": 2, "bob": 1}


def test_many_who_watch(client: httpx.Client, made: MadeStore) -> None:
    """Each of those who watch the same slate is sent every change."""
    made.commit({"count": {"shared": {"count": 0}}})
    path = "/slates/count/shared/watch"
    with (
        listening(client, path) as one,
        listening(client, path) as two,
        listening(client, "/slates/count/Walmart/watch") as other,
    ):
        assert one.next().data["slate"] == two.next().data["slate"] == {"count": 0}
        other.next()
        for count in (1, 2, 3):
            made.commit({"count": {"shared": {"count": count}}})
            assert one.next().data["slate"] == two.next().data["slate"] == {"count": count}


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/slates/cuont/a/watch", 404, "did you mean 'count'?"),
        ("/slates/count/watch", 400, "?key=KEY"),
        ("/slates/count/a/watch?from=1", 400, "no parameter 'from'"),
    ],
)
def test_what_cannot_be_watched(client: httpx.Client, path: str, status: int, said: str) -> None:
    """A wrong address is an error that says what is right."""
    answer = client.get(path)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_head(client: httpx.Client) -> None:
    """HEAD gives the head and begins no stream."""
    answer = client.head("/slates/count/a/watch")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_through_restarts(tmp_path: Path) -> None:
    """The last id is good for another server of the same store."""
    made = checkins_store(tmp_path / "store")
    made.commit({"count": {"a": {"count": 1}}})
    with asked(made.path) as client, listening(client, "/slates/count/a/watch") as heard:
        last = heard.next().id
    with asked(made.path) as client, listening(client, "/slates/count/a/watch", last) as heard:
        made.commit({"count": {"a": {"count": 2}}})
        assert heard.next().data["slate"] == {"count": 2}


def test_a_server_that_stops_ends_its_streams(tmp_path: Path) -> None:
    """A stream ends whole when the server stops, and does not hold the server up."""
    made = checkins_store(tmp_path / "store")
    made.commit({})
    child = ServerChild.start(ServerOptions(made.path, port=0))
    try:
        with (
            httpx.Client(base_url=child.url) as client,
            listening(client, "/slates/count/a/watch") as heard,
        ):
            heard.next()
            child.stop()
            assert list(heard) == []
    finally:
        child.stop()


def test_a_slow_client_skips_values_and_is_cut_off(tmp_path: Path) -> None:
    """For a client that takes nothing, nothing is queued; after a while it is cut off."""
    made = checkins_store(tmp_path / "store")
    text = "x" * (1 << 20)
    path = "/slates/count/a/watch"
    with (
        served(made.path, stall=0.5) as url,
        httpx.Client(base_url=url) as client,
        listening(client, path) as fast,
    ):
        fast.next()
        before = open_sockets(made.path)
        with connected(url) as slow:
            slow.sendall(head(url, f"GET {path} HTTP/1.1"))
            for count in range(25):
                made.commit({"count": {"a": {"count": count, "text": text}}})
                assert fast.next().data["slate"]["count"] == count
            until(lambda: open_sockets(made.path) == before)
            assert received(slow) < 15 << 20
        assert client.get("/healthz").status_code == 200


def test_an_update_that_is_no_more_holds_up_no_other(tmp_path: Path) -> None:
    """When the store is replaced, its slates are sent, and those that it lacks are reported as
    gone."""
    slates = {"count": {"a": {"n": 1}}, "other": {"a": {"n": 1}}}
    made = MadeStore(tmp_path / "store", {"count": "dict", "other": "dict"})
    made.commit(slates)
    with asked(made.path) as client, ExitStack() as stack:
        others = [stack.enter_context(listening(client, "/slates/other/a/watch")) for _ in range(8)]
        heard = stack.enter_context(listening(client, "/slates/count/a/watch"))
        assert [one.next().name for one in [heard, *others]] == ["slate"] * 9
        made.path.rename(tmp_path / "moved")
        again = MadeStore(tmp_path / "store", {"count": "dict"})
        again.commit({"count": {"a": {"n": 2}}})
        again.commit({"count": {"a": {"n": 3}}})
        until(lambda: heard.next().data.get("slate") == {"n": 3})
        assert [one.next().name for one in others] == ["gone"] * 8


def test_a_slate_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    """Its watchers hear nothing until it can be read again; those of other slates hear theirs."""
    keys = ["bad", *map(str, range(8))]
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    made.commit({"count": {key: {"n": 1} for key in keys}})
    with asked(made.path) as client, ExitStack() as stack:
        bad, *others = (
            stack.enter_context(listening(client, f"/slates/count/{key}/watch")) for key in keys
        )
        assert [one.next().data["slate"] for one in [bad, *others]] == [{"n": 1}] * 9
        shard = made.home.store().shard(shard_of("count", "bad", SHARDS))
        row = {slates_of("count") + b"bad": b"\x70 of a later version"}
        shard.commit(Fence(made.epoch, made.progress.batch + 1, 0), {"meddler": row})
        made.commit({"count": {key: {"n": 2} for key in keys[1:]}})
        assert [one.next().data["slate"] for one in others] == [{"n": 2}] * 8
        made.commit({"count": {"bad": {"n": 3}}})
        assert bad.next().data["slate"] == {"n": 3}
