"""The nodes of a job, and values derived from them once, since there may be thousands of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2s

MOST_NAMED = 10


@dataclass(frozen=True)
class Members:
    """The nodes of a job."""

    nodes: tuple[str, ...]

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.nodes)

    @cached_property
    def digest(self) -> str:
        """A short hash: equal for equal nodes."""
        return blake2s("\0".join(self.nodes).encode(), digest_size=8).hexdigest()


def in_short(names: Sequence[str]) -> str:
    """Lists the first names, and how many more there are.

    >>> in_short([f"web{number}" for number in range(12)])
    'web0, web1, web2, web3, web4, web5, web6, web7, web8, web9 and 2 more'
    """
    more = len(names) - MOST_NAMED
    named = ", ".join(names[:MOST_NAMED])
    return f"{named} and {more:,} more" if more > 0 else named
