"""Builds the changes of slates that a cell publishes from the rows that it is about to commit."""

from __future__ import annotations

from collections.abc import Mapping

from millstream.slate_changes import SlateChanges
from millstream.stores.layout import PLAIN, SLATE_HEAD, slate_head, unpack_slate


def slate_changes(
    slates: Mapping[str, bytes | None], gone: Mapping[str, int], batch: int
) -> SlateChanges:
    """Returns the changes of slates by key.

    `slates` has their rows, or None for a slate that was deleted; `gone` has the ts of that one.
    """
    data: list[bytes | None] = []
    times: list[int] = []
    for key, row in slates.items():
        if row is None:
            data.append(None)
            times.append(gone[key])
            continue
        kind, last = slate_head(row)
        data.append(row[SLATE_HEAD:] if kind == PLAIN else unpack_slate(row).data)
        times.append(last)
    count = len(data)
    return SlateChanges(list(slates), [""] * count, data, times, [batch] * count)


def entry_changes(
    tables: Mapping[str, Mapping[str, bytes | None]],
    slates: Mapping[str, bytes | None],
    gone: Mapping[str, int],
    batch: int,
) -> SlateChanges:
    """Returns the changes of table entries, by key and entry; `slates` and `gone` have the ts."""
    changes = SlateChanges()
    for key, entries in tables.items():
        if not entries:
            continue  # created and forgotten in this batch
        row = slates.get(key)
        last = gone[key] if row is None else slate_head(row)[1]
        for entry, value in entries.items():
            changes.add(key, entry, value, last, batch)
    return changes
