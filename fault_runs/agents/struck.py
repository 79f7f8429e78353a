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
from importlib import import_module
from typing import Any

POINTS: dict[str, tuple[str, str, bool]] = {
    "file-found": ("millstream.agent.log.log_follower", "Follower._meet", True),
    "files-looked-at": ("millstream.agent.log.log_follower", "Follower.look", True),
    "before-outbox": ("millstream.agent.delivery.outbox", "Outbox.put", False),
    "after-outbox": ("millstream.agent.delivery.outbox", "Outbox.put", True),
    "before-file-is-whole": ("os", "replace", False),
    "after-file-is-whole": ("os", "replace", True),
    "before-post": ("millstream.agent.delivery.wire", "Wire.post", False),
    "after-post": ("millstream.agent.delivery.wire", "Wire.post", True),
    "before-removal": ("millstream.agent.delivery.outbox", "Outbox.remove", False),
    "after-removal": ("millstream.agent.delivery.outbox", "Outbox.remove", True),
}
"""By name: the module, the function that is called there, and True if the point is after the call.
"""


def strike_at(point: str, time: int) -> None:
    """Send SIGKILL when the point is passed for the `time`-th time, counted from 1."""
    module, path, after = POINTS[point]
    owner: Any = import_module(module)
    *names, last = path.split(".")
    for name in names:
        owner = getattr(owner, name)
    setattr(owner, last, _struck(getattr(owner, last), after, time))


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
