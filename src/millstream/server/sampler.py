"""The task that looks at the progress record ten times a second and keeps samples of it.

Looking costs a stat of a file; only a record that has changed is read. A store that cannot be read
just now (it is being made again, say) is looked at again the next time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from millstream.errors import MillstreamError
from millstream.server.samples import Samples
from millstream.stores.progress import Progress

EVERY = 0.1
"""Seconds between two looks."""


class Sampler:
    """Samples of an application's progress, kept up to date from `start` to `stop`."""

    def __init__(self, read: Callable[[], Progress], clock: Callable[[], int]) -> None:
        self.samples = Samples()
        self._read = read
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def take(self) -> None:
        """Look at the progress now."""
        try:
            progress = self._read()
        except (MillstreamError, OSError, msgspec.MsgspecError):
            return
        self.samples.add(progress, self._clock())

    async def start(self) -> None:
        """Look again and again, until stopped."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        while True:
            self.take()
            await asyncio.sleep(EVERY)
