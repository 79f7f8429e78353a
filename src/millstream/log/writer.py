"""Appends to a log: one process, one block and one sync for each append.

An append is acknowledged when its block is on disk: written after the last one, synced, and only
then published in `end`. A crash before that leaves a part of a block, which the next open cuts off,
or a whole block, which it keeps: never a part of an append. If a write fails, the file is truncated
to its former length, and the writer can be used again.

A new segment is begun when a block does not fit into the last one, or when the first block of the
last one is older than retention allows, so that old records are removed even from a slow stream.

A writer belongs to one thread at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from millstream.counted_nouns import counted, verb
from millstream.durable import AppendFile, sync
from millstream.errors import LogError
from millstream.log.blocks import Tag, encode_block
from millstream.log.entries import Appended, Entry, TagMismatch, sorted_out
from millstream.log.readers import least_committed
from millstream.log.recovery import recover
from millstream.log.retention import Retention, Sealed, removable
from millstream.log.segments import (
    create_segment,
    encode_end,
    failed,
    locked,
    make_folder,
    segment_at,
)
from millstream.log.tags import Tags, remembered
from millstream.wall_clock import wall_clock

__all__ = ["Appended", "Entry", "LogWriter", "Retention", "TagMismatch"]

SEGMENT_BYTES, LEAST_SEGMENT_BYTES = 64 << 20, 64 << 10


def segment_size(retention: Retention) -> int:
    """The size of segments. They are removed whole, so a small limit needs small segments."""
    if retention.max_bytes is None:
        return SEGMENT_BYTES
    return min(SEGMENT_BYTES, max(LEAST_SEGMENT_BYTES, retention.max_bytes // 8))


class LogWriter:
    """The writer of the log at a path; creates the log if it does not exist."""

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
        self._file: AppendFile | None = None
        self._lock = self._end = -1
        try:
            make_folder(self.path)
            self._lock = locked(self.path)
            self._open()
        except OSError as error:
            self.close()
            raise failed(self.path, "open it", error) from None
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        recovered = recover(self.path, self._clock() if self._dedupe else None)
        self._sealed = recovered.sealed
        self._active, self._size = recovered.active, recovered.size
        self._file = AppendFile(recovered.file, recovered.size)
        self._records = recovered.records
        self._first_stamp, self._stamp = recovered.first_stamp, recovered.last_stamp
        self._tags = Tags()
        if self._dedupe:
            self._tags.add(recovered.tags)
        self.last_tag = recovered.tags[-1].tag if recovered.tags else ""
        """The tag of the last entry that had one; "" if none is known."""
        self.torn = recovered.torn
        """Bytes of an interrupted append that were cut off."""
        self.torn_said = ""
        if recovered.torn:
            torn = counted(recovered.torn, "byte")
            were, are = verb(recovered.torn, "was", "were"), verb(recovered.torn, "is", "are")
            self.torn_said = (
                f"log {self.path}: the last append was interrupted: {torn} that {were} "
                f"never acknowledged {are} cut off, and the log ends at record {self._records}"
            )
        flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
        self._end = os.open(self.path / "end", flags, 0o644)
        os.ftruncate(self._end, len(encode_end(0, 0)))
        self._publish(*self.end)

    @property
    def end(self) -> list[int]:
        """The position after the last block."""
        return [self._active.offset + self._size, self._records]

    def append(self, entries: Sequence[Entry]) -> list[Appended | TagMismatch]:
        """Append the entries that are new, in one block; they are on disk when this returns.

        Raises LogError if the write fails: then none was appended, and it can be retried.
        """
        known = self._tags if self._dedupe else None
        payload, count, tags, results = sorted_out(entries, self._records, known, str(self.path))
        if count or tags:
            stamp = max(self._clock(), self._stamp)
            block = encode_block(payload, count, self._records, stamp, self._stamp, tags)
            rolled = self._must_roll(len(block), stamp)
            self._write(block, count, stamp, rolled)
            if self._dedupe:
                self._tags.add(tags)
            if tags:
                self.last_tag = tags[-1].tag
            if rolled:
                try:
                    self.retain()
                except LogError:
                    pass  # the append is done; the next roll retries
        return results

    def clear(self) -> None:
        """Remove all records that every reader has committed; the numbers of records go on.

        A block without records remains: it has the last tag, which identifies the last append. The
        writer must have been opened with the retention `NOTHING`.
        """
        if self._first_stamp is None and not self._sealed:
            return
        stamp = max(self._clock(), self._stamp)
        self._write(self._mark(stamp), 0, stamp, True)
        self.retain()

    def _mark(self, stamp: int) -> bytes:
        tags = [Tag(self.last_tag, self._records, 0, 0)] if self.last_tag else []
        return encode_block(b"", 0, self._records, stamp, self._stamp, tags)

    def retain(self) -> int:
        """Remove the segments that retention no longer keeps; returns the bytes freed."""
        self._check_usable()
        now = self._clock()
        least = least_committed(self.path)
        freed = 0
        try:
            for _ in range(removable(self._sealed, self._size, least, now, self._retention)):
                oldest = self._sealed[0]
                # Each removal is synced before the next, so that a crash cannot leave a gap.
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
        """Close the files and release the lock."""
        if self._file is not None:
            self._file.close()
        for file in (self._end, self._lock):
            if file >= 0:
                os.close(file)
        self._file = None
        self._lock = self._end = -1

    def _must_roll(self, more: int, stamp: int) -> bool:
        if self._first_stamp is None:
            return False
        age = self._retention.max_age
        old = age is not None and stamp - self._first_stamp > age
        return old or self._size + more > self._segment_bytes

    def _check_usable(self) -> None:
        if self._file is None or self._broken:
            raise LogError(
                f"log {self.path}: {self._broken or 'it is closed'}; open it again to go on"
            )

    def _write(self, block: bytes, count: int, stamp: int, roll: bool) -> None:
        """Write the block to disk and publish it, or leave everything as it was."""
        self._check_usable()
        assert self._file is not None
        # Stays set if anything but an OSError interrupts this: then only reading the file can tell
        # how much was written.
        self._broken = "an append was interrupted"
        try:
            if not self._is_there():
                raise FileNotFoundError(0, "its files were removed while it was open")
            if roll:
                self._roll()
            self._file.append(block)
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
        """True if the open file is still the log's: not deleted, nor moved away with its folder."""
        try:
            assert self._file is not None
            return os.path.samestat(os.stat(self._active.path), os.fstat(self._file.file))
        except FileNotFoundError:
            return False

    def _cut_back(self) -> None:
        """Remove the block of a failed append, also if it is whole and was only not published."""
        assert self._file is not None
        try:
            if not self._file.torn:
                self._file.truncate(self._size)
                self._publish(*self.end)
        except OSError as error:
            self._broken = f"a failed append could not be taken back: {error.strerror or error}"
        else:
            self._broken = self._file.torn

    def _roll(self) -> None:
        """Begin a new segment after the last one, which is completely on disk."""
        offset, records = self.end
        segment = segment_at(self.path, offset, records)
        file = create_segment(self.path, segment)
        old = self._active
        self._sealed.append(Sealed(old.offset, old.first, offset, self._stamp))
        assert self._file is not None
        self._file.close()
        self._file = AppendFile(file, 0)
        self._active, self._size, self._first_stamp = segment, 0, None

    def _publish(self, offset: int, records: int) -> None:
        os.pwrite(self._end, encode_end(offset, records), 0)
