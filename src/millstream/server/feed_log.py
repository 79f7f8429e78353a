"""The records of feeds that were acknowledged and that the application has not taken in yet.

They are what lies in the log of `NAME.events` between how far the last committed batch has come,
which its progress says, and the log's end, which is written before anything is acknowledged. So
whoever reads the tables as of that batch, with these records laid over them (`Pending`), sees all
that was acknowledged before it asked.

DESIGN
------
Each record is read and decoded once. While nothing changes, a look costs two small files' worth of
system calls. New records are added to the `Pending` there is; with each batch it is made anew from
the records that are left. Much at once, as after a start, is read beside the event loop; all who
ask meanwhile wait for it. What was given to a thread is not changed any more (`shared`).

No more than `MOST` records are held. When the application is further behind, or the log cannot be
read, the moment says so in its `trouble`: a feed is then not complete.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from millstream.errors import InputError, LogError
from millstream.feeds.pending import NOTHING, Pending
from millstream.feeds.records import checked
from millstream.log.reader import LogReader
from millstream.server.feed_stamps import Stamps
from millstream.server.service import Service
from millstream.stores.progress import Progress, SourceProgress

MOST = 100_000
"""Records that are held, at most."""
SKIPPED_BYTES = 4 << 20
"""What is taken in without having been looked at is not read if it is more than this."""
MUCH_BYTES, MUCH_RECORDS = 256 << 10, 4_000
"""More than this to read, or to go through again, is done beside the event loop."""
Record = dict[str, Any]

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Moment:
    """The last committed batch, and what is pending after it."""

    progress: Progress
    pending: Pending
    trouble: str | None
    """Why not all that was acknowledged is in `pending`; None if it is."""


class FeedLog:
    """Follows the log of one source of feeds. Used on the event loop."""

    def __init__(self, service: Service, source: str, path: Path | None) -> None:
        self._service, self._source, self._path = service, source, path
        self.stamps = Stamps(service.clock)
        self.listeners: list[Callable[[list[Record]], None]] = []
        """Are told of new records, in the order of the log, after they are pending."""
        self._busy = asyncio.Lock()
        self._reader: LogReader | None = None
        self._held: deque[tuple[int, Record]] = deque()
        """Records with their numbers, in order."""
        self._begin = -1
        """The record from which on they are held; -1: none was read yet."""
        self._at: list[int] = [0, 0]
        """Up to where the log was read."""
        self._pending = Pending()
        self._fresh: list[Record] = []
        """Those that no listener was told of yet."""
        self._shared = False
        self._highest = 0
        """The latest time of a record, of those that may be."""
        self._trouble: str | None = None

    async def now(self, *, shared: bool = False) -> Moment:
        """The last committed batch, and what is pending. `shared`: a thread will look at it."""
        progress = self._service.store.progress()
        if self._path is None:  # what comes from elsewhere was not acknowledged here
            return Moment(progress, NOTHING, None)
        taken = progress.sources.get(self._source, SourceProgress())
        if self._busy.locked() or self._is_much(taken):
            async with self._busy:
                progress = self._service.store.progress()  # it may be another by now
                taken = progress.sources.get(self._source, SourceProgress())
                following = asyncio.ensure_future(self._service.in_thread(self._follow, taken))
                try:
                    await asyncio.shield(following)
                except asyncio.CancelledError:
                    await asyncio.wait([following])  # nobody else must follow meanwhile
                    raise
        else:
            self._follow(taken, loaded=True)
        self.stamps.learn(taken.highest)
        self.stamps.learn(self._highest)
        self._tell()
        self._shared = shared or self._shared
        return Moment(progress, self._pending, self._trouble)

    def close(self) -> None:
        """Let go of the log, unless a thread is at it, which then ends with the server."""
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
        """Whether following takes so long that others would wait."""
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
        """Hold the records from where the application is up to the log's end."""
        try:
            try:
                self._follow_log(taken.position, loaded)
            except LogError:  # whatever there is, it is not the log that it was
                self._begin_anew()
                self._follow_log(taken.position, loaded)
        except (LogError, OSError) as error:
            self._begin_anew()
            self._trouble = f"what was acknowledged last cannot be read: {error}"

    def _follow_log(self, position: list[int] | None, loaded: bool) -> None:
        assert self._path is not None
        if self._reader is None:
            self._reader = LogReader(self._path)
        elif not loaded:
            self._reader.reload()
        begin = position or self._reader.start
        if begin[0] > self._reader.end[0]:
            self._reader.stamp_at(begin)  # LogError if it is no place in this log
        if not 0 <= self._begin <= begin[1] or begin[0] - self._at[0] > SKIPPED_BYTES:
            self._forget(begin)
        anew = begin[1] != self._begin
        while self._held and self._held[0][0] < begin[1]:
            self._held.popleft()
        self._begin = begin[1]
        self._add(self._read_on(), anew=anew)
        behind = self._reader.end[1] - self._at[1]
        self._trouble = None
        if behind > 0:
            self._trouble = (
                f"the application is {self._reader.end[1] - begin[1]} records behind, and the last "
                f"{behind} of them are not looked at; start it, or give it time"
            )

    def _read_on(self) -> list[tuple[int, Record]]:
        """The records that came since; those that the application will refuse are none."""
        assert self._reader is not None
        found: list[tuple[int, Record]] = []
        if self._at[0] >= self._reader.end[0]:
            return found
        latest = self.stamps.latest
        for block in self._reader.blocks(self._at[0], self._reader.end[0]):
            if len(self._held) + len(found) >= MOST:
                break
            for number, line in enumerate(block.lines, block.first):
                try:
                    record = checked(_decode(line))
                except (InputError, ValueError, RecursionError):
                    continue  # a dead letter, when it is taken in
                if self._highest < record["at"] <= latest:
                    self._highest = record["at"]
                if record["kind"] != "view":
                    found.append((number, record))
            self._at = [block.next_offset, block.first + block.count]
        return found

    def _add(self, found: list[tuple[int, Record]], *, anew: bool) -> None:
        """Hold these too; `anew` if others are held no more."""
        fresh = [record for _, record in found]
        self._fresh += fresh
        self._held.extend(one for one in found if one[0] >= self._begin)
        if anew or (self._shared and fresh):  # what a thread goes through is left as it is
            self._pending = Pending(record for _, record in self._held)
            self._shared = False
        else:
            for record in fresh:
                self._pending.add(record)

    def _forget(self, begin: list[int]) -> None:
        self._held.clear()
        self._pending, self._shared = Pending(), False
        self._begin, self._at = begin[1], list(begin)

    def _begin_anew(self) -> None:
        self._let_go()
        self._forget([0, 0])
        self._begin = -1
