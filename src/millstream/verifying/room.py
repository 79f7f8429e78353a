"""Checks the order of slates of an update with limited room against the slates.

Each slate must have a rank with its last update and its bytes, and each rank its row in the order.
There must be no other rows, and the totals must be the sum of the ranks. Only the priorities cannot
be checked, since only the application can compute them.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.counted_nouns import counted
from millstream.stores.contract import View, after_prefix
from millstream.stores.layout import slate_head, slates_of, table_of
from millstream.stores.ranks import (
    Rank,
    Totals,
    order_of,
    pack_size,
    ranks_of,
    room_of,
    slate_size,
    totals_row,
)

Wrong = tuple[bytes, str]
"""A row, and what is wrong with it."""


def check_room(update: str, kind: str, view: View) -> Iterator[Wrong]:
    """Yields the errors in an update's order of slates in one shard; may raise struct.error."""
    stored = view.get(totals_row(update))
    if stored is None:
        room = room_of(update)
        if next(view.scan(room, after_prefix(room)), None) is not None:
            yield totals_row(update), "are missing, and there is an order of slates"
        return
    ranks = dict(_under(view, ranks_of(update)))
    must: dict[bytes, bytes] = {}
    slates = size = 0
    prefix, order = slates_of(update), order_of(update)
    for key, row in _under(view, prefix):
        packed = ranks.pop(key, None)
        if packed is None:
            yield ranks_of(update) + key, "is missing, and its slate is there"
            continue
        rank = Rank.unpack(packed)
        entries = _entries_size(view, update, key) if kind == "table" else 0
        true = Rank(rank.priority, slate_head(row)[1], slate_size(prefix, key, row), entries)
        if rank != true:
            yield ranks_of(update) + key, f"says {_words(rank)}, but its slate has {_words(true)}"
        slates, size = slates + 1, size + rank.size
        must[rank.place(order, key)] = pack_size(rank.size)
    for key in ranks:
        yield ranks_of(update) + key, "is there, and its slate is not"
    for place, value in _under(view, order):
        if must.pop(order + place, None) != value:
            yield order + place, "is in the order, and the slate is not ranked so"
    for row in must:
        yield row, "is not in the order"
    totals = Totals.unpack(stored)
    if (totals.slates, totals.size) != (slates, size):
        recorded = counted(totals.slates, "slate")
        wrong = f"say {recorded} of {totals.size:,} bytes, and there are {slates:,} "
        yield totals_row(update), wrong + f"of {size:,}"


def _under(view: View, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The rows with a prefix; the prefix is cut off."""
    for row, value in view.scan(prefix, after_prefix(prefix)):
        yield row[len(prefix) :], value


def _entries_size(view: View, update: str, key: bytes) -> int:
    table = table_of(update, key.decode())
    return sum(len(row) + len(value) for row, value in view.scan(table, after_prefix(table)))


def _words(rank: Rank) -> str:
    return f"last update {rank.last} and {rank.size:,} bytes"
