"""Ctrl-C and SIGTERM as a request to stop, not as an exception.

An exception in the middle of a call to the JVM breaks the connection, and pyspark takes SIGINT for
itself when it is started in the main thread. So the work runs in a thread of its own, and the main
thread waits for signals: the first sets an event that the work looks at, the second
ends the process at once (which a store survives).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from millstream.cli.progress import say

Result = TypeVar("Result")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def stoppable(work: Callable[[threading.Event], Result]) -> Result:
    """The result of `work`, called with the event that tells it to stop."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        return work(stop)  # signals are the main thread's
    results: list[Result] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:
            errors.append(error)

    def asked(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            say("stopped at once")
            os._exit(128 + number)
        stop.set()
        say("stopping; once more to stop at once")

    thread = threading.Thread(target=call, name="millstream-run", daemon=True)
    before = {number: signal.signal(number, asked) for number in SIGNALS}
    try:
        thread.start()
        thread.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if errors:
        raise errors[0]
    return results[0]
