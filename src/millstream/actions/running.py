"""The actions of a run, each in a thread of its own: none waits for another, and no batch for them.

They begin before the first batch and hold their place in the logs, so that retention waits. A run
that ends by itself carries out all that there is first; one that is stopped leaves the rest to the
next start. A try that is under way is then given a moment, and not waited for: if its answer does
not come in time, it is tried again at the next start, under the same id.

What goes wrong with the store itself (a full disk) is told once and tried again.
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
from millstream.actions.record import known
from millstream.actions.worker import READER, Carrier, Clocks, Worker
from millstream.errors import MillstreamError, RunError
from millstream.stores.home import Home, log_of

POLL, TROUBLE, GRACE, TOLD_EVERY = 0.1, 2.0, 0.5, 10.0
"""Seconds: between two looks for more, after trouble with the store, for a try that is under way
when the run is stopped, between two lines while a run waits for its actions."""
CLOCKS = Clocks(lambda: time.time_ns() // 1000, time.monotonic, random.random)


def say(line: str) -> None:
    print(f"millstream: {line}", file=sys.stderr, flush=True)


def carrier_of(address: ActionAddress, timeout: float) -> Carrier:
    """Who carries out for an address."""
    if address.kind == "webhook":
        from millstream.actions.webhook import Webhook  # loads httpx: only for who needs it

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
        """Set once nothing more will be asked for."""
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._run, args=(worker,), name=worker.action, daemon=True)
            for worker in workers
        ]

    def start(self) -> None:
        """Begin to carry out."""
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Wait until all is carried out or given up, or until the run is told to stop.

        RunError if the store did not let it.
        """
        self._last.set()
        told = time.monotonic()
        while any(thread.is_alive() for thread in self._threads) and not self._halted():
            for thread in self._threads:
                thread.join(POLL / max(1, len(self._threads)))
            if time.monotonic() - told > TOLD_EVERY:
                told = time.monotonic()
                self._tell(f"waiting for actions: {self._waiting()}")
        if self._errors:
            raise RunError(f"{self._errors[0]}; the rest is carried out at the next start")

    def close(self) -> None:
        """Stop: what is left is done at the next start."""
        self._over.set()
        deadline = time.monotonic() + GRACE
        for worker, thread in zip(self._workers, self._threads, strict=True):
            if thread.ident is None:  # the run failed before they were to begin
                worker.close()
                continue
            thread.join(max(0.0, deadline - time.monotonic()))
            worker.abandon()  # from here on it records nothing: the store may be another's

    def _run(self, worker: Worker) -> None:
        trouble = ""
        try:
            while not self._halted():
                last = self._last.is_set()  # before the step: what comes after it is not missed
                try:
                    pause, said = worker.step(), ""
                except Exception as error:  # whatever it is, the application goes on
                    pause, said = TROUBLE, f"action {worker.action!r}: {_words(error)}"
                if said and last:
                    self._errors.append(said)
                    return
                if said and said != trouble:
                    self._tell(f"{said}; it is tried again")
                trouble = said
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
) -> Iterator[Actions]:
    """Hold the places of these actions; `start` begins to carry out. The caller holds the store."""
    release(home.path, keep=addresses)
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


def release(store: Path, keep: Mapping[str, ActionAddress]) -> None:
    """Retention need not wait for what is no action any more."""
    for name in known(store):
        if name not in keep:
            (log_of(store, name) / "readers" / f"{READER}.json").unlink(missing_ok=True)
