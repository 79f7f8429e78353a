"""Retries of a sink: pauses, messages, records, and their end. Without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from millstream.driver.outputs.sink_retry import LONGEST_PAUSE, SinkRetry, Stopped
from millstream.errors import RunError, SinkError, StoreError
from millstream.stores.trouble import Trouble


class Watched:
    """Retries whose clock moves only while it waits, and all that it has told."""

    def __init__(self, seconds: float = 600, stop_after: float = 1e9) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.said: list[str] = []
        self.recorded: list[list[Trouble]] = []

        def wait(pause: float) -> bool:
            self.pauses.append(pause)
            self.now += pause
            return self.now < stop_after

        self.retry = SinkRetry(
            seconds,
            wait,
            lambda: round(self.now * 1e6),
            self.said.append,
            self.recorded.append,
        )


def failing(times: int, calls: list[str], name: str = "a") -> Callable[[], None]:
    """A sink that fails so many times, and then takes the batch."""
    left = [times]

    def attempt() -> None:
        calls.append(name)
        left[0] -= 1
        if left[0] >= 0:
            raise SinkError(f"sink {name}: disk full")

    return attempt


def test_what_works_is_not_spoken_of() -> None:
    """Sinks that take the batch are called once, in order, with no pause and no word."""
    watched, calls = Watched(), list[str]()
    watched.retry.through([(name, failing(0, calls, name)) for name in "abc"])
    assert calls == ["a", "b", "c"]
    assert (watched.pauses, watched.said, watched.recorded) == ([], [], [])


def test_only_the_sink_that_fails_is_tried_again() -> None:
    """The others get the batch at once; the pauses grow to a limit; it is said once."""
    watched, calls = Watched(), list[str]()
    watched.retry.through(
        [("sink 'a'", failing(8, calls, "a")), ("sink 'b'", failing(0, calls, "b"))]
    )
    assert calls == ["a", "b", *"a" * 8]
    assert watched.pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    assert watched.said == [
        "sink a: disk full; trying again for up to 600 s, and no further batch is committed "
        "meanwhile",
        "sink 'a' works again, after 121 s",
    ]
    assert watched.recorded == [[Trouble("sink 'a'", 0, "sink a: disk full")], []]


def test_patience_ends() -> None:
    """After the time given, and one last try, the run ends with what was wrong."""
    watched, calls = Watched(seconds=10), list[str]()
    with pytest.raises(RunError, match=r"sink a: disk full; it was tried for 10 s .*start again"):
        watched.retry.through([("sink 'a'", failing(99, calls))])
    assert watched.pauses == [1, 2, 4, 3]
    assert len(calls) == 5


def test_without_patience_the_first_failure_ends_it() -> None:
    """Nothing is tried again, and nothing promised."""
    watched, calls = Watched(seconds=0), list[str]()
    with pytest.raises(RunError, match="disk full"):
        watched.retry.through([("sink 'a'", failing(99, calls))])
    assert calls == ["a"]
    assert (watched.said, watched.pauses) == ([], [])


def test_a_stop_ends_the_waiting() -> None:
    """After a stop it raises the error to the caller, and retries no more."""
    watched, calls = Watched(stop_after=3), list[str]()
    with pytest.raises(Stopped) as stopped:
        watched.retry.through([("sink 'a'", failing(99, calls))])
    assert str(stopped.value.error) == "sink a: disk full"
    assert len(calls) == 2


def test_what_trying_again_cannot_mend_ends_it_at_once() -> None:
    """A sink that belongs to another store, for one, is not tried again."""
    watched = Watched()

    def refuse() -> None:
        raise StoreError("sink a: another store writes there")

    with pytest.raises(StoreError, match="another store"):
        watched.retry.through([("sink 'a'", refuse)])
    assert not watched.pauses
