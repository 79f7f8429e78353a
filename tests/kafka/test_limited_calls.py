"""Calls of Kafka's client library end in time, whether the library returns or not."""

from __future__ import annotations

import threading
import weakref

import pytest

from millstream.errors import SinkError
from millstream.kafka.batch_producer import BatchProducer, TopicRecord
from millstream.kafka.limited_calls import CallOverdue, LimitedClient, close_in_time
from millstream.kafka.sink_topic import sink_topic


class Waiting:
    """A client whose calls return when they are let go, as those of a real one may."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.called_in: list[threading.Thread] = []
        self.freed_in: list[threading.Thread] = []
        weakref.finalize(self, self._freed, self.freed_in)

    def wait(self) -> None:
        self.called_in.append(threading.current_thread())
        self.let_go.wait()

    def close(self) -> None:
        self.wait()

    @staticmethod
    def _freed(freed_in: list[threading.Thread]) -> None:
        freed_in.append(threading.current_thread())


def test_a_call_returns_what_the_client_returns() -> None:
    """Results and errors come from the client."""
    client = LimitedClient([3, 1, 2])
    assert client.call("sorted", sorted, 10.0) == [1, 2, 3]
    with pytest.raises(ValueError, match="4 is not in list"):
        client.call("index", lambda held: held.index(4), 10.0)
    assert client.client == [3, 1, 2]


def test_a_call_that_does_not_return_is_left_behind() -> None:
    """The caller is told what was waited for, and for how long. The client is freed by the thread
    of the call once this returns, not by the caller, who might wait for that too."""
    held = Waiting()
    let_go, called_in, freed_in = held.let_go, held.called_in, held.freed_in
    client = LimitedClient(held)
    del held
    with pytest.raises(CallOverdue, match=r"wait did not return within 0\.05 s"):
        client.call("wait", Waiting.wait, 0.05)
    client.discard(Waiting.wait)  # at once, since the client is in use
    assert not freed_in
    let_go.set()
    called_in[0].join(10.0)
    assert freed_in == called_in


def test_the_error_of_a_call_does_not_keep_the_client() -> None:
    """An error may be kept for long. The client is freed when it is discarded, by a thread."""
    held = Waiting()
    freed_in, client = held.freed_in, LimitedClient(held)
    del held

    def failing(waiting: Waiting) -> None:
        raise SinkError(f"refused by {type(waiting).__name__}")

    with pytest.raises(SinkError) as failure:
        client.call("failing", failing, 10.0)
    client.discard()
    assert str(failure.value) == "refused by Waiting"
    assert len(freed_in) == 1
    assert freed_in[0] is not threading.main_thread()


def test_ending_a_client_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not end is left to a thread."""
    monkeypatch.setattr("millstream.kafka.limited_calls.AWAY_SECONDS", 0.05)
    held = Waiting()
    close_in_time(held)
    LimitedClient(held).discard(Waiting.close)
    held.let_go.set()


def test_a_full_queue_is_waited_for_only_so_long() -> None:
    """While no broker answers, the client's queue fills up; the sink fails then, to be tried again,
    and says why."""
    options = [
        ("servers", "127.0.0.1:1"),
        ("delivery", "at-least-once"),
        ("client.queue.buffering.max.messages", "10"),
    ]
    producer = BatchProducer(sink_topic("counts", options), "5f0c", "out", seconds=0.3)
    records = (TopicRecord(b"k", b"%d" % n, n) for n in range(100))
    with pytest.raises(SinkError, match=r"batch 7 .*: the brokers have taken no record for 0\.3 s"):
        producer.send(7, records)
