"""Assigns a host to each task of the layers: its seat. Pure.

A shard's copy is on the disk of one host, so its task should run there in every batch. A seat is
the host of one task. Seats move as little as possible:

- a host that is gone loses its seats, and the others keep theirs;
- a new host gets seats from the fullest hosts, a few at a time: each move costs the restore of a
  task's copies.

A host's fair share is in proportion to its executors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOVED_AT_ONCE = 8
"""To even out the seats, one in this many is moved at a time, but at least one."""
EVENING_SECONDS = 5.0
"""Seconds for which the seats stay as they are after such a move."""
SETTLING_SECONDS = 15.0
"""For how long after the first assignment all seats may be moved at once: hosts are still joining,
and have little to restore."""
Hosts = Mapping[str, int]
"""The number of executors of each host."""


class SeatPlan:
    """The seats of all tasks, updated as hosts join and leave."""

    def __init__(self, tasks: int) -> None:
        self.seats: tuple[str, ...] = ("",) * tasks
        """The host of each task; empty before the first host has joined."""
        self._even_at = 0.0
        self._settled_at: float | None = None

    def changed(self, hosts: Hosts, now: float) -> bool:
        """Updates the seats for the hosts that exist at `now`; True if a seat has moved."""
        before = self.seats
        if not hosts:
            return False
        if self._settled_at is None:
            self._settled_at = now + SETTLING_SECONDS
        if now < self._settled_at:
            self.seats = evened(reseated(before, hosts), hosts, len(before))
        elif not set(before) <= hosts.keys():
            self.seats = reseated(before, hosts)
            self._even_at = now + EVENING_SECONDS
        elif now >= self._even_at:
            self.seats = evened(before, hosts, max(1, len(before) // MOVED_AT_ONCE))
            if self.seats != before:
                self._even_at = now + EVENING_SECONDS
        return self.seats != before


def reseated(seats: Sequence[str], hosts: Hosts) -> tuple[str, ...]:
    """Returns the seats, with those of hosts that are gone given to the emptiest other hosts.

    >>> reseated(("a", "b", "a", "b"), {"a": 1, "c": 1})
    ('a', 'c', 'a', 'c')
    """
    taken = {host: sum(seat == host for seat in seats) for host in hosts}
    dealt = []
    for seat in seats:
        if seat not in hosts:
            seat = _emptiest(taken, hosts)
            taken[seat] += 1
        dealt.append(seat)
    return tuple(dealt)


def evened(seats: Sequence[str], hosts: Hosts, most: int) -> tuple[str, ...]:
    """Returns the seats with at most `most` of them moved to emptier hosts.

    All seats must be on hosts that exist.

    >>> evened(("a", "a", "a", "a"), {"a": 1, "b": 1}, 1)
    ('a', 'a', 'a', 'b')
    """
    moved = list(seats)
    taken = {host: sum(seat == host for seat in seats) for host in hosts}
    for _ in range(most):
        fullest = max(sorted(hosts), key=lambda host: taken[host] / hosts[host])
        emptiest = _emptiest(taken, hosts)
        if (taken[emptiest] + 1) / hosts[emptiest] >= taken[fullest] / hosts[fullest]:
            break  # a move would only swap the two hosts' roles
        last = max(task for task, seat in enumerate(moved) if seat == fullest)
        moved[last] = emptiest
        taken[fullest] -= 1
        taken[emptiest] += 1
    return tuple(moved)


def _emptiest(taken: Mapping[str, int], hosts: Hosts) -> str:
    """Returns the host that would be least full with one more seat; on a tie, the first by name."""
    return min(sorted(hosts), key=lambda host: (taken[host] + 1) / hosts[host])
