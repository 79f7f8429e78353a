"""The number of connections that a server may have, and the file descriptors for them.

A connection takes a file descriptor. Systems give a process few of them at first (1,024 is common)
and more on request, so the server raises its limit as far as it is allowed. The default is enough
for a thousand agents that all talk to the root itself, with three connections each, and some to
spare. An idle connection takes about 10 KB of memory here.
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
    """The possible number of connections, and the limit that it needs."""

    connections: int
    descriptors: int
    """The soft limit of file descriptors that is needed."""
    warning: str = ""


def fit(asked: int | None, soft: int, hard: int) -> Fit:
    """Fits connections into the limits of descriptors; `asked` None: the default, or fewer.

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
    """Returns the possible number of connections, and raises the process's limit for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    chosen = fit(asked, soft, hard)
    if chosen.warning:
        print(f"millstream: {chosen.warning}", file=sys.stderr, flush=True)
    if soft != resource.RLIM_INFINITY and chosen.descriptors > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (chosen.descriptors, hard))
    return chosen.connections
