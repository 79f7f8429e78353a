"""The shard contract: an ordered map from bytes to bytes that remembers one batch back.

A store is a fixed number of shards. A shard's rows belong to functions: a commit names every
function that it answers for, with the changes of each, and takes effect whole or not at all.

DESIGN
------
Each row keeps `(batch, value, value before that batch)`, and each function keeps in each shard the
keys that its last batch changed. From these two follow all promises:

- *Before b.* A task of batch b reads every row as it stood before b, whether or not an earlier try
  of b has already committed.
- *Replacement.* A commit of batch b by a function replaces the whole of that function's earlier
  commit of b: what only the earlier one changed is restored.
- *The fence.* `(epoch, batch, attempt)`: a commit whose fence is lower than the highest one seen by
  the shard is refused with StaleCommit and changes nothing. Equal is allowed (the same task again).
  A commit that found nothing to write has been seen too: a cancelled attempt may have changes,
  from the part of the input that it got, where the whole input has none.
- *Roll-back.* `roll_back(epoch, committed)` undoes what batch `committed + 1` changed, and raises
  the fence to `(epoch, committed + 1, 0)`, so that no task of an older driver can commit later.
- *Readers* name a committed batch c and see each row as it stood at its end. A shard whose last
  commit is of batch c + 1 still answers; past that it has forgotten, and raises StaleRead.
  `before(b)` is `at(b - 1)`, and raises in the same case: only a task that is stale comes so late.

Deleted rows stay as tombstones for one batch, so that the batch can still be undone, and are
removed by the function's next commit of a later batch. No two functions share a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, Self

import msgspec

from millstream.errors import StaleCommit, StaleRead, StoreError
from millstream.stores.read_rows import NOTHING_READ, ReadRows

Changes = Mapping[bytes, bytes | None]
"""The changes of one function in one shard: a value to put, or None to delete."""


class ChangesRef(msgspec.Struct, frozen=True, array_like=True):
    """Names an object that holds a task's changes, in a store whose commits name such objects."""

    name: str
    size: int
    shards: list[int]


class Fence(NamedTuple):
    """Identifies who commits. Compared left to right; a lower fence is refused."""

    epoch: int
    """The driver's number, raised durably at each driver start."""
    batch: int
    attempt: int
    """Spark's task attempt id, unique and rising within a driver."""

    def __str__(self) -> str:
        return f"(epoch {self.epoch}, batch {self.batch}, attempt {self.attempt})"


NO_FENCE = Fence(-1, -1, -1)
"""The highest fence of a shard before its first commit."""
NO_BATCH = -1
"""The last batch of a shard before its first commit."""


class ShardState(NamedTuple):
    """The fence and the batches that a shard has recorded."""

    seen: Fence
    """The highest fence that the shard has seen."""
    last: int
    """The last batch that changed the shard."""
    base: int = NO_BATCH
    """In a layered store: the last flush that changed the shard below, counted as it counts."""
    flushed: int = NO_BATCH
    """In a layered store: the batch up to which the shard below has everything."""


class View(Protocol):
    """The rows of one shard as of one moment; closed by leaving its `with` block.

    A view shows the same moment whatever commits meanwhile. Keep it open only briefly: meanwhile
    the store cannot reuse the space of the rows it shows, and a store that must grow may close it
    (StoreError).
    """

    @property
    def rows_read(self) -> ReadRows | None:
        """What `get_many` has read, for a commit of the batch after; None if it is not kept."""
        ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of `keys`, in the order asked; None where there is no row."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """The value of one key; None if there is no row."""
        ...

    def scan(
        self, start: bytes, stop: bytes | None = None, *, reverse: bool = False, cut: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows with `start <= key < stop` (stop None: to the end), in key order or in reverse.

        Lazy: rows are read as they are consumed, at most one ahead, and the caller may stop at any
        row. The first `cut` bytes are left out of each key; all keys in the range must share them.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class Shard(Protocol):
    """One shard of a store."""

    def before(self, batch: int) -> View:
        """The rows as they stood before `batch`: what a task of that batch reads.

        Raises StaleRead when a later batch has committed.
        """
        ...

    def at(self, committed: int) -> View:
        """The rows as they stood at the end of `committed`; StaleRead if that is forgotten."""
        ...

    def commit(
        self, fence: Fence, changes: Mapping[str, Changes], read: ReadRows | None = None
    ) -> None:
        """Apply the changes of every function named, as batch `fence.batch`.

        `read` is what a view of `before(fence.batch)` has read, to spare reading it again. It has
        no influence on the outcome: the store takes it only if nothing was written since.

        A function without changes is named with an empty mapping, so that an earlier try of the
        same batch is undone. If nothing changes and there is nothing to undo, no row is written
        and nothing is flushed to disk; the fence still counts as seen.
        Raises StaleCommit, and changes nothing, when a higher fence was seen or a later batch is
        in the shard (a new driver rolls back first).
        """
        ...

    def roll_back(self, epoch: int, committed: int) -> bool:
        """Undo every change after batch `committed`; True if there was one. Raises the fence.

        The fence is raised durably, even where there is nothing to undo. Called at a driver's
        start, with its new epoch, before any of its tasks. Raises StaleCommit when a higher fence
        was seen, and StoreError when the shard is more than one batch ahead.
        """
        ...

    @property
    def last_batch(self) -> int:
        """The last batch that changed the shard."""
        ...

    def state(self) -> ShardState | None:
        """The shard's state; None if the shard does not exist yet. Changes nothing."""
        ...

    def close(self) -> None: ...


