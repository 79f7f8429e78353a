"""A copy of a shard on the disk of this host: an LMDB shard that records the changes that it has.

DESIGN
------
Besides its rows a copy keeps its *marks*: for each of the last two batches that changed it, the
object that each function's rows came from. Its *lineage* is derived from them: the last change of
the shard, as in the manifest. A copy may be ahead of the commits: it has applied an attempt of a
batch that was not committed, or that lost against an attempt on another host. It remembers one
batch, so it can undo that; `copies` decides when.

Tasks that change a copy do not know of each other: an attempt that Spark gave up on may still run.
So every change names the lineage that it builds on, and the same transaction refuses it with
CopyMoved if the copy has another lineage by then.

Nothing is synced: a copy that a reboot may have damaged is thrown away (`copies`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from millstream.errors import StaleCommit
from millstream.stores import rows
from millstream.stores.checks import NONE, RowTally, digest_of, sealed, unsealed
from millstream.stores.contract import Changes, Fence
from millstream.stores.environment import Transaction, explained
from millstream.stores.lmdb import LmdbShard, LmdbView, still_so
from millstream.stores.read_rows import ReadRows
from millstream.stores.recent_rows import RecentRows
from millstream.stores.shard_rows import (
    HEAD_KEY,
    Head,
    SortedChanges,
    journal_key,
    journals,
    read_head,
    replace_rows,
    restore_rows,
)
from millstream.stores.shared.manifest import NO_LINEAGE, Lineage

MARKS_KEY = rows.OWN + b"m"
FORGOTTEN = -2
"""The batch of a mark that the copy no longer knows."""


class BatchMark(msgspec.Struct, frozen=True, array_like=True):
    """The objects that the changes of a batch came from."""

    batch: int
    objects: dict[str, str]
    """By function, for functions that changed rows."""


class CopyMarks(msgspec.Struct, frozen=True, array_like=True):
    """The last two batches that changed a copy."""

    current: BatchMark
    previous: BatchMark

    @property
    def last(self) -> BatchMark:
        """The last batch that changed the copy; the current one may have changed nothing."""
        real = self.current.objects or self.current.batch == NO_LINEAGE[0]
        return self.current if real else self.previous

    @property
    def lineage(self) -> Lineage:
        """The last change of the copy."""
        return lineage_of(self.last)

    def before(self, batch: int) -> Lineage:
        """The last change before `batch`, which must not be earlier than the current batch."""
        return lineage_of(self.previous) if self.current.batch == batch else self.lineage


UNTOUCHED = CopyMarks(BatchMark(-1, {}), BatchMark(-1, {}))
"""The marks of an empty copy."""
_marks = msgspec.msgpack.Decoder(CopyMarks)


class CopyMoved(StaleCommit):
    """The copy has other changes than those that the caller builds on."""


def lineage_of(mark: BatchMark) -> Lineage:
    """The lineage of a mark, as in the manifest."""
    names = tuple(sorted(set(mark.objects.values())))
    return (mark.batch, names) if names or mark.batch == FORGOTTEN else NO_LINEAGE


def read_marks(row: bytes | None) -> CopyMarks:
    """Parses the stored marks."""
    return UNTOUCHED if row is None else _marks.decode(unsealed(MARKS_KEY, row))


def marks_row(marks: CopyMarks) -> bytes:
    """Encodes marks for storing."""
    return sealed(MARKS_KEY, msgspec.msgpack.encode(marks))


class ShardCopy(LmdbShard):
    """A copy. Its fences count batches only: the marks distinguish the attempts of a batch."""

    def __init__(self, path: str, number: int, map_size: int) -> None:
        super().__init__(path, number, map_size, sync=False)

    def marks(self) -> CopyMarks:
        with self._reading() as txn:
            return read_marks(txn.get(MARKS_KEY))

    def marks_in(self, view: LmdbView) -> CopyMarks:
        """The marks as a view shows them."""
        with explained(self._where, "cannot read"):
            return read_marks(view.own(MARKS_KEY))

    def advance(
        self,
        batch: int,
        name: str,
        changes: Mapping[str, Changes],
        onto: Lineage,
        read: ReadRows | None = None,
    ) -> None:
        """Apply the changes of every function named, as `batch`; they come from the object `name`.

        `onto` is the last change before the batch. Replaces an earlier attempt of the batch,
        function by function. Raises CopyMoved, and changes nothing, if the copy builds on another
        change. `read` is what a task has read of the rows before the batch.
        """
        environment = self._environment
        prepared = [(journal_key(f), SortedChanges(c)) for f, c in changes.items()]

        def body(txn: Transaction) -> bool:
            head, marks = read_head(txn), read_marks(txn.get(MARKS_KEY))
            if marks.current.batch > batch or marks.before(batch) != onto:
                raise self._moved(batch, marks, onto)
            tally, known = head.tally, still_so(environment, txn, batch, read)
            recent = RecentRows(txn)
            for key, changed in prepared:
                tally = replace_rows(txn, recent, batch, key, changed, tally, known)
            # If no row changes, nothing is forgotten: earlier batches can still be read.
            last = head.last if tally is head.tally else max(head.last, batch)
            if tally is not head.tally:
                tally = recent.settle(batch, tally)
            tally = _put_marks(txn, _marked(marks, batch, name, changes), tally)
            txn.put(HEAD_KEY, Head(Fence(0, last, 0), last, tally).pack())
            return True

        with explained(self._where, "nothing was changed"):
            environment.write(body)

    def copy_to(self, folder: Path) -> None:
        """Copy this copy to a folder that must not exist yet."""
        folder.mkdir()
        with explained(self._where, "cannot be copied"):
            self._environment.copy_to(str(folder))

    def take_back(self, known: CopyMarks) -> None:
        """Undo the current batch; CopyMoved if the copy has other marks than these."""

        def body(txn: Transaction) -> bool:
            head, marks = read_head(txn), read_marks(txn.get(MARKS_KEY))
            if marks != known:
                raise self._moved(known.current.batch, marks, known.lineage)
            tally, recent = head.tally, RecentRows(txn)
            for key, blob in journals(txn):
                journal = rows.checked_journal(key, blob)
                if rows.journal_batch(journal) == marks.current.batch:
                    tally = restore_rows(
                        txn, recent, marks.current.batch, rows.journal_keys(journal), tally
                    )
                    txn.delete(key)
                    tally = tally.changed(NONE, (blob,))
            tally = recent.settle(marks.current.batch, tally)
            tally = _put_marks(txn, CopyMarks(marks.previous, BatchMark(FORGOTTEN, {})), tally)
            txn.put(HEAD_KEY, Head(head.seen, head.last, tally).pack())
            return True

        with explained(self._where, "nothing was taken back"):
            self._environment.write(body)

    def _moved(self, batch: int, marks: CopyMarks, onto: Lineage) -> CopyMoved:
        return CopyMoved(
            f"{self._where}: batch {batch} builds on the change {onto}, and the copy has "
            f"{marks.lineage}: a task that was given up on, or of another driver, has changed it; "
            "the task is retried, nothing was changed"
        )


def _put_marks(txn: Transaction, marks: CopyMarks, tally: RowTally) -> RowTally:
    """Store the marks; returns the new tally."""
    before, row = txn.get(MARKS_KEY), marks_row(marks)
    txn.put(MARKS_KEY, row)
    return tally.changed(RowTally(1, digest_of([row])), [] if before is None else [before])


def _marked(marks: CopyMarks, batch: int, name: str, changes: Mapping[str, Changes]) -> CopyMarks:
    """The marks after a batch, or a part of it, was applied."""
    objects = {function: name for function, rows in changes.items() if rows}
    if marks.current.batch != batch:
        return CopyMarks(BatchMark(batch, objects), marks.last)
    kept = {f: known for f, known in marks.current.objects.items() if f not in changes}
    return CopyMarks(BatchMark(batch, {**kept, **objects}), marks.previous)
