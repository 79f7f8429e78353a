"""SIGTERM ends this process as Ctrl-C does: what it has started is ended first.

Without it a Spark cluster, a server or a driver that a benchmark has started goes on by itself,
since SIGTERM ends Python at once, and no `finally` is run.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """While this lasts, SIGTERM and SIGHUP raise SystemExit where the main thread is.

    Only the first one: a second must not break off the ending of what was started.
    """

    def end(number: int, frame: FrameType | None) -> None:
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {one: signal.signal(one, end) for one in _SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
