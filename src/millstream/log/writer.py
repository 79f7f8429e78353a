"""Appending to a log: one process, one block and one sync for each append.

An append is acknowledged when its block is on disk: written behind the last one, synced, and only
then made known in `end`. A crash before that leaves a part of a block, which the next opening cuts
off, or a whole one, which it keeps: never a part of an append. If the disk refuses, the file is cut
back to where it was, and the writer can be used again.

A new segment is begun when a block does not fit the last one any more, or when that one's first
block is older than what retention keeps, so that old records go even from a slow stream.

A writer belongs to one thread at a time.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from millstream.durable import sync
from millstream.errors import LogError, LogLocked
from millstream.log.blocks import Tag, encode_block
from millstream.log.readers import least_committed
from millstream.log.recovery import recover
from millstream.log.retention import Retention, Sealed, removable
from millstream.log.segments import create_segment, encode_end, failed, make_folder, segment_at
from millstream.log.tags import Tags, remembered

__all__ = ["Appended", "Entry", "LogWriter", "Retention", "TagMismatch"]

TRIES, TRY_SECONDS = 10, 0.02
"""How often the lock is tried: a reader may have it for a moment."""

SEGMENT_BYTES, LEAST_SEGMENT_BYTES = 64 << 20, 64 << 10


class Entry(NamedTuple):
    """Records that are appended together. With a tag they are appended once, however often asked.

    `digest`, of 64 bits, tells whether a repeat is of the same records.
    """

    lines: list[bytes]
    tag: str = ""
    digest: int = 0


class Appended(NamedTuple):
    """The number of an entry's first record; `repeated` if it was there from an earlier append."""

    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    repeated: bool


class TagMismatch(LogError):
    """A tag came again with another digest: the entry was not appended."""


