"""Appending to the source logs: many requests, one write and one flush to disk for all of them.

A log is written by one thread. While it flushes, the requests that come gather; then they are
appended together (group commit). So the more there are at once, the less each of them costs, and
a lone one never waits for others. Requests are answered on the event loop, after the flush.

Guarantees: what was acknowledged is on disk. A request that is given up, or whose client is gone,
is appended all the same. An append that fails leaves nothing behind, and the next one is tried.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from millstream.errors import LogError
from millstream.log.retention import Retention
from millstream.log.writer import Appended, Entry, LogWriter, TagMismatch

GROUP_BYTES = 4 << 20
"""How much is appended together, about: who reads a log must be able to hold such a block."""
WAITING_BYTES = 64 << 20
"""How much may wait for a slow disk before more is turned away."""
RETAIN_SECONDS = 60.0


class Overloaded(LogError):
    """More waits to be written than is good; the client should try again."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """An append that was asked for."""

    entry: Entry
    size: int
    answer: asyncio.Future[Appended]


class Appender:
    """Appends to one log. Its methods are called on the event loop."""

    def __init__(self, path: Path, say: Callable[[str], None], retention: Retention) -> None:
        self.path = path
        self._say = say
        self._retention = retention
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Pending | None] = SimpleQueue()
        self._waiting = 0
        self._closed = False
        self._writer: LogWriter | None = None
        self._thread = Thread(target=self._run, name=f"append to {path.name}", daemon=True)
        self._thread.start()

    async def append(self, entry: Entry, size: int) -> Appended:
        """Append the lines of the entry, about `size` bytes; on disk when this returns.

        The log is opened by the first append. LogLocked if another process writes it, TagMismatch
        if the tag was used for other lines, LogError if the disk is full: nothing was appended.
        """
        if self._closed:
            raise Overloaded(f"log {self.path}: the server stops; send it again when it is back")
        if self._waiting and self._waiting + size > WAITING_BYTES:
            raise Overloaded(
                f"log {self.path}: {self._waiting} bytes wait to be written, and no more than "
                f"{WAITING_BYTES} may; try again in a moment"
            )
        pending = _Pending(entry, size, self._loop.create_future())
        self._waiting += size
        self._queue.put(pending)
        return await pending.answer

    async def close(self) -> None:
        """Append what waits, and let the log go."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        """The thread: gather, append, answer; now and then remove what need not be retained."""
        due = time.monotonic() + RETAIN_SECONDS
        going = True
        while going:
            group, going = self._gather(max(0.0, due - time.monotonic()))
            if group:
                self._append(group)
            if time.monotonic() >= due:
                self._retain()
                due = time.monotonic() + RETAIN_SECONDS
        self._let_go()

    def _gather(self, patience: float) -> tuple[list[_Pending], bool]:
        """All that wait, up to a group's size; False when there will be no more."""
        group: list[_Pending] = []
        size = 0
        try:
            while size < GROUP_BYTES:
                pending = self._queue.get(not group, patience)
                if pending is None:
                    return group, False
                group.append(pending)
                size += pending.size
        except Empty:
            pass
        return group, True

    def _append(self, group: list[_Pending]) -> None:
        answers: list[Appended | TagMismatch] | Exception
        try:
            answers = self._opened().append([pending.entry for pending in group])
        except Exception as error:
            answers = error
            self._let_go()  # the next append opens it anew, whatever has become of its files
        try:
            self._loop.call_soon_threadsafe(self._answer, group, answers)
        except RuntimeError:
            pass  # the loop was closed; nobody waits any more

    def _answer(
        self, group: list[_Pending], answers: list[Appended | TagMismatch] | Exception
    ) -> None:
        """On the event loop: tell the requests how it went, those that still wait."""
        each = [answers] * len(group) if isinstance(answers, Exception) else answers
        for pending, answer in zip(group, each, strict=True):
            self._waiting -= pending.size
            if pending.answer.done():
                continue
            if isinstance(answer, Exception):
                pending.answer.set_exception(answer)
            else:
                pending.answer.set_result(answer)

    def _opened(self) -> LogWriter:
        if self._writer is None:
            self._writer = LogWriter(self.path, retention=self._retention)
            if self._writer.torn:
                self._say(self._writer.torn_said)
        return self._writer

    def _let_go(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _retain(self) -> None:
        if self._writer is not None:
            try:
                self._writer.retain()
            except LogError as error:
                self._say(str(error))


class Appenders:
    """The appenders of all source logs, each made when it is first needed."""

    def __init__(
        self,
        say: Callable[[str], None],
        retention: Retention = Retention(),  # noqa: B008  # frozen
    ) -> None:
        self._say = say
        self._retention = retention
        self._appenders: dict[Path, Appender] = {}

    def of(self, path: Path) -> Appender:
        appender = self._appenders.get(path)
        if appender is None:
            appender = self._appenders[path] = Appender(path, self._say, self._retention)
        return appender

    async def close(self) -> None:
        """Append what waits everywhere, and let all logs go."""
        await asyncio.gather(*(appender.close() for appender in self._appenders.values()))
