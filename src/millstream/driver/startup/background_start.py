"""Starts something slow in a background thread, while the caller does what does not need it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Started = TypeVar("Started")


class BackgroundStart(Generic[Started]):
    """A context manager: its block runs beside the start, and its end closes what was started."""

    def __init__(self, start: Callable[[], Started], close: Callable[[Started], None]) -> None:
        self._start = start
        self._close = close
        self._started: list[Started] = []
        self._error: BaseException | None = None
        self._abandoned = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="millstream-start", daemon=True)

    def __enter__(self) -> BackgroundStart[Started]:
        self._thread.start()
        return self

    def _work(self) -> None:
        try:
            started = self._start()
        except BaseException as error:
            self._error = error
            return
        with self._lock:
            abandoned = self._abandoned
            if not abandoned:
                self._started.append(started)
        if abandoned:
            self._close(started)

    def is_done(self) -> bool:
        """True if the start is over; raises its error, if any."""
        if self._error is not None:
            raise self._error
        return bool(self._started)

    def result(self) -> Started:
        """Waits for what is started and returns it; raises the error of the start, if any."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._started[0]

    def take(self) -> Started:
        """Does the same, and leaves it to the caller to close it."""
        started = self.result()
        self._started.clear()
        return started

    def close(self) -> None:
        """Closes what was started; what is still starting is closed as soon as it has started."""
        with self._lock:
            self._abandoned = True
            started, self._started = self._started, []
        for each in started:
            self._close(each)

    def __exit__(self, *exc: object) -> None:
        self.close()