def segment_size(retention: Retention) -> int:
    """Segments go whole, so that little can be kept only in small ones."""
    if retention.max_bytes is None:
        return SEGMENT_BYTES
    return min(SEGMENT_BYTES, max(LEAST_SEGMENT_BYTES, retention.max_bytes // 8))


def wall_clock() -> int:
    """The time of day in microseconds."""
    return time.time_ns() // 1000


class LogWriter:
    """The writer of the log at a path, which is made if it is not there."""

    def __init__(
        self,
        path: Path | str,
        *,
        segment_bytes: int | None = None,
        retention: Retention = Retention(),  # noqa: B008  # frozen
        clock: Callable[[], int] = wall_clock,
        tags: bool = True,
    ) -> None:
        self.path = Path(path)
        self._segment_bytes = segment_bytes or segment_size(retention)
        self._retention = retention
        self._clock = clock
        self._dedupe = tags
        self._broken = ""
        self._lock = self._file = self._end = -1
        try:
            make_folder(self.path)
            self._lock = _locked(self.path)
            self._open()
        except OSError as error:
            self.close()
            raise failed(self.path, "open it", error) from None
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        found = recover(self.path, self._clock() if self._dedupe else None)
        self._sealed = found.sealed
        self._active, self._file, self._size = found.active, found.file, found.size
        self._records = found.records
        self._first_stamp, self._stamp = found.first_stamp, found.last_stamp
        self._tags = Tags()
        if self._dedupe:
            self._tags.add(found.tags)
        self.last_tag = found.tags[-1].tag if found.tags else ""
        """The tag of the last entry that had one; "" if none is known."""
        self.torn = found.torn
        """Bytes of an interrupted append that were cut off."""
        self.torn_said = ""
        if found.torn:
            self.torn_said = (
                f"log {self.path}: the last append was interrupted: {found.torn} bytes that were "
                f"never acknowledged are cut off, and the log ends at record {self._records}"
            )
        flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
        self._end = os.open(self.path / "end", flags, 0o644)
        os.ftruncate(self._end, len(encode_end(0, 0)))
        self._publish(*self.end)

    @property
    def end(self) -> list[int]:
        """The position behind the last block."""
        return [self._active.offset + self._size, self._records]

    def append(self, entries: Sequence[Entry]) -> list[Appended | TagMismatch]:
        """Append the entries that are new, in one block; they are on disk when this returns.

        LogError if the disk refuses: then none was appended, and it can be tried again.
        """
        lines, tags, results = self._sort_out(entries)
        if lines or tags:
            stamp = max(self._clock(), self._stamp)
            block = encode_block(lines, self._records, stamp, self._stamp, tags)
            rolled = self._must_roll(len(block), stamp)
            self._write(block, len(lines), stamp, rolled)
            if self._dedupe:
                self._tags.add(tags)
            if tags:
                self.last_tag = tags[-1].tag
            if rolled:
                try:
                    self.retain()
                except LogError:
                    pass  # the append is done; the next roll tries again
        return results

    def retain(self) -> int:
        """Remove the segments that retention lets go; how many bytes that freed."""
        self._check_usable()
        now = self._clock()
        least = least_committed(self.path)
        freed = 0
        try:
            for _ in range(removable(self._sealed, self._size, least, now, self._retention)):
                oldest = self._sealed[0]
                # One after the other on disk, so that a crash cannot leave a gap.
                path = segment_at(self.path, oldest.offset, oldest.first).path
                Path(path).unlink(missing_ok=True)
                sync(self.path)
                del self._sealed[0]
                freed += oldest.end - oldest.offset
        except OSError as error:
            raise failed(self.path, "remove old segments", error) from None
        known = remembered(self._sealed, now)
        begins = self._sealed[-known].first if known else self._active.first
        self._tags.forget_before(begins)
        return freed

    def close(self) -> None:
        """Let go of the log."""
        for file in (self._file, self._end, self._lock):
            if file >= 0:
                os.close(file)
        self._lock = self._file = self._end = -1

    def _sort_out(
        self, entries: Sequence[Entry]
    ) -> tuple[list[bytes], list[Tag], list[Appended | TagMismatch]]:
        """The records and the tags that are new, and what each entry's result is."""
        lines: list[bytes] = []
        fresh: dict[str, Tag] = {}
        results: list[Appended | TagMismatch] = []
        for entry in entries:
            known = None
            if entry.tag and self._dedupe:
                known = fresh.get(entry.tag) or self._tags.get(entry.tag)
            if known is None:
                result = Appended(self._records + len(lines), len(entry.lines), False)
                lines += entry.lines
                if entry.tag:
                    fresh[entry.tag] = Tag(entry.tag, result.first, result.count, entry.digest)
                results.append(result)
            elif known.digest == entry.digest:
                results.append(Appended(known.first, known.count, True))
            else:
                results.append(
                    TagMismatch(
                        f"log {self.path}: tag {entry.tag!r} was used for {known.count} other "
                        f"records, from record {known.first} on; send new records with a new tag"
                    )
                )
        return lines, list(fresh.values()), results

    def _must_roll(self, more: int, stamp: int) -> bool:
        if self._first_stamp is None:
            return False
        age = self._retention.max_age
        old = age is not None and stamp - self._first_stamp > age
        return old or self._size + more > self._segment_bytes

    def _check_usable(self) -> None:
        if self._file < 0 or self._broken:
            raise LogError(
                f"log {self.path}: {self._broken or 'it is closed'}; open it again to go on"
            )

    def _write(self, block: bytes, count: int, stamp: int, roll: bool) -> None:
        """Put the block on disk and make it known, or leave everything as it was."""
        self._check_usable()
        # Stays so if this is left by anything but the disk's answer: only reading the file tells
        # then how far it came.
        self._broken = "an append was interrupted"
        try:
            if not self._is_there():
                raise FileNotFoundError(0, "its files were removed while it was open")
            if roll:
                self._roll()
            left, at = memoryview(block), self._size
            while left:
                written = os.pwrite(self._file, left, at)
                left, at = left[written:], at + written
            os.fdatasync(self._file)
            offset, records = self.end
            self._publish(offset + len(block), records + count)
        except OSError as error:
            self._cut_back()
            raise failed(self.path, "append to it", error) from None
        self._size += len(block)
        self._records += count
        self._stamp = stamp
        self._first_stamp = stamp if self._first_stamp is None else self._first_stamp
        self._broken = ""

    def _is_there(self) -> bool:
        """Whether our file is still the log's: not deleted, nor moved away with its folder."""
        try:
            return os.path.samestat(os.stat(self._active.path), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def _cut_back(self) -> None:
        """Take back what a failed append left. Synced, or a crash could bring it back whole."""
        try:
            os.ftruncate(self._file, self._size)
            os.fsync(self._file)
            self._publish(*self.end)
        except OSError as error:
            self._broken = f"a failed append could not be taken back: {error.strerror or error}"
        else:
            self._broken = ""

    def _roll(self) -> None:
        """Begin a new segment behind the last one, all of which is on disk."""
        offset, records = self.end
        segment = segment_at(self.path, offset, records)
        file = create_segment(self.path, segment)
        old = self._active
        self._sealed.append(Sealed(old.offset, old.first, offset, self._stamp))
        file, self._file = self._file, file
        self._active, self._size, self._first_stamp = segment, 0, None
        os.close(file)

    def _publish(self, offset: int, records: int) -> None:
        os.pwrite(self._end, encode_end(offset, records), 0)


def _locked(folder: Path) -> int:
    """The lock file, held; the system frees it if the process dies."""
    file = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        for left in reversed(range(TRIES)):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not left:
                    raise
                time.sleep(TRY_SECONDS)
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
    except BlockingIOError:
        holder = os.pread(file, 32, 0).decode(errors="replace").strip()
        os.close(file)
        raise LogLocked(
            f"log {folder}: another process writes to it (process {holder or 'unknown'}); a log "
            "has one writer: stop that one first, or send the records to it"
        ) from None
    except BaseException:
        os.close(file)
        raise
    return file
