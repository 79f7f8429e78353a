"""The pending records of feeds: acknowledged, but not processed by the application yet.

They lie in the log of `NAME.events`, from the position of the last committed batch (its progress
has it) to the end of the log, which is written before anything is acknowledged. So a reader that
takes the tables as of that batch, overlaid with these records (`Pending`), sees everything that was
acknowledged before the read.

DESIGN
------
Each record is read and decoded once. While nothing changes, a call costs the system calls on two
small files. New records are added to the current `Pending`; after each batch it is rebuilt from the
remaining records. A large amount, as after a start, is read in a thread, and all callers wait for
it. A `Pending` that was handed to a thread is not changed any more (`shared`).

A mirror follows the log and the commits independently, so a commit may be ahead of the log here.
Then every record of the mirror is processed, and nothing is pending yet. Listeners get the missing
records when they come. If the log stays behind for `BEHIND_SECONDS`, the moment says so.

At most `MOST` records are held. If the application is further behind, or the log cannot be read,
the moment says so in its `trouble`, and a feed is then not complete.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from millstream.counted_nouns import counted, verb
from millstream.errors import InputError, LogError
from millstream.feeds.reads.pending_records import NOTHING, Pending
from millstream.feeds.records import Record, ViewRecord, read_record
from millstream.log.reader import LogReader
from millstream.server.feeds.feed_stamps import FeedStamps
from millstream.server.service import Service
from millstream.stores.progress import Progress, SourceProgress

MOST = 100_000
"""The most records that are held."""
SKIPPED_BYTES = 4 << 20
"""More bytes than this that the application has processed, but that were not read here, are
skipped."""
MUCH_BYTES, MUCH_RECORDS = 256 << 10, 4_000
"""More bytes to read, or more records to go through again, than this are handled in a thread."""

BEHIND_SECONDS = 10.0
"""Seconds that a mirror's log may be behind the last batch before a feed is not complete."""

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class FeedMoment:
    """The last committed batch, and the records that are pending after it."""

    progress: Progress
    pending: Pending
    trouble: str | None
    """Why `pending` lacks some acknowledged records; None if it has all."""


