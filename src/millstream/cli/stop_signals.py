"""Handles Ctrl-C and SIGTERM as a request to stop, not as an exception.

An exception in the middle of a call to the JVM breaks the connection, and pyspark handles SIGINT
itself when it is started in the main thread. So the work runs in a thread of its own, and the main
thread waits for signals: the first sets an event that the work checks, the second ends the process
at once (which a store survives).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from millstream.notices import say

Result = TypeVar("Result")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOOK_SECONDS = 0.25
"""The longest time until a signal is handled that the system delivered to another thread."""


def stoppable(work: Callable[[threading.Event], Result]) -> Result:
    """Calls `work` with an event that tells it to stop, and returns its result."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        return work(stop)  # only the main thread may handle signals
    results: list[Result] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:
            errors.append(error)

    requests: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        # A second signal may come while this handles the first one and holds the event's lock: so
        # `requests` is checked, not the event.
        requests.append(number)
        if len(requests) > 1:
            os.write(2, b"millstream: stopped at once\n")
            os._exit(128 + number)
        stop.set()
        say("stopping; interrupt again to stop at once")

    thread = threading.Thread(target=call, name="millstream-run", daemon=True)
    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        thread.start()
        # The system may deliver a signal to any thread, but Python handles it in this one. A signal
        # to another thread does not wake this one, so it wakes up regularly.
        while thread.is_alive():
            thread.join(LOOK_SECONDS)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if errors:
        raise errors[0]
    return results[0]
