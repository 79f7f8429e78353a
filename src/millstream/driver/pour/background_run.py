"""A run in a background thread, for a caller that sends it events and waits until they are in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from millstream.driver.driver import OnReport
from millstream.driver.inputs.source_inputs import position_of
from millstream.errors import MillstreamError, RunError
from millstream.log.reader import NOWHERE
from millstream.stores.soft import read_committed


class Work(Protocol):
    """Runs an application until `stop` is set, as `driver.run` does."""

    def __call__(
        self, *, report: OnReport, stop: threading.Event, ready: Callable[[], None]
    ) -> object: ...


class BackgroundRun:
    """Runs an application in a background thread. Its methods may be called from any thread."""

    def __init__(self, store: Path, work: Work) -> None:
        self._store = store
        self._work = work
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._ready = False
        self._batches = 0
        self._error: BaseException | None = None
        self.ended = False
        self._thread = threading.Thread(target=self._run, name="millstream-run", daemon=True)

    def start(self) -> None:
        """Starts the run and waits until it holds its store; raises the error if it cannot."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self.ended)
        if not self._ready:
            self.check()

    def wait_for(self, source: str, position: Sequence[int]) -> None:
        """Waits until the run has committed the source up to `position`.

        Raises RunError if the run ends first.
        """
        while True:
            with self._changed:
                batches, ended = self._batches, self.ended
            taken = position_of(read_committed(self._store), source) or NOWHERE
            if list(taken) >= list(position):
                return
            if ended:
                self.check()
                raise RunError("the run was stopped before it had taken the batch in")
            with self._changed:
                self._changed.wait_for(lambda: self.ended or self._batches != batches)  # noqa: B023  # called at once

    def check(self) -> None:
        """Raises the error that ended the run, if there was one."""
        if isinstance(self._error, MillstreamError):
            raise self._error
        if self._error is not None:
            kind = type(self._error).__name__
            raise RunError(f"the run failed with {kind}: {self._error}") from self._error

    def stop(self) -> None:
        """Asks the run to stop after the current batch."""
        self._stop.set()

    def close(self) -> None:
        """Stops the run and waits until it has released the store."""
        self.stop()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._work(report=self._committed, stop=self._stop, ready=self._begun)
        except BaseException as error:
            self._error = error
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def _begun(self) -> None:
        with self._changed:
            self._ready = True
            self._changed.notify_all()

    def _committed(self, _: object) -> None:
        with self._changed:
            self._batches += 1
            self._changed.notify_all()
