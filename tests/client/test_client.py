"""The client against a real server: sending events, reading slates, and the errors."""

import socket
import threading
import time
from collections import Counter
from itertools import islice

import pytest
from client.cutting_proxy import CuttingProxy
from client.live_server import LiveServer

from millstream.client import Client, Refused, Sent, Slate
from millstream.errors import ClientError, CodecError

STRANGE_KEYS = ["", ".", "..", "dump", "watch", "a/b", "%2F", "a b+c", "é\u2028?&=#", "<b>", "\n"]


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A server that the tests of this module share; none of them stops it."""
    with LiveServer(tmp_path_factory.mktemp("live") / "store") as server:
        slates = {key: {"count": n} for n, key in enumerate(STRANGE_KEYS)}
        pages = {f"page {n:04}": {"count": n} for n in range(2500)}
        server.made.commit({"count": slates | pages, "top": {"all": {"a": 1, "b": 2}}})
        yield server.start()


@pytest.fixture
def client(live):
    with Client(live.url) as client:
        yield client


@pytest.fixture
def own(tmp_path):
    """A server of the test's own, to be killed and started again."""
    with LiveServer(tmp_path / "store") as server:
        yield server


def numbered(count):
    return ({"venue": "Walmart", "n": n} for n in range(count))


def test_ten_thousand_events(own):
    """A generator goes in batches of 500, in order, and is read only as it is sent."""
    own.start()
    ahead, read, batches = 0, 0, []

    def events():
        nonlocal read
        for event in numbered(10_000):
            read += 1
            yield event

    def progress(sent):
        nonlocal ahead
        batches.append(sent.accepted)
        ahead = max(ahead, read - sum(batches))

    with Client(own.url) as client:
        assert client.send("checkins", events(), progress=progress) == Sent(10_000)
        assert client.status().server.accepted == 10_000
    assert batches == [500] * 20
    assert ahead == 0
    assert [record["n"] for record in own.records("checkins")] == list(range(10_000))


def test_refused_events_are_named(live, client):
    """Refused events are named by their place in the call, also past the first batch. The rest is
    accepted."""
    bad = {3: {"n": 1}, 700: "text"}
    events = [bad.get(n, {"venue": "refusals"}) for n in range(1, 1001)]
    sent = client.send("checkins", events)
    assert (sent.accepted, sent.refused_count) == (998, 2)
    assert [(one.line, one.text) for one in sent.refused] == [(3, '{"n":1}'), (700, '"text"')]
    assert sent.refused[0].error == "source 'checkins': key: the record has no field 'venue'"


def test_all_refused(client):
    """If the server takes nothing of a batch, that too is an answer, not an error."""
    sent = client.send("checkins", [{}] * 120)
    assert (sent.accepted, sent.refused_count, len(sent.refused)) == (0, 120, 100)


def test_one_event(live, client):
    """An event is accepted, or raises the server's error."""
    client.send_one("checkins", {"venue": "one"})
    assert {"venue": "one"} in live.records("checkins")
    with pytest.raises(ClientError, match=r"^source 'checkins': key: the record has no") as error:
        client.send_one("checkins", {"n": 1})
    assert error.value.status == 422


def test_lines(live, client):
    """Lines go as they are: the server says which are not JSON; a line too long is not sent."""
    lines = [
        b'{"venue": "lines"}\r\n',
        "",
        '{"venue":',
        b'{"venue": "\xff"}',
        "x" * 2_000_000,
        "\n",
    ]
    sent = client.send_lines("checkins", lines)
    assert (sent.accepted, [one.line for one in sent.refused]) == (1, [3, 4, 5])
    assert "ends too early" in sent.refused[0].error
    assert "not UTF-8" in sent.refused[1].error
    long = "an event must have at most 1,048,576 bytes; this one has more"
    assert sent.refused[2] == Refused(5, long, "x" * 200)
    assert {"venue": "lines"} in live.records("checkins")


def test_what_cannot_be_sent(client):
    """Bytes, and one event where many are to be, are refused here, and nothing is sent."""
    for events, words in (
        ([{"venue": "x", "photo": b"1"}], "event 1: .*bytes are not"),
        ({"venue": "x"}, "send takes many events.*use send_one"),
        ("text", "send takes many events"),
    ):
        with pytest.raises(CodecError, match=words):
            client.send("checkins", events)
    with pytest.raises(CodecError, match=r"event 501: .*; 500 events before were accepted"):
        client.send("checkins", [{"venue": "some"}] * 500 + [b"x"])


