"""How many connections a server may have, and whether the system lets it.

A connection is a file descriptor. Systems allow a process few of them at first (1,024 is common)
and more when it asks: so it asks, up to what it may. The default is enough for a thousand agents
that all talk to the root itself, with their three connections each, and some to spare; an idle
connection takes about 10 KB of memory here.
"""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass

from millstream.errors import DefinitionError

CONNECTIONS = 4_096
RESERVED = 256
"""Descriptors for the store, the logs and connections that are only refused."""
LEAST = 16


@dataclass(frozen=True, slots=True)
class Fit:
    """How many connections there can be, and what to do for it."""

    connections: int
    descriptors: int
    """The soft limit that is needed."""
    warning: str = ""


def fit(asked: int | None, soft: int, hard: int) -> Fit:
    """Fit connections into the limits of descriptors; without a number, the default or fewer.

    >>> fit(None, soft=1024, hard=524288)
    Fit(connections=4096, descriptors=4352, warning='')
    >>> fit(None, soft=1024, hard=1024).connections
    768
    """
    wanted = CONNECTIONS if asked is None else asked
    needed = max(soft, wanted + RESERVED)
    if needed <= hard or hard == resource.RLIM_INFINITY or soft == resource.RLIM_INFINITY:
        return Fit(wanted, needed)
    room = hard - RESERVED
    hint = "raise the limit (ulimit -n, or LimitNOFILE= of a systemd unit)"
    if asked is not None or room < LEAST:
        raise DefinitionError(
            f"server: {wanted} connections need {wanted + RESERVED} file descriptors, and this "
            f"process may have {hard}; {hint}, or set connections to at most {max(room, 0)}"
        )
    return Fit(
        room,
        hard,
        f"the server takes at most {room} connections, not {wanted}, since this process may have "
        f"{hard} file descriptors; {hint} for more",
    )


def fitted(asked: int | None) -> int:
    """How many connections there can be; the process is allowed the descriptors for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = fit(asked, soft, hard)
    if found.warning:
        print(f"millstream: {found.warning}", file=sys.stderr, flush=True)
    if soft != resource.RLIM_INFINITY and found.descriptors > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (found.descriptors, hard))
    return found.connections
