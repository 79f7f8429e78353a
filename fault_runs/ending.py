"""Makes SIGTERM end this process like Ctrl-C: child processes are ended first.

Otherwise a Spark cluster, a server or a driver that a benchmark has started would go on by itself,
since SIGTERM ends Python at once without running any `finally`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Within this context, SIGTERM and SIGHUP raise SystemExit in the main thread.

    Only the first signal does: a second must not interrupt the ending of child processes.
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
