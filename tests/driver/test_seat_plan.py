"""Seats: which host each task runs on, as hosts come and go."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from millstream.driver.batch_plan.seat_plan import (
    EVENING_SECONDS,
    SETTLING_SECONDS,
    SeatPlan,
    evened,
    reseated,
)

names = st.sampled_from("abcdef")
host_sets = st.dictionaries(names, st.integers(1, 4), min_size=1)
seatings = st.lists(st.sampled_from(["", *"abcdefgh"]), min_size=1, max_size=40)


@given(seatings, host_sets)
def test_only_seats_of_lost_hosts_are_dealt_anew(seats: list[str], hosts: dict[str, int]) -> None:
    """Every seat is on a host that is there, and one whose host is there has not moved."""
    dealt = reseated(seats, hosts)
    assert set(dealt) <= hosts.keys()
    assert all(now == was for now, was in zip(dealt, seats, strict=True) if was in hosts)


@given(seatings, host_sets, st.integers(1, 5))
def test_few_seats_move_and_the_fullest_host_gets_emptier(
    seats: list[str], hosts: dict[str, int], most: int
) -> None:
    """Balancing moves no more seats than allowed, never to a fuller host, and ends when no host
    could hand a seat to another and be better off."""
    before = reseated(seats, hosts)
    for _ in range(len(seats) + 1):
        after = evened(before, hosts, most)
        assert sum(one != other for one, other in zip(before, after, strict=True)) <= most
        assert _fullest(after, hosts) <= _fullest(before, hosts)
        if after == before:
            break
        before = after
    taken = Counter(before)
    assert evened(before, hosts, most) == before
    for host in hosts:
        for other in hosts:
            assert (taken[other] + 1) / hosts[other] >= taken[host] / hosts[host]


def _fullest(seats: tuple[str, ...], hosts: dict[str, int]) -> float:
    taken = Counter(seats)
    return max(taken[host] / hosts[host] for host in hosts)


def test_a_host_that_comes_gets_seats_a_few_at_a_time() -> None:
    """Eight seats on one host become four and four in four moves, with a pause after each."""
    plan, now = SeatPlan(8), 100.0
    assert plan.changed({"a": 1}, now)
    now += SETTLING_SECONDS
    for moved in range(1, 5):
        before = plan.seats
        assert plan.changed({"a": 1, "b": 1}, now)
        assert not plan.changed({"a": 1, "b": 1}, now + EVENING_SECONDS / 2)
        assert sum(one != other for one, other in zip(before, plan.seats, strict=True)) == 1
        assert plan.seats.count("b") == moved
        now += EVENING_SECONDS
    assert not plan.changed({"a": 1, "b": 1}, now + EVENING_SECONDS)


def test_hosts_that_come_late_at_the_start_are_dealt_in() -> None:
    """Executors do not start at the same moment: in the first seconds the seats are even at
    once."""
    plan = SeatPlan(8)
    assert plan.changed({"a": 1}, 100.0)
    assert plan.changed({"a": 1, "b": 1}, 101.0)
    assert Counter(plan.seats) == {"a": 4, "b": 4}


def test_a_lost_host_is_left_at_once() -> None:
    """The seats of a host that is gone are dealt to the others in the same moment."""
    plan = SeatPlan(6)
    plan.changed({"a": 1, "b": 1, "c": 1}, 0.0)
    kept = {task for task, host in enumerate(plan.seats) if host != "b"}
    before = plan.seats
    assert plan.changed({"a": 1, "c": 1}, SETTLING_SECONDS)
    assert Counter(plan.seats) == {"a": 3, "c": 3}
    assert all(plan.seats[task] == before[task] for task in kept)


def test_without_any_host_the_seats_stay() -> None:
    """While no executor is there nothing is decided: Spark waits for one."""
    plan = SeatPlan(2)
    plan.changed({"a": 1}, 0.0)
    assert not plan.changed({}, 50.0)
    assert plan.seats == ("a", "a")
