"""The actions of a run, each in its own thread: no action waits for another, and no batch for them.

Their positions in the logs are recorded before the first batch, so that retention waits for them. A
run that ends by itself first carries out everything that is left. A run that is stopped leaves the
rest to the next start. A try that is under way then gets `GRACE` seconds to finish. If its answer
does not come in time, it is retried at the next start, under the same id.

An error of the store itself (a full disk) is reported once, and the step is retried.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from millstream.actions.address import ActionAddress
from millstream.actions.attempt import Policy
from millstream.actions.lines import LineFile, Stderr
from millstream.actions.place_records import PlaceActionRecords
from millstream.actions.record import ActionRecords, known
from millstream.actions.worker import READER, Carrier, Clocks, Worker
from millstream.errors import MillstreamError, RunError
from millstream.log.stream_logs import FolderLogs, StreamLogs
from millstream.stores.home import Home
from millstream.wall_clock import wall_clock

POLL, TROUBLE, GRACE, TOLD_EVERY = 0.1, 2.0, 0.5, 10.0
"""Seconds: between two polls for events, after an error of the store, for a try that is under way
when the run is stopped, and between two messages while a run waits for its actions."""
CLOCKS = Clocks(wall_clock, time.monotonic, random.random)


def say(line: str) -> None:
    print(f"millstream: {line}", file=sys.stderr, flush=True)


def carrier_of(address: ActionAddress, timeout: float) -> Carrier:
    if address.kind == "webhook":
        from millstream.actions.webhook import Webhook  # loads httpx, so only if needed

        return Webhook(address.target, timeout)
    return Stderr() if address.kind == "stderr" else LineFile(Path(address.target))


class Actions:
    """The actions of a run."""

    def __init__(self, workers: list[Worker], stop: threading.Event, tell: Callable[[str], None]):
        self._workers = workers
        self._asked = stop
        self._tell = tell
        self._over = threading.Event()
        self._last = threading.Event()
        """Set when no more events will come."""
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._run, args=(worker,), name=worker.action, daemon=True)
            for worker in workers
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Waits until everything is carried out or given up, or until the run is told to stop.

        Raises RunError if the store failed.
        """
        self._last.set()
        last_message = time.monotonic()
        while any(thread.is_alive() for thread in self._threads) and not self._halted():
            for thread in self._threads:
                thread.join(POLL / max(1, len(self._threads)))
            if time.monotonic() - last_message > TOLD_EVERY:
                last_message = time.monotonic()
                self._tell(f"waiting for actions: {self._waiting()}")
        if self._errors:
            raise RunError(f"{self._errors[0]}; the rest is carried out at the next start")

    def close(self) -> None:
        """Stops. The rest is carried out at the next start."""
        self._over.set()
        deadline = time.monotonic() + GRACE
        for worker, thread in zip(self._workers, self._threads, strict=True):
            if thread.ident is None:  # the run failed before `start`
                worker.close()
                continue
            thread.join(max(0.0, deadline - time.monotonic()))
            worker.abandon()  # it must record nothing from here on: another run may hold the store

    def _run(self, worker: Worker) -> None:
        trouble = ""
        try:
            while not self._halted():
                last = self._last.is_set()  # read before the step, so that no later event is missed
                try:
                    pause, message = worker.step(), ""
                except Exception as error:  # no error of an action may stop the application
                    pause, message = TROUBLE, f"action {worker.action!r}: {_words(error)}"
                if message and last:
                    self._errors.append(message)
                    return
                if message and message != trouble:
                    self._tell(f"{message}; it is retried")
                trouble = message
                if pause is None and last:
                    return
                self._wait(POLL if pause is None else pause)
        finally:
            worker.close()

    def _halted(self) -> bool:
        return self._over.is_set() or self._asked.is_set()

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._halted() and (left := deadline - time.monotonic()) > 0:
            self._over.wait(min(POLL, left))

    def _waiting(self) -> str:
        parts = []
        for worker in self._workers:
            at, trying = worker.position, worker.position.trying
            text = f"{worker.action} has done {at.done:,}"
            parts.append(text if trying is None else f"{text}, try {trying.tries}: {trying.error}")
        return "; ".join(parts)


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, MillstreamError) else f"{type(error).__name__}: {error}"


@contextmanager
def carried_out(
    home: Home,
    addresses: Mapping[str, ActionAddress],
    *,
    policy: Policy,
    timeout: float,
    stop: threading.Event | None = None,
    tell: Callable[[str], None] = say,
    clocks: Clocks = CLOCKS,
    logs: StreamLogs | None = None,
) -> Iterator[Actions]:
    """Records the positions of these actions in the logs; `start` begins to carry them out. The
    caller must hold the store.

    `logs` are the store's; None if they are in its folder.
    """
    logs = logs or FolderLogs(home.path / "logs")
    records = _records(home)
    release(home.path, logs, keep=addresses)
    workers: list[Worker] = []
    try:
        for name, address in addresses.items():
            workers.append(
                Worker(
                    home,
                    name,
                    carrier_of(address, timeout),
                    policy,
                    clocks,
                    address=address.shown,
                    tell=lambda line, name=name: tell(f"action {name!r}: {line}"),  # type: ignore[misc]
                    logs=logs,
                    records=records,
                )
            )
    except BaseException:
        for worker in workers:
            worker.close()
        raise
    actions = Actions(workers, stop or threading.Event(), tell)
    try:
        yield actions
    finally:
        actions.close()


def _records(home: Home) -> ActionRecords:
    if home.place is None:
        return ActionRecords(home.path)
    return PlaceActionRecords(home.place, home.path)


def release(store: Path, logs: StreamLogs, keep: Mapping[str, ActionAddress]) -> None:
    """Releases the logs of former actions, so that retention no longer waits for them."""
    for name in known(store):
        if name not in keep:
            logs.release(name, READER)
