"""Watching slates and tailing streams of a real server that is restarted, killed and cut off."""

from itertools import islice

import pytest
from client.cutting_proxy import CuttingProxy
from client.live_server import OUTPUTS, LiveServer, once

from millstream.client import Client, Gap, Record
from millstream.errors import ClientError
from millstream.log.retention import Retention

UNUSED = iter(OUTPUTS)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A server that the tests share; each leaves it running."""
    with LiveServer(tmp_path_factory.mktemp("live") / "store") as server:
        yield server.start()


@pytest.fixture
def client(own):
    with Client(own.url) as client:
        yield client


@pytest.fixture
def hot():
    """An output stream of the test's own."""
    return next(UNUSED)


@pytest.fixture
def key(own, request):
    """A key of the test's own, with a count of 1."""
    count(own, request.node.name, 1)
    return request.node.name


def count(own, key, value):
    own.made.commit({"count": {key: value and {"count": value}}})


def test_watch_sees_every_state(own, client, key):
    """The watch gives the present slate, then each new value. It gives None when the slate is
    deleted, and at the start if there is none."""
    slates = client.watch("count", key)
    first = next(slates)
    assert (first.key, first.value, first.batch) == (key, {"count": 1}, own.made.progress.batch)
    count(own, key, 2)
    second = next(slates)
    assert (second.value, second.batch) == ({"count": 2}, first.batch + 1)
    assert second.ts > first.ts
    count(own, key, None)
    assert next(slates) is None
    assert next(client.watch("count", "Target")) is None
    count(own, key, 4)
    assert next(slates).value == {"count": 4}


def test_watch_survives_restarts(own, key):
    """After a restart an unchanged slate is not given again, and a changed one is."""
    with CuttingProxy(("127.0.0.1", own.port)) as proxy, Client(proxy.url) as client:
        slates = client.watch("count", key)
        assert next(slates).value == {"count": 1}
        own.stop()
        count(own, key, 2)
        own.start()
        assert next(slates).value == {"count": 2}
        before = proxy.connections
        own.kill()
        own.start()
        own.made.commit()  # a batch that leaves the slate as it was
        changing = once(lambda: proxy.connections > before, count, own, key, 3)
        assert next(slates).value == {"count": 3}
        changing.join()


def test_tail_gives_records_as_they_come(own, client, hot):
    """From the start, from a number, from so many before the end, or from the call on."""
    own.emit(hot, *range(10, 20))
    assert list(client.tail(hot, start="start", limit=2)) == [Record(0, 10), Record(1, 11)]
    assert list(client.tail(hot, start=8, limit=2)) == [Record(8, 18), Record(9, 19)]
    assert list(client.tail(hot, start=-3, limit=1)) == [Record(7, 17)]
    assert list(client.tail(hot, limit=0)) == []
    new = client.tail(hot)
    own.emit(hot, {"venue": "é\u2028"}, 21)  # after the call, before the first record is asked for
    assert list(islice(new, 2)) == [Record(10, {"venue": "é\u2028"}), Record(11, 21)]


def test_tail_survives_restarts(own, client, hot):
    """Each record comes once, in order, over restarts, also if the first comes after one."""
    records = client.tail(hot)
    own.kill()
    own.emit(hot, 0, 1)
    own.start()
    assert list(islice(records, 2)) == [Record(0, 0), Record(1, 1)]
    own.stop()
    own.emit(hot, 2, 3)
    own.start()
    assert list(islice(records, 2)) == [Record(2, 2), Record(3, 3)]


def test_tail_over_a_connection_that_breaks(own, hot):
    """A connection that is cut between two records loses and repeats none."""
    own.emit(hot, *range(3))
    with CuttingProxy(("127.0.0.1", own.port)) as proxy, Client(proxy.url) as client:
        records = client.tail(hot, start="start")
        found = list(islice(records, 2))
        before = proxy.connections
        proxy.cut()
        own.emit(hot, 3)
        found += islice(records, 2)
        assert proxy.connections > before
    assert found == [Record(n, n) for n in range(4)]


def test_a_silent_connection_is_made_again(own, monkeypatch, hot):
    """A connection over which nothing comes, not even a beat, is given up for another."""
    monkeypatch.setattr("millstream.client.event_stream.SILENCE", 0.2)
    own.emit(hot, 0)
    with CuttingProxy(("127.0.0.1", own.port)) as proxy, Client(proxy.url) as client:
        records = client.tail(hot, start=0)
        assert next(records) == Record(0, 0)
        before = proxy.connections
        emitting = once(lambda: proxy.connections > before, own.emit, hot, 1)
        assert next(records) == Record(1, 1)
        emitting.join()


def test_a_gap_is_told(own, client, hot):
    """Records that the retention has removed are not passed over in silence."""
    own.emit(hot, *range(20), segment_bytes=100, retention=Retention(max_bytes=300))
    found = list(client.tail(hot, start=2, limit=1))
    gap, record = found
    assert isinstance(gap, Gap)
    assert isinstance(record, Record)
    assert gap.first == 2
    assert record.number == record.value == gap.last + 1 > 2


def test_a_log_that_was_begun_anew(own, client, hot):
    """If the log was replaced during a restart, the tail says so and continues with the new one."""
    own.emit(hot, *range(5))
    records = client.tail(hot, start=4)
    assert next(records) == Record(4, 4)
    own.stop()
    for file in sorted(own.log(hot).rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    own.emit(hot, "new")
    own.start()
    gap = next(records)
    assert isinstance(gap, Gap)
    assert gap.last < gap.first
    own.emit(hot, "newer")
    assert next(records) == Record(1, "newer")


def test_the_tries_are_bounded(own, key):
    """When no server comes back, a watch ends with an error."""
    with Client(own.url, retries=1) as client:
        slates = client.watch("count", key)
        assert next(slates) is not None
        own.stop()
        with pytest.raises(ClientError, match="no server answers"):
            next(slates)
    own.start()


def test_who_stops_listening_is_gone(own, client, key):
    """A watch that is closed, or dropped, gives its connection back: hundreds can follow."""
    for _ in range(300):  # the server lets 256 listen at once
        assert next(client.watch("count", key)) is not None