class FeedLog:
    """Follows the log of one source of feeds. Used on the event loop."""

    def __init__(self, service: Service, source: str, path: Path | None) -> None:
        self._service, self._source, self._path = service, source, path
        self.stamps = FeedStamps(service.clock)
        self.listeners: list[Callable[[list[Record]], None]] = []
        """Called with new records, in the order of the log, once they are pending."""
        self._busy = asyncio.Lock()
        self._reader: LogReader | None = None
        self._held: deque[tuple[int, Record]] = deque()
        """Records with their numbers, in order."""
        self._begin = -1
        """The number of the first held record; -1: nothing was read yet."""
        self._at: list[int] = [0, 0]
        """The position up to which the log was read."""
        self._pending = Pending()
        self._fresh: list[Record] = []
        """Records that the listeners do not know yet."""
        self._shared = False
        self._highest = 0
        """The latest time of a record; times too far ahead are ignored."""
        self._trouble: str | None = None
        self._behind_since: int | None = None
        """When the mirror of the log was first found behind the last batch."""

    async def now(self, *, shared: bool = False) -> FeedMoment:
        """Returns the last committed batch with its pending records.

        `shared`: a thread will read them.
        """
        progress = self._service.store.progress()
        if self._path is None:  # records from elsewhere were not acknowledged here
            return FeedMoment(progress, NOTHING, None)
        taken = progress.sources.get(self._source, SourceProgress())
        if self._busy.locked() or self._is_much(taken):
            async with self._busy:
                progress = self._service.store.progress()  # it may have changed meanwhile
                taken = progress.sources.get(self._source, SourceProgress())
                following = asyncio.ensure_future(self._service.in_thread(self._follow, taken))
                try:
                    await asyncio.shield(following)
                except asyncio.CancelledError:
                    await asyncio.wait([following])  # keep the lock until the thread has ended
                    raise
        else:
            self._follow(taken, loaded=True)
        self.stamps.learn(taken.highest)
        self.stamps.learn(self._highest)
        self._tell()
        self._shared = shared or self._shared
        return FeedMoment(progress, self._pending, self._trouble)

    def close(self) -> None:
        """Closes the log, unless a thread is reading it; that one ends with the server."""
        if not self._busy.locked():
            self._let_go()

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _tell(self) -> None:
        fresh, self._fresh = self._fresh, []
        if fresh:
            for listener in self.listeners:
                listener(fresh)

    def _is_much(self, taken: SourceProgress) -> bool:
        """True if following takes so long that other requests would wait."""
        if self._reader is None:
            return True
        try:
            self._reader.reload()
        except LogError:
            return True
        if self._reader.end[0] - self._at[0] > MUCH_BYTES and len(self._held) < MOST:
            return True
        return taken.position is not None and (
            taken.position[1] != self._begin and len(self._held) > MUCH_RECORDS
        )

    def _follow(self, taken: SourceProgress, *, loaded: bool = False) -> None:
        """Reads the records from the application's position up to the end of the log."""
        try:
            try:
                self._follow_log(taken.position, loaded)
            except LogError:  # the log was replaced
                self._begin_anew()
                self._follow_log(taken.position, loaded)
        except (LogError, OSError) as error:
            self._begin_anew()
            self._trouble = f"the last acknowledged records cannot be read: {error}"

    def _follow_log(self, position: list[int] | None, loaded: bool) -> None:
        assert self._path is not None
        if self._reader is None:
            self._reader = LogReader(self._path)
        elif not loaded:
            self._reader.reload()
        begin = position or self._reader.start
        behind_batch = begin[0] > self._reader.end[0]
        if behind_batch and self._service.store.mirror() is None:
            self._reader.stamp_at(begin)  # raises LogError if this log has no such position
        if not 0 <= self._begin <= begin[1] or begin[0] - self._at[0] > SKIPPED_BYTES:
            self._forget(begin)
        anew = begin[1] != self._begin
        while self._held and self._held[0][0] < begin[1]:
            self._held.popleft()
        self._begin = begin[1]
        self._add(self._read_on(), anew=anew)
        behind = self._reader.end[1] - self._at[1]
        self._trouble = self._mirror_trouble(begin) if behind_batch else None
        if not behind_batch:
            self._behind_since = None
        if behind > 0:
            records = counted(self._reader.end[1] - begin[1], "record")
            self._trouble = (
                f"the application is {records} behind, and the last {behind:,} of them "
                f"{verb(behind, 'is', 'are')} not shown yet; start it, or give it time"
            )

    def _mirror_trouble(self, begin: list[int]) -> str | None:
        """Returns what to report of a mirror that ends before the last batch; None at first."""
        assert self._reader is not None
        now = self._service.clock()
        self._behind_since = now if self._behind_since is None else self._behind_since
        if now - self._behind_since < BEHIND_SECONDS * 1e6:
            return None
        missing = counted(begin[1] - self._reader.end[1], "record")
        return (
            f"the log of {self._source!r} on this host is {missing} behind the last batch: "
            "acknowledged records may be missing; give it time, or look at this server's messages"
        )

    def _read_on(self) -> list[tuple[int, Record]]:
        """Reads the records since the last call. Invalid records are skipped."""
        assert self._reader is not None
        records: list[tuple[int, Record]] = []
        if self._at[0] >= self._reader.end[0]:
            return records
        latest = self.stamps.latest
        for block in self._reader.blocks(self._at[0], self._reader.end[0]):
            if len(self._held) + len(records) >= MOST:
                break
            for number, line in enumerate(block.lines, block.first):
                try:
                    record = read_record(_decode(line))
                except (InputError, ValueError, RecursionError):
                    continue  # it becomes a dead letter when the application reads it
                if self._highest < record.at <= latest:
                    self._highest = record.at
                if not isinstance(record, ViewRecord):
                    records.append((number, record))
            self._at = [block.next_offset, block.first + block.count]
        return records

    def _add(self, numbered_records: list[tuple[int, Record]], *, anew: bool) -> None:
        """Adds records to those held; `anew`: the held ones have changed, so rebuild `Pending`."""
        self._fresh += [record for _, record in numbered_records]
        pending = [numbered for numbered in numbered_records if numbered[0] >= self._begin]
        self._held.extend(pending)
        if anew or (self._shared and pending):  # a thread may be reading the current one
            self._pending = Pending(record for _, record in self._held)
            self._shared = False
        else:
            for _, record in pending:
                self._pending.add(record)

    def _forget(self, begin: list[int]) -> None:
        self._held.clear()
        self._pending, self._shared = Pending(), False
        self._begin, self._at = begin[1], list(begin)

    def _begin_anew(self) -> None:
        self._let_go()
        self._forget([0, 0])
        self._begin = -1
