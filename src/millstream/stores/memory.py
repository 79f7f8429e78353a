"""A store in memory, for tests: the contract in its plainest form.

The content of a shard is one frozen value. A commit makes a new one and replaces the old one with
it. So a view, which keeps the value that it began with, never changes, and a failed commit has no
effect.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from millstream.errors import StoreError
from millstream.stores.contract import (
    NO_BATCH,
    NO_FENCE,
    Changes,
    ChangesRef,
    Fence,
    Layer,
    ShardState,
    check_commit,
    check_read,
    check_roll_back,
)
from millstream.stores.read_rows import NOTHING_READ, ReadRows


class _Row(NamedTuple):
    batch: int
    value: bytes | None
    previous: bytes | None


class _BatchJournal(NamedTuple):
    batch: int
    keys: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class _Content:
    seen: Fence = NO_FENCE
    last: int = NO_BATCH
    rows: Mapping[bytes, _Row] = field(default_factory=dict)
    journals: Mapping[str, _BatchJournal] = field(default_factory=dict)


class MemoryView:
    """The rows of one shard as of the end of batch `limit`."""

    __slots__ = ("_limit", "_rows")
    rows_read = None

    def __init__(self, rows: Mapping[bytes, _Row], limit: int) -> None:
        self._rows = rows
        self._limit = limit

    def _value(self, key: bytes) -> bytes | None:
        row = self._rows.get(key)
        if row is None:
            return None
        return row.previous if row.batch > self._limit else row.value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._value(key) for key in keys]

    def get(self, key: bytes) -> bytes | None:
        return self._value(key)

    def scan(
        self, start: bytes, stop: bytes | None = None, *, reverse: bool = False, cut: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        within = (key for key in self._rows if start <= key and (stop is None or key < stop))
        for key in sorted(within, reverse=reverse):
            value = self._value(key)
            if value is not None:
                yield key[cut:], value

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class MemoryShard:
    """One shard of a `MemoryStore`."""

    def __init__(self, number: int) -> None:
        self._where = f"shard {number} of the memory store"
        self._content = _Content()
        self._lock = threading.Lock()

    def before(self, batch: int) -> MemoryView:
        return self.at(batch - 1)

    def at(self, committed: int) -> MemoryView:
        content = self._content
        check_read(self._where, content.last, committed)
        return MemoryView(content.rows, committed)

    def commit(
        self, fence: Fence, changes: Mapping[str, Changes], read: ReadRows | None = None
    ) -> None:
        with self._lock:
            content = self._content
            check_commit(self._where, content.seen, content.last, fence)
            rows, journals = dict(content.rows), dict(content.journals)
            last = content.last
            for function, changed in changes.items():
                if _replace(rows, journals, fence.batch, function, changed):
                    last = fence.batch
            self._content = _Content(fence, last, rows, journals)

    def roll_back(self, epoch: int, committed: int) -> bool:
        with self._lock:
            content = self._content
            fence = check_roll_back(self._where, content.seen, content.last, epoch, committed)
            rows, journals = dict(content.rows), dict(content.journals)
            ahead = [name for name, journal in journals.items() if journal.batch > committed]
            for function in ahead:
                _restore(rows, journals.pop(function))
            self._content = replace(content, seen=fence, rows=rows, journals=journals)
            return bool(ahead)

    @property
    def last_batch(self) -> int:
        return self._content.last

    def state(self) -> ShardState | None:
        return ShardState(self._content.seen, self._content.last)

    def close(self) -> None:
        pass


def _replace(
    rows: dict[bytes, _Row],
    journals: dict[str, _BatchJournal],
    batch: int,
    function: str,
    changed: Changes,
) -> bool:
    """Replace the changes of `function` in `batch` with `changed`; False if nothing was written."""
    journal = journals.get(function)
    again = journal is not None and journal.batch == batch
    if journal and again:
        _restore(rows, journals.pop(function))
    values = {key: row.value for key in changed if (row := rows.get(key))}
    # Deleting what is not there changes nothing.
    changed = {k: v for k, v in changed.items() if v is not None or values.get(k) is not None}
    if not changed:
        return again
    if journal and not again:
        for key in journal.keys:
            if rows[key].value is None:
                del rows[key]
    rows.update((key, _Row(batch, value, values.get(key))) for key, value in changed.items())
    journals[function] = _BatchJournal(batch, frozenset(changed))
    return True


def _restore(rows: dict[bytes, _Row], journal: _BatchJournal) -> None:
    for key in journal.keys:
        before = rows.pop(key).previous
        if before is not None:
            rows[key] = _Row(journal.batch - 1, before, None)


class MemoryStore:
    """Shards that live as long as this object; one process only."""

    def __init__(self, shards: int) -> None:
        self._shards = [MemoryShard(number) for number in range(shards)]

    @property
    def shards(self) -> int:
        return len(self._shards)

    @property
    def layer(self) -> Layer | None:
        return None

    def shard(self, number: int) -> MemoryShard:
        if not 0 <= number < len(self._shards):
            raise StoreError(
                f"the memory store: shard {number} must be from 0 to {len(self._shards) - 1}"
            )
        return self._shards[number]

    def commit(
        self,
        fence: Fence,
        changes: Mapping[int, Mapping[str, Changes]],
        read: Mapping[int, ReadRows] = NOTHING_READ,
    ) -> list[ChangesRef]:
        for number, functions in changes.items():  # no threads: there is no disk to wait for
            self.shard(number).commit(fence, functions)
        return []

    def close(self) -> None:
        pass