class Layer(Protocol):
    """The part of a store whose batches are not flushed to disk yet."""

    def write_base(self, epoch: int, flushed: int, committed: int) -> None:
        """Write all rows as of `committed` to the flushed part, which has those of `flushed`."""
        ...

    def clear(self, epoch: int, committed: int) -> None:
        """Empty the layer in every shard not yet emptied for `committed`: all of it is flushed."""
        ...

    def base_batches(self) -> list[int]:
        """The last flush that changed each shard of the flushed part, counted as it counts."""
        ...


class Store(Protocol):
    """A fixed number of shards, opened by number."""

    @property
    def shards(self) -> int: ...

    @property
    def layer(self) -> Layer | None:
        """The part that is not flushed yet; None if every commit is flushed."""
        ...

    def shard(self, number: int) -> Shard: ...

    def commit(
        self,
        fence: Fence,
        changes: Mapping[int, Mapping[str, Changes]],
        read: Mapping[int, ReadRows] = NOTHING_READ,
    ) -> list[ChangesRef]:
        """Commit several shards, as if each were committed by itself.

        Returns the objects that the driver's commit must name; empty in most stores.
        """
        ...

    def close(self) -> None: ...


def after_prefix(prefix: bytes) -> bytes | None:
    """The least key greater than every key that starts with `prefix`; None if there is none.

    >>> after_prefix(b"ab")
    b'ac'
    >>> after_prefix(b"a\\xff")
    b'b'
    >>> after_prefix(b"\\xff") is None
    True
    """
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def check_commit(where: str, seen: Fence, last: int, fence: Fence) -> None:
    """Refuse a stale commit with `fence`; `seen` is the highest fence, `last` the last batch."""
    if fence < seen:
        raise StaleCommit(
            f"{where}: commit with fence {fence} refused, it must not be below {seen}, which the "
            "shard has seen; a newer driver, batch or attempt has taken over: drop this task, "
            "nothing was changed"
        )
    if fence.batch < last:
        raise StaleCommit(
            f"{where}: commit with fence {fence} refused, the shard already holds batch {last}; "
            "roll it back with the new epoch before its first task, nothing was changed"
        )


def check_roll_back(where: str, seen: Fence, last: int, epoch: int, committed: int) -> Fence:
    """Returns the fence that a roll-back to `committed` sets; refuses to lower the fence."""
    fence = Fence(epoch, committed + 1, 0)
    if fence < seen:
        raise StaleCommit(
            f"{where}: roll-back with fence {fence} refused, it must not be below {seen}, which "
            "the shard has seen; raise the epoch at every driver start, nothing was changed"
        )
    if last > committed + 1:
        raise StoreError(
            f"{where}: cannot roll back to batch {committed}, the shard is at batch {last} and "
            "remembers one batch back; the store's record of its last batch, `progress`, is older "
            "than its shards: put back the one that belongs to them, or begin a new store"
        )
    return fence


def check_read(where: str, last: int, committed: int) -> None:
    """Refuse to read as of `committed` if the shard has forgotten that batch."""
    if last > committed + 1:
        raise StaleRead(
            f"{where}: cannot read as of batch {committed}, the shard is at batch {last} and "
            f"remembers one batch back; read as of {last - 1} or later"
        )
