"""Room: limits the slates that an update keeps, and evicts the least important (S4, section II.B).

`keep` and `memory` are for the whole update. Each shard has its share, so that no task needs to
know another task's slates. At the end of a batch, in each shard, the least important slates are
evicted until the rest fits the share: those of the lowest priority, among these the ones that were
updated longest ago, among these the first by key. The most important slate always stays, even if it
alone takes more than the share of the memory.

Separate rows keep the slates of such an update in order (`stores.ranks`), so that the least
important are found at once, however many there are. These rows are updated with the changes of a
batch, and committed with it. If they are missing, or were made by another priority, the next batch
rebuilds them from all slates of the shard.

Nothing here depends on a clock or on the order of arrival: a retried task evicts the same slates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from millstream.engine.cells.priority import Priorities, mark_of
from millstream.model.function import Update
from millstream.model.slate import Entries, Table, overlay
from millstream.stores.contract import View, after_prefix
from millstream.stores.layout import slate_head, slates_of, table_of
from millstream.stores.ranks import (
    Rank,
    Totals,
    order_of,
    pack_size,
    place_key,
    ranks_of,
    room_of,
    slate_size,
    totals_row,
    unpack_size,
)

Rows = dict[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Share:
    """The room of an update in one shard; None: no limit."""

    slates: int | None
    size: int | None
    """The total size in bytes, as stored."""
    mark: bytes
    """Identifies how the slates are ordered (`mark_of`)."""

    def fits(self, slates: int, size: int) -> bool:
        """True if this many slates of this total size may stay. One always may."""
        if slates <= 1:
            return True
        return (self.slates is None or slates <= self.slates) and (
            self.size is None or size <= self.size
        )


def share_of(update: Update, shards: int) -> Share | None:
    """Returns each shard's share of the room; None if the update's room is not limited."""
    if update.keep is None and update.memory is None:
        return None
    keep, memory = update.keep, update.memory
    return Share(
        None if keep is None else -(-keep // shards),
        None if memory is None else -(-memory // shards),
        mark_of(update),
    )


class Room:
    """The slates of one update in one shard, in order, for one batch."""

    def __init__(
        self,
        update: Update,
        name: str,
        share: Share,
        view: View,
        entries: Callable[[str], Entries],
    ) -> None:
        """The update's rows are stored under `name`.

        `entries` returns a table's entries as they are after the batch.
        """
        self._name = name
        self._view = view
        self._share = share
        self.priorities = Priorities(update, entries)
        self._tables = update.slate is Table
        self._slates, self._order, self._ranks = slates_of(name), order_of(name), ranks_of(name)
        self._rows: Rows = {}
        stored = view.get(totals_row(name))
        self._before = None if stored is None else Totals.unpack(stored)
        self._totals = self._before or Totals(share.mark)
        self._anew = self._totals.mark != share.mark or stored is None

    def follow(
        self,
        slates: Mapping[str, bytes | None],
        tables: Mapping[str, Mapping[str, bytes | None]],
    ) -> None:
        """Updates the order with the batch's changes: rows of slates, and entries by table."""
        if self._anew:
            self._make_anew(slates)
        keys = [key.encode() for key in slates]
        ranks: list[bytes | None] = [None] * len(keys)
        if not self._anew:
            ranks = self._view.get_many([self._ranks + key for key in keys])
        for (key, row), coded, stored in zip(slates.items(), keys, ranks, strict=True):
            old = None if stored is None else Rank.unpack(stored)
            new = None
            if row is not None:
                entries = self._entries_size(key, old, tables.get(key, {})) if self._tables else 0
                new = self._rank(key, coded, row, entries)
            self._move(coded, old, new)

    def take_out(self) -> list[str]:
        """Takes slates out of the order until the rest fits; returns their keys, least first."""
        going: list[str] = []
        _, slates, size = self._totals
        if self._share.fits(slates, size):
            return going
        order = self._order
        changed = sorted((row, value) for row, value in self._rows.items() if row.startswith(order))
        for row, value in overlay(changed, self._view.scan(order, after_prefix(order))):
            slates, size = slates - 1, size - unpack_size(value)
            key = place_key(order, row)
            self._rows[row] = self._rows[self._ranks + key] = None
            going.append(key.decode())
            if self._share.fits(slates, size):
                break
        self._totals = Totals(self._share.mark, slates, size)
        return going

    def changes(self) -> Rows:
        """Returns the rows to commit."""
        if self._totals != self._before:
            self._rows[totals_row(self._name)] = self._totals.pack()
        return self._rows

    def _make_anew(self, changed: Mapping[str, bytes | None]) -> None:
        """Rebuilds the order of all slates except those that the batch has changed."""
        room = room_of(self._name)
        self._rows.update((row, None) for row, _ in self._view.scan(room, after_prefix(room)))
        self._totals = Totals(self._share.mark)
        prefix = self._slates
        for stored, row in self._view.scan(prefix, after_prefix(prefix)):
            coded = stored[len(prefix) :]
            key = coded.decode()
            if key not in changed:
                entries = self._entries_size(key, None, {}) if self._tables else 0
                self._move(coded, None, self._rank(key, coded, row, entries))

    def _rank(self, key: str, coded: bytes, row: bytes, entries: int) -> Rank:
        size = slate_size(self._slates, coded, row)
        return Rank(self.priorities.of(key, row), slate_head(row)[1], size, entries)

    def _entries_size(self, key: str, old: Rank | None, changed: Mapping[str, bytes | None]) -> int:
        """Returns the size of a table's entries after the batch."""
        table, size = table_of(self._name, key), 0
        if old is not None:
            size = old.entries
        elif self._anew:
            rows = self._view.scan(table, after_prefix(table))
            size = sum(len(row) + len(value) for row, value in rows)
        entries = [table + entry.encode() for entry in changed]
        stored = self._view.get_many(entries)
        for row, before, after in zip(entries, stored, changed.values(), strict=True):
            size += 0 if after is None else len(row) + len(after)
            size -= 0 if before is None else len(row) + len(before)
        return size

    def _move(self, key: bytes, old: Rank | None, new: Rank | None) -> None:
        """Moves a slate from one place in the order to another."""
        if old == new:
            return
        mark, slates, size = self._totals
        if old is not None:
            slates, size = slates - 1, size - old.size
            self._rows[old.place(self._order, key)] = None
            self._rows[self._ranks + key] = None
        if new is not None:
            slates, size = slates + 1, size + new.size
            self._rows[new.place(self._order, key)] = pack_size(new.size)
            self._rows[self._ranks + key] = new.pack()
        self._totals = Totals(mark, slates, size)


def abandoned(view: View, function: str) -> Rows:
    """Returns rows that delete an order that is no longer maintained; empty if there is none.

    Otherwise an update whose limits were removed would leave an order behind, which would be wrong
    when the limits come back.
    """
    if view.get(totals_row(function)) is None:
        return {}
    prefix = room_of(function)
    return {row: None for row, _ in view.scan(prefix, after_prefix(prefix))}
