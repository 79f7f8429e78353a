"""A task that checks the progress record ten times a second and keeps samples of it.

A check costs one stat of a file; the record is read only if it has changed. If the store cannot be
read (it is being created again, for example), the next check tries again.

The last hour is kept in the store, so that a restarted server can show it: in the file `history`,
written once a minute and when the server stops. Nothing depends on it: a store that cannot be
written is served without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from millstream.durable import write_whole
from millstream.errors import MillstreamError, StoreError
from millstream.server.status.samples import OLDEST, SECOND, Samples, Second
from millstream.stores.progress import Progress

EVERY = 0.1
"""Seconds between two checks."""
KEEP_EVERY = 60 * SECOND
HISTORY = "history"
"""The file in the store."""


class Sampler:
    """Samples of an application's progress, kept up to date from `start` to `stop`."""

    def __init__(
        self, read: Callable[[], Progress], clock: Callable[[], int], file: Path | None = None
    ) -> None:
        self._file = file
        self._kept = clock()
        self.samples = Samples({} if file is None else read_history(file, self._kept))
        self._read = read
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def take(self) -> None:
        """Checks the progress now, and adds a sample."""
        try:
            progress = self._read()
        except (MillstreamError, OSError, msgspec.MsgspecError):
            return
        self.samples.add(progress, self._clock())

    async def start(self) -> None:
        """Starts the task, which runs until `stop`."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
            self._write(self._to_keep(self._clock()))

    async def _run(self) -> None:
        while True:
            self.take()
            now = self._clock()
            if now - self._kept >= KEEP_EVERY:
                await asyncio.to_thread(self._write, self._to_keep(now))
            await asyncio.sleep(EVERY)

    def _to_keep(self, now: int) -> bytes:
        self._kept = now
        return msgspec.json.encode(self.samples.seconds(now))

    def _write(self, history: bytes) -> None:
        if self._file is not None:
            with suppress(StoreError, OSError):
                write_whole(self._file, history)


def read_history(file: Path, now: int) -> dict[int, Second]:
    """Reads the seconds of the last hour from a file; none if there is no such file."""
    try:
        seconds = msgspec.json.decode(file.read_bytes(), type=dict[int, Second])
    except (OSError, msgspec.MsgspecError):
        return {}
    last = now // SECOND
    return {number: second for number, second in seconds.items() if last - OLDEST <= number <= last}
