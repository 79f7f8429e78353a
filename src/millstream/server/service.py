"""What the routes share: the options, the store, what is counted, and what runs beside requests.

A routes module has one function, `routes`, which gives its routes. It keeps what it needs in its
own objects, and has them started and stopped with the server:

    service.on_start(sampler.start)     async, on the event loop, before the first request
    service.on_stop(appenders.close)    async, after the last; in the reverse order

Anything that answers for long ends when `service.stopping` is set.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from millstream.server.limits import Slots
from millstream.server.open_store import OpenStore
from millstream.server.options import Options
from millstream.stores.progress import Progress

T = TypeVar("T")
Hook = Callable[[], Awaitable[None]]

EVENT_STREAMS = 256
DUMPS = 2
READING_THREADS = 4


def wall_clock() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1_000


@dataclass(slots=True)
class Counters:
    """Since the server started."""

    requests: int = 0
    accepted: int = 0
    """Events taken in."""
    refused: int = 0
    """Lines that did not become events."""
    answers: dict[int, int] = field(default_factory=dict)
    """How many answers had each status."""

    def answered(self, status: int) -> None:
        """One more answer of this status."""
        self.answers[status] = self.answers.get(status, 0) + 1


class Service:
    """One a server. Everything here belongs to the event loop's thread."""

    def __init__(
        self,
        options: Options,
        store: OpenStore,
        url: str,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self.options = options
        self.store = store
        self.clock = clock
        self.since = clock()
        self.url = url
        self.counters = Counters()
        self.event_streams = Slots(EVENT_STREAMS)
        self.dumps = Slots(DUMPS)
        self.stopping = asyncio.Event()
        self._threads = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="reading")
        self._starts: list[Hook] = []
        self._stops: list[Hook] = []

    def on_start(self, hook: Hook) -> None:
        self._starts.append(hook)

    def on_stop(self, hook: Hook) -> None:
        self._stops.append(hook)

    def age(self, progress: Progress) -> float:
        """Seconds since a batch was committed; 0 before the first."""
        return max(0.0, (self.clock() - progress.written) / 1e6) if progress.written else 0.0

    async def in_thread(self, read: Callable[..., T], *arguments: Any) -> T:
        """Run a longer read beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, read, *arguments)

    async def start(self) -> None:
        for hook in self._starts:
            await hook()

    async def stop(self) -> None:
        """Stop what was started, the last first, and close the store."""
        self.stopping.set()
        for hook in reversed(self._stops):
            await hook()
        self._threads.shutdown(wait=True)
        self.store.close()
