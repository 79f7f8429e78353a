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
- *Roll-back.* `roll_back(epoch, committed)` undoes what batches after `committed` changed, and
  raises the fence, so that no task of an older driver can commit afterwards.
- *Readers* name a committed batch c and see each row as it stood at the end of c. A shard whose last
  commit is of batch c + 1 still answers; past that it has forgotten, and raises StaleRead.

Deleted rows stay as tombstones for one batch, so that the batch can still be undone, and are
removed by the function's next commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

Changes = Mapping[bytes, bytes | None]
"""What one function changes in one shard: a value to put, or None to delete."""


class Fence(NamedTuple):
    """Who commits: compared left to right, lower is refused."""

    epoch: int
    """The driver's number, raised durably at each driver start."""
    batch: int
    attempt: int
    """Spark's task attempt id, unique and rising within a driver."""


class View(Protocol):
    """The rows of one shard as of one moment; short-lived, closed by leaving its `with` block."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of `keys`, in the order asked; None where there is no row."""
        ...

    def scan(
        self, start: bytes, stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows with `start <= key < stop` (stop None: to the end), in key order or in reverse."""
        ...

    def __enter__(self) -> View: ...

    def __exit__(self, *exc: object) -> None: ...


class Shard(Protocol):
    """One shard of a store."""

    def before(self, batch: int) -> View:
        """The rows as they stood before `batch`: what a task of that batch reads."""
        ...

    def at(self, committed: int) -> View:
        """The rows as they stood at the end of `committed`; StaleRead if that is forgotten."""
        ...

    def commit(self, fence: Fence, changes: Mapping[str, Changes]) -> None:
        """Apply the changes of every function named, as batch `fence.batch`.

        A function without changes is named with an empty mapping, so that an earlier try of the
        same batch is undone. Where nothing changes and nothing is to be undone, nothing is written.
        Raises StaleCommit, and changes nothing, when a higher fence was seen.
        """
        ...

    def roll_back(self, epoch: int, committed: int) -> bool:
        """Undo every change after batch `committed`; True if there was one. Raises the fence."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    """A fixed number of shards, opened by number."""

    @property
    def shards(self) -> int: ...

    def shard(self, number: int) -> Shard: ...

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
