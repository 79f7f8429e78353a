"""Chooses the connections to close to make room for one more.

These are idle ones: HTTP lets a server close them at any time. They are taken from the address that
has the most connections, so that a client that opens hundreds displaces its own and not those of
others. First go connections that have not shown a valid token, then those that have, then those
without a valid token whose body is awaited; the oldest first. A connection that is at work is never
closed here.

Pure: the `standing` of a connection says what it is doing.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

AT_ONCE = 128
"""One in this many of the allowed connections is closed at once, so that not every new connection
has to search through all."""


class Standing(NamedTuple):
    """A sort key of connections: the smallest is the most dispensable, and is closed first."""

    rank: int
    since: float
    """When its last request began."""


class Occupant(Protocol):
    """A connection that takes up room."""

    @property
    def group(self) -> str:
        """The address group that it counts for."""
        ...

    def standing(self) -> Standing | None:
        """Returns how dispensable it is; None if it is at work."""
        ...


O = TypeVar("O", bound=Occupant)  # noqa: E741


def to_close(occupants: Sequence[O], most: int) -> list[O]:
    """Returns the connections to close to make room for one more; none if all are at work."""
    ranked = [
        (occupant, standing)
        for occupant in occupants
        if (standing := occupant.standing()) is not None
    ]
    if not ranked:
        return []
    held = Counter(occupant.group for occupant in occupants)
    largest = max({occupant.group for occupant, _ in ranked}, key=lambda group: held[group])
    own = sorted(
        ((standing, occupant) for occupant, standing in ranked if occupant.group == largest),
        key=lambda pair: pair[0],
    )
    least = own[0][0].rank
    leaving = [occupant for standing, occupant in own if standing.rank == least]
    return leaving[: 1 + most // AT_ONCE]


def address_group(address: str) -> str:
    """Returns what counts as one client: an IPv4 address, or the /64 network of an IPv6 address.

    >>> address_group("192.0.2.7"), address_group("2001:db8:1:2:3::4"), address_group("")
    ('192.0.2.7', '2001:db8:1:2::/64', '')
    """
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