def test_a_repeated_call_counts_once(live, client):
    """With an idempotency key the same call counts once; other events under it are refused."""
    events = [{"venue": "repeated", "n": n} for n in range(700)]
    for _ in range(2):
        assert client.send("checkins", events, idempotency_key="monday").accepted == 700
    assert sum(record.get("venue") == "repeated" for record in live.records("checkins")) == 700
    with pytest.raises(ClientError, match="monday-0") as error:
        client.send("checkins", [{"venue": "other"}], idempotency_key="monday")
    assert error.value.status == 422
    with pytest.raises(ClientError, match="must be printable ASCII"):
        client.send("checkins", events, idempotency_key="día")


def test_get(live, client):
    """A slate has its key, value, time, batch and age; None if there is none."""
    slate = client.get("count", "page 0001")
    assert slate is not None
    assert (slate.key, slate.value, slate.ts, slate.batch) == ("page 0001", {"count": 1}, 0, 0)
    assert slate.age is not None
    assert 0 <= slate.age < 60
    assert client.get("count", "nobody") is None
    assert client.get("top", "all").value == {"a": 1, "b": 2}


@pytest.mark.parametrize("key", STRANGE_KEYS)
def test_keys_of_any_characters(client, key):
    """Every key finds its own slate, also those that mean something in a path."""
    found = client.get("count", key)
    assert (found.key, found.value) == (key, {"count": STRANGE_KEYS.index(key)})
    assert next(client.watch("count", key)).value == found.value


def test_scan_pages(client):
    """A scan goes through all pages in key order, by prefix, past a key, up to a limit."""
    keys = [f"page {n:04}" for n in range(2500)]
    assert [slate.key for slate in client.scan("count", prefix="page")] == keys
    some = list(client.scan("count", prefix="page", after=keys[9], limit=1500))
    assert [slate.key for slate in some] == keys[10:1510]
    assert some[0] == Slate(keys[10], {"count": 10}, 0, 0)
    assert [slate.key for slate in client.scan("count", after=keys[-3])][:2] == keys[-2:]
    assert list(client.scan("count", prefix="none")) == list(client.scan("count", limit=0)) == []


def test_dump(client):
    """A dump has every slate, in key order, of one batch; who has enough just stops."""
    slates = list(client.dump("count"))
    pages = [f"page {n:04}" for n in range(2500)]
    assert [slate.key for slate in slates] == sorted(STRANGE_KEYS + pages)
    assert {slate.batch for slate in slates} == {0}
    for _ in range(5):
        assert len(list(islice(client.dump("count"), 3))) == 3


def test_the_application(client):
    """The client returns the server's information about itself and the application."""
    assert client.status().app == "retail"
    assert client.graph()["outputs"][0] == "hot"
    posts = {stream.name: stream.posts for stream in client.streams()}
    assert posts["checkins"]
    assert not posts["hot"]


def test_the_servers_own_sentence(client):
    """A refusal is raised with the sentence and the status of the server."""
    for call, sentence, status in (
        (lambda: client.send("chekins", [1]), "no stream 'chekins'; did you mean 'checkins'", 404),
        (lambda: client.send("hot", [1]), "stream 'hot' is not a source", 404),
        (lambda: client.send("files", [1]), "source 'files' reads json:", 409),
        (lambda: client.get("cuont", "x"), "no update 'cuont'; did you mean 'count'", 404),
        (lambda: list(client.scan("cuont")), "no update 'cuont'", 404),
        (lambda: list(client.dump("cuont")), "no update 'cuont'", 404),
        (lambda: next(client.watch("cuont", "x")), "no update 'cuont'", 404),
        (lambda: client.tail("hto"), "no stream 'hto'; did you mean 'hot'", 404),
        (lambda: client.tail("files"), "files", 409),
    ):
        with pytest.raises(ClientError, match=sentence) as error:
            call()
        assert error.value.status == status


