"""Changes of slates, for sinks: the state in which a batch leaves each slate that it changed.

A change is `(key, entry, slate, ts, batch)`. Slates stay in their stored JSON form, never decoded
on the way, and changes travel as columns, because there are many between a task and a sink.

- `key` is the slate's. A table has one change per changed entry, which `entry` names; the table as
  a whole has none. For any other slate `entry` is the empty text.
- `slate` is JSON text, or None: the slate, or the entry, is gone (forgotten, expired, evicted).
  The value of an entry that is bytes is tagged as in `codec`.
- `ts` is that of the last event that updated the slate, also if the slate is gone.
- `batch` is the committed batch. It has one change per key (and entry), whatever happened in it.

For every committed batch: applying the changes of all batches up to it, in order, gives exactly the
slates as of that batch. The other guarantees are in docs/changes.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from millstream.codec import BYTES_TAG


class SlateChange(NamedTuple):
    """The change of one slate, or of one entry of a table, in one batch."""

    key: str
    entry: str
    slate: bytes | None
    ts: int
    batch: int


class SlateChanges(msgspec.Struct, array_like=True):
    """Many changes, as columns of the same length; in the order of their batches.

    >>> changes = SlateChanges()
    >>> changes.add("ann", "", b'{"count":1}', 5, batch=0)
    >>> changes.add("ann", "", None, 9, batch=1)
    >>> len(changes), [change.slate for change in changes.latest()]
    (2, [None])
    """

    keys: list[str] = []
    entries: list[str] = []
    slates: list[bytes | None] = []
    ts: list[int] = []
    batches: list[int] = []

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[SlateChange]:
        columns = zip(self.keys, self.entries, self.slates, self.ts, self.batches, strict=True)
        return map(SlateChange._make, columns)

    def add(self, key: str, entry: str, slate: bytes | None, ts: int, batch: int) -> None:
        """Appends one change."""
        self.keys.append(key)
        self.entries.append(entry)
        self.slates.append(slate)
        self.ts.append(ts)
        self.batches.append(batch)

    def extend(self, more: SlateChanges) -> None:
        self.keys += more.keys
        self.entries += more.entries
        self.slates += more.slates
        self.ts += more.ts
        self.batches += more.batches

    def latest(self) -> Iterable[SlateChange]:
        """Returns the last change of each key and entry: all that a consumer needs that keeps only
        the slates themselves."""
        return {(change.key, change.entry): change for change in self}.values()

    def rows(self, *, entries: bool) -> list[dict[str, Any]]:
        """Returns the changes as rows of a file or a log (`sinks.columns`); those of a table have
        `entries`."""
        raw, columns = _raw, zip(self.keys, self.slates, self.ts, self.batches, strict=True)
        if entries:
            named = zip(columns, self.entries, strict=True)
            return [
                {
                    "key": key,
                    "entry": entry,
                    "slate": raw(slate),
                    "deleted": slate is None,
                    "ts": ts,
                    "batch": batch,
                }
                for (key, slate, ts, batch), entry in named
            ]
        return [
            {"key": key, "slate": raw(slate), "ts": ts, "batch": batch}
            for key, slate, ts, batch in columns
        ]


def _raw(slate: bytes | None) -> msgspec.Raw | bytes | None:
    """Returns the JSON to be written unchanged, the bytes of a bytes value, or None."""
    if slate is None:
        return None
    return slate[1:] if slate[:1] == BYTES_TAG else msgspec.Raw(slate)
