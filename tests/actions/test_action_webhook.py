"""Carrying out by HTTP, over a real receiver on loopback that fails in every way."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from asking import Store, drain
from receiver import BROKEN, CUT, HALF, HANG, Answer, Receiver

from millstream.actions.letters import letters
from millstream.actions.webhook import Webhook


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def carried(store: Store, there: Receiver, timeout: float = 5.0, tries: int = 3) -> list[float]:
    """Ask for a and b, and carry them out; the pauses between tries."""
    worker = store.worker(Webhook(there.url, timeout), tries)
    store.ask("a", "b", value={"n": 1})
    try:
        return drain(store, worker)
    finally:
        worker.close()


def test_what_is_sent(store: Store) -> None:
    """A POST of JSON with the event, and its id as the idempotency key."""
    with Receiver() as there:
        assert carried(store, there) == []
    first, second = there.got
    assert (first.id, second.id) == (store.id(0), store.id(1))
    assert first.type == "application/json"
    assert first.body == {
        "action": "notify",
        "id": store.id(0),
        "key": "a",
        "ts": 0,
        "value": {"n": 1},
    }


@pytest.mark.parametrize("failure", [500, 503, 408, 425, 429, CUT, HALF])
def test_what_may_pass_is_tried_again_with_the_same_key(store: Store, failure: int | str) -> None:
    """An answer that says "not now", or none, is tried again after a pause, before the next."""
    with Receiver([failure]) as there:
        assert carried(store, there) == [0.5]
    assert there.keys == ["a", "a", "b"]
    assert there.got[0] == there.got[1]


@pytest.mark.parametrize("status", [400, 401, 404, 422, 301])
def test_a_refusal_is_a_dead_letter_at_once(store: Store, status: int) -> None:
    """A refusal is not retried, and the dead letter has the receiver's answer."""
    with Receiver([Answer(status, body=b"no such\n  user")]) as there:
        assert carried(store, there) == []
    assert there.keys == ["a", "b"]
    ((_, letter),) = letters(store.path, "notify")
    assert letter.error.startswith(f"HTTP {status}: no such user")


def test_a_receiver_that_says_when_is_heeded(store: Store) -> None:
    """Retry-After is waited for, in seconds or as a date, if it is longer than the own pause."""
    with Receiver(
        [Answer(429, "7"), Answer(503, "0"), Answer(503, "Thu, 01 Jan 1970 00:00:00 GMT")]
    ) as there:
        assert carried(store, there, tries=4) == [7.0, 1.0, 2.0]
    assert there.keys == ["a", "a", "a", "a", "b"]


def test_a_receiver_that_does_not_answer(store: Store) -> None:
    """After the time for an answer it counts as failed, and is tried again."""
    with Receiver([HANG]) as there:
        assert carried(store, there, timeout=0.2) == [0.5]
    assert there.keys == ["a", "a", "b"]


def test_an_answer_that_breaks_off_after_its_status(store: Store) -> None:
    """The status is the answer: it is done, though the rest never comes."""
    with Receiver([BROKEN]) as there:
        assert carried(store, there) == []
    assert there.keys == ["a", "b"]


def test_a_receiver_that_is_not_there(store: Store) -> None:
    """A refused connection is tried again; after the last try it is a dead letter."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        url = f"http://127.0.0.1:{held.getsockname()[1]}/"
    worker = store.worker(Webhook(url, 5.0), tries=2)
    store.ask("a")
    assert drain(store, worker) == [0.5]
    worker.close()
    ((_, letter),) = letters(store.path, "notify")
    assert "ConnectError" in letter.error
    assert letter.tries == 2


def test_a_long_answer_is_not_taken_whole(store: Store) -> None:
    """Only the first words of a receiver's answer are kept and shown."""
    with Receiver([Answer(400, body=b"x" * 1_000_000)]) as there:
        carried(store, there)
    ((_, letter),) = letters(store.path, "notify")
    assert len(letter.error) < 300
