"""`python -m fault_runs.agents.struck POINT:N WORDS ...`: `millstream WORDS`, which kills itself.

When it passes the named point for the Nth time it gets SIGKILL: no `finally` runs, nothing is
flushed. A point is before or after a call inside the agent. It is patched in from outside, so that
the agent has no code for it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from millstream.agent.delivery.outbox import Outbox
from millstream.agent.delivery.wire import ServerWire
from millstream.agent.log.log_follower import LogFollower

POINTS: dict[str, tuple[Any, str, bool]] = {
    "file-found": (LogFollower, "_meet", True),
    "files-looked-at": (LogFollower, "look", True),
    "before-outbox": (Outbox, "put", False),
    "after-outbox": (Outbox, "put", True),
    "before-file-is-whole": (os, "replace", False),
    "after-file-is-whole": (os, "replace", True),
    "before-post": (ServerWire, "post", False),
    "after-post": (ServerWire, "post", True),
    "before-removal": (Outbox, "remove", False),
    "after-removal": (Outbox, "remove", True),
}
"""By name: the class or module, its function, and True if the point is after the call."""


def strike_at(point: str, time: int) -> None:
    """Send SIGKILL when the point is passed for the `time`-th time, counted from 1."""
    owner, name, after = POINTS[point]
    setattr(owner, name, _struck(getattr(owner, name), after, time))


def _struck(function: Callable[..., Any], after: bool, time: int) -> Callable[..., Any]:
    passed = 0

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        nonlocal passed
        passed += 1
        if passed == time and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        found = function(*given, **named)
        if passed == time and after:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    return call


if __name__ == "__main__":
    name, _, number = sys.argv.pop(1).partition(":")
    strike_at(name, int(number))
    from millstream.cli.main import main

    main()