def test_tokens(tmp_path):
    """A server with a token is used with it, and refuses every call without or with another."""
    token = "a-token-of-the-tests"
    with LiveServer(tmp_path / "store", token=token) as server:
        server.made.commit({"count": {"Walmart": {"count": 1}}})
        server.start()
        with Client(server.url, token=token) as client:
            assert client.get("count", "Walmart").value == {"count": 1}
            assert client.send("checkins", [{"venue": "x"}]).accepted == 1
        for wrong in (None, "another-token-wrong"):
            with Client(server.url, token=wrong) as client:
                for call in (client.status, lambda: client.send("checkins", [{"venue": "x"}])):
                    with pytest.raises(ClientError, match="token") as error:
                        call()
                    assert error.value.status == 401


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_no_server():
    """If no server ever answered, the client says so at once, and what to do."""
    url = f"http://127.0.0.1:{free_port()}"
    with Client(url) as client:
        for call in (
            client.status,
            lambda: client.send("x", [1]),
            lambda: next(client.watch("u", "k")),
        ):
            with pytest.raises(ClientError) as error:
                call()
            assert str(error.value) == (
                f"no server answers at {url}; start one with millstream run or millstream serve"
            )
            assert error.value.status is None


def test_urls():
    """An invalid address is refused when the client is made."""
    for url in ("127.0.0.1:8470", "ftp://x", "http://", "http://x:port", "nonsense"):
        with pytest.raises(ClientError, match="url"):
            Client(url)
    with pytest.raises(ClientError, match="token must be printable ASCII"):
        Client(token="x\n")
    with Client("http://127.0.0.1:8470/") as client:
        assert client.url == "http://127.0.0.1:8470"


def test_proxies_of_the_environment_are_not_asked_for_this_machine(live, monkeypatch):
    """HTTP_PROXY, which many machines have set, does not stand before a server on this one."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")
    with Client(live.url) as client:
        assert client.status().app == "retail"


def test_lost_answers_count_nothing_twice(own):
    """An answer that is lost after the events were taken: they are sent again, and count once."""
    own.start()
    with CuttingProxy(("127.0.0.1", own.port)) as proxy, Client(proxy.url) as client:

        def events():
            for n, event in enumerate(numbered(3000)):
                if n in (700, 1700):
                    proxy.lose_answers = 1
                yield event

        assert client.send("checkins", events()) == Sent(3000)
        assert proxy.lost == 2
    assert [record["n"] for record in own.records("checkins")] == list(range(3000))


def test_killed_in_the_middle(own):
    """The server is killed again and again while events are sent, and is away for a while: all of
    them are taken, in order, and none twice."""
    own.start()

    def events():
        again = None
        for n, event in enumerate(numbered(3000)):
            if n in (600, 1900):
                own.kill()
                again = threading.Timer(0.2, own.start)
                again.start()
            yield event
        again.join()

    with Client(own.url) as client:
        assert client.send("checkins", events()).accepted == 3000
    counts = Counter(record["n"] for record in own.records("checkins"))
    assert counts == Counter(range(3000))


def test_a_server_that_stays_away(own):
    """The number of tries is bounded. Then the error says which events were accepted, and which are
    unknown."""
    own.start()

    def events():
        for n, event in enumerate(numbered(2000)):
            if n == 800:
                own.kill()
            yield event

    with Client(own.url, retries=2) as client, pytest.raises(ClientError) as error:
        client.send("checkins", events())
    assert str(error.value) == (
        f"no server answers at {own.url}; start one with millstream run or millstream serve; "
        "whether it took events 501 to 1,000 is unknown; 500 events before were accepted"
    )
    assert len(own.records("checkins")) == 500


def test_not_now_is_tried_again(tmp_path):
    """A server that limits its rate says how long to wait, and the events get through."""
    with LiveServer(tmp_path / "store", rate=4.0) as server:
        server.start()
        with Client(server.url) as client:
            began = time.monotonic()
            assert client.send("checkins", numbered(6000)) == Sent(6000)
            assert time.monotonic() - began > 0.9  # 12 requests: 8 at once, then 4 a second
        assert len(server.records("checkins")) == 6000


def test_not_now_for_good(tmp_path):
    """When the tries are used up, what the server said last is raised."""
    with LiveServer(tmp_path / "store", backlog_bytes=1000) as server:
        server.start()
        with (
            Client(server.url, retries=1) as client,
            pytest.raises(ClientError, match=r"bytes behind.*; 500 events before were") as error,
        ):
            client.send("checkins", numbered(1000))
        assert error.value.status == 503


def test_a_broken_dump_is_not_a_whole_one(live):
    """A dump that breaks off raises: nobody takes a part for all."""
    with CuttingProxy(("127.0.0.1", live.port)) as proxy, Client(proxy.url) as client:
        slates = client.dump("count")
        assert next(slates).key == ""
        proxy.cut()
        with pytest.raises(ClientError, match=r"the dump of 'count' broke off after [\d,]+ slates"):
            for _ in slates:
                pass
