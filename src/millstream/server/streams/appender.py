"""Appends to the source logs: many requests share one write and one flush to disk.

A log is written by one thread. While it flushes, new requests gather; then they are appended
together (group commit). So are those that the event loop has at hand: the thread is told after two
more rounds of the loop. So the more requests come at once, the less each of them costs, and a lone
request waits some ten microseconds. Requests are answered on the event loop, after the flush.

On a shared store the flush is the creation of an object in the place, and several servers may
append to one log (`log.place_writer`).

Guarantees: acknowledged records are on disk, or in the place. A request that is cancelled, or whose
client has disconnected, is appended all the same. An append that the disk refuses leaves nothing
behind, and the next append is tried. If a place did not answer, the records may be in the log; an
idempotency key makes a retry safe.
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
from millstream.log.place_writer import EventLogWriter, PlaceLogWriter
from millstream.log.retention import Retention
from millstream.log.writer import Appended, Entry, LogWriter, TagMismatch
from millstream.places.place import Place

GROUP_BYTES = 4 << 20
"""About the most bytes of one append; readers must be able to hold such a block in memory."""
WAITING_BYTES = 64 << 20
"""The most bytes that may wait for a slow disk before further requests are refused."""
RETAIN_SECONDS = 60.0
PLACE_PATIENCE = 10.0
"""Seconds that a request waits for a place that does not answer."""


class Overloaded(LogError):
    """Too many bytes wait to be written, or the server is stopping; the client should retry."""


@dataclass(frozen=True, slots=True)
class _PendingAppend:
    """A requested append."""

    entry: Entry
    size: int
    answer: asyncio.Future[Appended]


class Appender:
    """Appends to one log. Its methods are called on the event loop."""

    def __init__(
        self,
        path: Path,
        say: Callable[[str], None],
        retention: Retention,
        place: Place | None = None,
    ) -> None:
        """`place`: the place of the log, if the path is only its mirror."""
        self.path = path
        self._place = place
        self._say = say
        self._retention = retention
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_PendingAppend | None] = SimpleQueue()
        self._waiting = 0
        self._gathered: list[_PendingAppend] = []
        """Appends that the thread does not know yet."""
        self._closed = False
        self._writer: EventLogWriter | None = None
        self._thread = Thread(target=self._run, name=f"append to {path.name}", daemon=True)
        self._thread.start()

    async def append(self, entry: Entry, size: int) -> Appended:
        """Appends the lines of the entry, about `size` bytes; they are on disk when this returns.

        The first append opens the log. Raises LogLocked if another process writes the log,
        TagMismatch if the tag was used for other lines, LogError if the disk is full; then nothing
        was appended.
        """
        if self._closed:
            raise Overloaded(f"log {self.path}: the server stops; send it again when it is back")
        if self._waiting and self._waiting + size > WAITING_BYTES:
            raise Overloaded(
                f"log {self.path}: {self._waiting} bytes wait to be written, and at most "
                f"{WAITING_BYTES} may wait; try again in a moment"
            )
        pending = _PendingAppend(entry, size, self._loop.create_future())
        self._waiting += size
        self._gathered.append(pending)
        if len(self._gathered) == 1:
            self._loop.call_soon(self._gather_more)
        return await pending.answer

    def _gather_more(self) -> None:
        """Leaves the event loop one more round, in which it may read further requests."""
        self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Hands the gathered appends to the thread."""
        for pending in self._gathered:
            self._queue.put(pending)
        self._gathered.clear()

    async def close(self) -> None:
        """Appends what waits, and closes the log."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        """Runs the thread: gathers, appends, answers; applies retention every RETAIN_SECONDS."""
        due = time.monotonic() + RETAIN_SECONDS
        is_open = True
        while is_open:
            group, is_open = self._gather(max(0.0, due - time.monotonic()))
            if group:
                self._append(group)
            if time.monotonic() >= due:
                self._retain()
                due = time.monotonic() + RETAIN_SECONDS
        self._let_go()

    def _gather(self, patience: float) -> tuple[list[_PendingAppend], bool]:
        """Returns the waiting appends, up to a group's size, and False if no more will come."""
        group: list[_PendingAppend] = []
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

    def _append(self, group: list[_PendingAppend]) -> None:
        answers: list[Appended | TagMismatch] | Exception
        try:
            answers = self._opened().append([pending.entry for pending in group])
        except Exception as error:
            answers = error
            self._let_go()  # the next append opens the log again, whatever happened to its files
        try:
            self._loop.call_soon_threadsafe(self._answer, group, answers)
        except RuntimeError:
            pass  # the loop is closed, so no request waits any more

    def _answer(
        self, group: list[_PendingAppend], answers: list[Appended | TagMismatch] | Exception
    ) -> None:
        """Passes the results to the requests that still wait. Runs on the event loop."""
        each = [answers] * len(group) if isinstance(answers, Exception) else answers
        for pending, answer in zip(group, each, strict=True):
            self._waiting -= pending.size
            if pending.answer.done():
                continue
            if isinstance(answer, Exception):
                pending.answer.set_exception(answer)
            else:
                pending.answer.set_result(answer)

    def _opened(self) -> EventLogWriter:
        if self._writer is None:
            self._writer = self._open()
            if self._writer.torn:
                self._say(self._writer.torn_said)
        return self._writer

    def _open(self) -> EventLogWriter:
        if self._place is None:
            return LogWriter(self.path, retention=self._retention)
        return PlaceLogWriter(
            self._place,
            self.path.name,
            mirror=self.path,
            retention=self._retention,
            patience=PLACE_PATIENCE,
            beside=True,
        )

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
    """The appenders of all source logs, each created when it is first needed."""

    def __init__(
        self,
        say: Callable[[str], None],
        retention: Retention = Retention(),  # noqa: B008  # frozen
        place: Place | None = None,
    ) -> None:
        """`place`: the place of the logs, if the server has only mirrors of them."""
        self._say = say
        self._retention = retention
        self._place = place
        self._appenders: dict[Path, Appender] = {}

    def of(self, path: Path) -> Appender:
        appender = self._appenders.get(path)
        if appender is None:
            appender = self._appenders[path] = Appender(
                path, self._say, self._retention, self._place
            )
        return appender

    async def close(self) -> None:
        """Appends what waits for any log, and closes all logs."""
        await asyncio.gather(*(appender.close() for appender in self._appenders.values()))
