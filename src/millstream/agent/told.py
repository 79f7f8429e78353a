"""What the root tells its agents: panes that it took, windows that it opened and closed (iMR, 3.3).

DESIGN
------
A thread asks the root for the records of `NAME.told` after the last one it saw, twice a second.
Where it was is not kept on disk: an agent that starts asks for the last thousand. If it then does
not learn that a pane of its outbox was taken, or that a window was closed, it sends the pane once
more, to the root itself, or makes one that nobody needs: the root ignores both. Nothing is wrong
then, only done for nothing.

A window is closed when every reducer of its scheme has closed it; when it was opened is said by
the clock of this process, which only goes forward.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import uniform
from threading import Event, Lock, Thread
from typing import Any

import msgspec

from millstream.agent.outbox import Say
from millstream.agent.ranges import Ranges
from millstream.agent.wire import SILENT, Answer, Wire, stream_path
from millstream.windows.placed import PlacedJob

LOOK_BACK = 1000
PAGE = 1000
EVERY = 0.5
"""Seconds between two questions, when all was answered."""
AFTER_SILENCE = 2.0
MOST_OPEN = 10_000
"""Windows whose opening is remembered; the earliest are forgotten first."""


class _Record(msgspec.Struct):
    value: Any = None
    """An event: its own `value` is what is told."""


class _Page(msgspec.Struct):
    records: list[_Record]
    next: int
    end: int


class Told:
    """What is known of the root's decisions. Threads may share it."""

    def __init__(
        self,
        root: Wire,
        placed: PlacedJob,
        node: str,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root, self._node, self._say, self._clock = root, node, say, clock
        self._path = stream_path(placed.told, "records")
        self._from = f"-{LOOK_BACK}"
        self._lock = Lock()
        self._accepted = Ranges()
        self._closed = Ranges()
        self._closing: dict[int, set[str]] = {}
        """Windows that some reducers have closed, and which."""
        self._opened: dict[int, float] = {}
        self._quiet = ""
        """What was last said of why nothing is heard."""
        self._stopped = Event()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="told", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """End the thread; one that waits for an answer is not waited for any longer."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def check(self) -> None:
        """Raise what has ended the thread, if it was not `stop`."""
        if self._failure is not None:
            raise self._failure

    def closed(self, window: int) -> bool:
        """Whether nothing more of the window is wanted."""
        with self._lock:
            return window in self._closed

    def opened(self, window: int) -> float | None:
        """When we learnt that the window was opened, by `clock`; None if not, or long ago."""
        with self._lock:
            return self._opened.get(window)

    def accepted(self, pane: int, until: int) -> bool:
        """Whether the root has taken all of these panes of this node."""
        with self._lock:
            return self._accepted.covers(pane, until)

    def take(self, value: Any) -> None:
        """Learn one thing; what is not understood is for newer agents."""
        if not isinstance(value, dict):
            return
        with self._lock:
            match value:
                case {"accepted": {"pane": int(pane), "until": int(until), "nodes": list(nodes)}}:
                    if self._node in nodes:
                        self._accepted.add(pane, until)
                case {"closed": int(window), "reducer": str(reducer), "of": int(reducers)}:
                    closing = self._closing.setdefault(window, set())
                    closing.add(reducer)
                    if len(closing) >= reducers:
                        del self._closing[window]
                        self._opened.pop(window, None)
                        self._closed.add(window, window + 1)
                case {"opened": int(window)}:
                    if window not in self._closed:
                        self._opened.setdefault(window, self._clock())
            for known in (self._opened, self._closing):
                while len(known) > MOST_OPEN:
                    del known[next(iter(known))]

    def poll(self) -> bool:
        """Ask once; whether there is more to ask for at once."""
        answer = self._root.get(f"{self._path}?from={self._from}&limit={PAGE}")
        if answer.status != 200:
            self._say_once(_unheard(answer, self._root))
            return False
        page = msgspec.json.decode(answer.body, type=_Page)
        if self._from.isdigit() and page.end < int(self._from):
            self._from = "start"  # the root has begun a new log
            return True
        for record in page.records:
            if isinstance(record.value, dict):
                self.take(record.value.get("value"))
        self._from = str(page.next)
        self._quiet = ""
        return page.next < page.end

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                pause = EVERY * uniform(0.8, 1.2)
                try:
                    pause = 0 if self.poll() else pause
                except (*SILENT, msgspec.DecodeError) as error:
                    self._say_once(f"nothing is heard from {self._root.name}: {error}")
                    pause = AFTER_SILENCE * uniform(0.8, 1.2)
                self._stopped.wait(pause)
        except Exception as error:
            self._failure = error
        finally:
            self._root.close()

    def _say_once(self, sentence: str) -> None:
        if sentence != self._quiet:
            self._quiet = sentence
            self._say(sentence)


def _unheard(answer: Answer, root: Wire) -> str:
    return f"{root.name} does not tell of its windows: {answer.sentence()}"
