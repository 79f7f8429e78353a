"""A standby leads once the leader is silent for the time of the lease, and not before."""

from __future__ import annotations

import socket
import threading

import pytest

from millstream.driver.startup.leadership import (
    LeaderBeat,
    LeaderWatch,
    Leading,
    last_beat,
    stand_by,
)
from millstream.errors import RunError
from millstream.places.memory_place import MemoryPlace


def beat(number: int, *, ended: bool = False) -> LeaderBeat:
    return LeaderBeat("host", "run", number, ended)


def test_a_leader_that_beats_leads() -> None:
    """Each new beat, and each new commit, begins the lease anew."""
    watch = LeaderWatch(lease=10.0)
    assert not watch.may_lead(beat(1), 5, now=100.0)
    assert not watch.may_lead(beat(2), 5, now=109.0)
    assert not watch.may_lead(beat(2), 6, now=118.0)
    assert not watch.may_lead(beat(2), 6, now=127.0)
    assert watch.may_lead(beat(2), 6, now=128.0)


def test_a_leader_that_has_ended_is_not_waited_for() -> None:
    """A leader that ends in order records its end."""
    assert LeaderWatch(lease=10.0).may_lead(beat(9, ended=True), 5, now=0.0)


def test_without_a_leader_the_lease_is_waited_for() -> None:
    """A leader may be about to start."""
    watch = LeaderWatch(lease=10.0)
    assert not watch.may_lead(None, None, now=0.0)
    assert watch.may_lead(None, None, now=10.0)


def test_the_leader_says_so_and_says_when_it_ends() -> None:
    """Its beats are in the place for as long as it leads, and an end after them."""
    place = MemoryPlace()
    with Leading(place, "run", seconds=0.01):
        while (said := last_beat(place)) is None or said.beat < 3:
            pass
        assert not said.ended
    ended = last_beat(place)
    assert ended is not None
    assert ended.ended
    assert stand_by(place, 1_000.0, threading.Event(), lambda sentence: None)


def test_a_standby_can_be_stopped() -> None:
    """It does not become the leader then."""
    stop = threading.Event()
    stop.set()
    assert not stand_by(MemoryPlace(), 0.0, stop, lambda sentence: None)


def test_a_standby_says_when_it_is_ready() -> None:
    """First who leads, and again once what runs its batches has started."""
    place, stop, said = MemoryPlace(), threading.Event(), list[str]()

    def say(sentence: str) -> None:
        said.append(sentence)
        if len(said) == 2:
            stop.set()

    with Leading(place, "run"):
        while last_beat(place) is None:
            pass
        assert not stand_by(place, 1_000.0, stop, say, started=lambda: bool(said))
    host = socket.gethostname()
    assert said == [
        f"standing by: {host} leads",
        f"standing by: {host} leads; ready to take over",
    ]


def test_a_standby_that_could_not_run_anything_ends() -> None:
    """Conditions that would prevent its batches are reported at once, not when the leader is
    gone."""

    def started() -> bool:
        raise RunError("no executor came")

    with pytest.raises(RunError, match="no executor came"):
        stand_by(MemoryPlace(), 1_000.0, threading.Event(), lambda sentence: None, started=started)
