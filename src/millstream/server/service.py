"""State that the routes share: the options, the store, counters, threads, start and stop hooks.

A routes module has one function, `routes`, which returns its routes. It keeps its state in its own
objects, and registers them to be started and stopped with the server:

    service.on_start(sampler.start)     async, on the event loop, before the first request
    service.on_stop(appenders.close)    async, after the last request; in reverse order

Every long-running answer ends when `service.stopping` is set.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from millstream.messages.status import MirrorFreshness
from millstream.server.access.access_log import AccessLog
from millstream.server.access.limits import Slots
from millstream.server.open_store import OpenStore
from millstream.server.options import ServerOptions
from millstream.stores.progress import Progress
from millstream.wall_clock import wall_clock

T = TypeVar("T")
Hook = Callable[[], Awaitable[None]]

EVENT_STREAMS = 256
DUMPS = 2
READING_THREADS = 4
ASKED = "Millstream-Asked-Age"
"""A header of a mirror's answers: the seconds since the mirrored place last answered."""


@dataclass(slots=True)
class Counters:
    """Counts since the server started."""

    requests: int = 0
    accepted: int = 0
    """Events accepted."""
    refused: int = 0
    """Lines that did not become events."""
    answers: dict[int, int] = field(default_factory=dict)
    """Number of answers by status code."""

    def answered(self, status: int) -> None:
        """Counts one answer with this status code."""
        self.answers[status] = self.answers.get(status, 0) + 1

    def by_class(self) -> dict[str, int]:
        """Returns the answers by the class of their status code.

        >>> Counters(answers={404: 1, 200: 5, 400: 2}).by_class()
        {'2xx': 5, '4xx': 3}
        """
        classes: dict[str, int] = {}
        for status in sorted(self.answers):
            name = f"{status // 100}xx"
            classes[name] = classes.get(name, 0) + self.answers[status]
        return classes


class Service:
    """One per server. Everything here belongs to the event loop's thread."""

    def __init__(
        self,
        options: ServerOptions,
        store: OpenStore,
        url: str,
        clock: Callable[[], int] = wall_clock,
        access_log: AccessLog | None = None,
    ) -> None:
        self.options = options
        self.access_log = access_log
        self.store = store
        self.clock = clock
        self.since = clock()
        self.url = url
        self.counters = Counters()
        self.event_streams = Slots(EVENT_STREAMS)
        self.dumps = Slots(DUMPS)
        self.heavy = asyncio.Semaphore(READING_THREADS)
        """Limits concurrent answers of heavy routes, which are often large."""
        self.large_reads = asyncio.Lock()
        """Held by reads of slates until `large_until`, while there are large slates among them."""
        self.large_until = 0.0
        self.stopping = asyncio.Event()
        self._threads = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="reading")
        self._starts: list[Hook] = []
        self._stops: list[Hook] = []

    def say(self, sentence: str) -> None:
        """Prints a message to the operator of the server, on stderr."""
        print(f"millstream: {sentence}", file=sys.stderr, flush=True)

    def on_start(self, hook: Hook) -> None:
        self._starts.append(hook)

    def on_stop(self, hook: Hook) -> None:
        self._stops.append(hook)

    def age(self, progress: Progress) -> float:
        """Returns the seconds since the batch was committed; 0 before the first batch."""
        return max(0.0, (self.clock() - progress.written) / 1e6) if progress.written else 0.0

    def freshness(self) -> MirrorFreshness | None:
        """Returns the freshness of the mirror; None if the store itself is served."""
        mirror = self.store.mirror()
        if mirror is None:
            return None
        here, age = self.store.home.facts.here, self._since(mirror.asked)
        return MirrorFreshness(mirror.place, here, mirror.asked, age, mirror.error or None)

    def fresh_headers(self) -> dict[str, str]:
        """Returns the headers that say how long ago the mirrored place last answered."""
        mirror = self.store.mirror()
        return {} if mirror is None else {ASKED: f"{self._since(mirror.asked):.3f}"}

    def _since(self, asked: int) -> float:
        return max(0.0, (self.clock() - asked) / 1e6)

    async def in_thread(self, read: Callable[..., T], *arguments: Any) -> T:
        """Runs a longer read in a thread beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, read, *arguments)

    async def start(self) -> None:
        for hook in self._starts:
            await hook()

    async def stop(self) -> None:
        """Runs the stop hooks, the last first, and closes the store."""
        self.stopping.set()
        for hook in reversed(self._stops):
            await hook()
        self._threads.shutdown(wait=True)
        self.store.close()
