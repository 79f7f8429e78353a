"""Puts events into the order in which a function is fed: by key, each key in content order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from millstream.codec import canonical, decode_values
from millstream.columnar.arrow_arrays import numbers_of
from millstream.engine.columns import Columns
from millstream.model.event import Event

PIECE = 1_024
"""About as many events are fed at a time: so few that their values stay in the cache."""


class KeyPiece(NamedTuple):
    """Some keys, in order, with their events."""

    keys: list[str]
    counts: list[int]
    """The number of each key's events."""
    first: int
    """The number of the first key among all."""
    events: Columns
    """Key by key, each in content order."""

    def decoded(self) -> list[Any]:
        """Returns the values of the events, new ones at each call: functions may change them."""
        events, laid = self.events, self.events.laid
        if laid is not None and laid.form.whole:
            return laid.decoded(events.ts, self._each_key())
        return decode_values(events.values)

    def made(self, values: list[Any], streams: tuple[str, ...]) -> list[Event]:
        """Makes the events, given their decoded values."""
        return list(self.events.made(values, streams, self._each_key()))

    def _each_key(self) -> Iterator[str]:
        """Yields the key of each event."""
        return chain.from_iterable(map(repeat, self.keys, self.counts))


class KeyGroups:
    """Events by key. The keys are in order, which is the order of their rows in the store too."""

    def __init__(self, keys: list[str], counts: list[int], events: Columns) -> None:
        self.keys = keys
        self.counts = counts
        self.events = events

    def with_keys(self, more: set[str]) -> KeyGroups:
        """Returns the groups with more keys, which have no events unless they are among these."""
        counts = dict.fromkeys(more, 0) | dict(zip(self.keys, self.counts, strict=True))
        keys = sorted(counts)
        return KeyGroups(keys, [counts[key] for key in keys], self.events)

    def pieces(self) -> Iterator[KeyPiece]:
        """Yields the groups some keys at a time; all of a key's events are in one piece."""
        keys, counts = self.keys, self.counts
        if keys and len(keys) <= PIECE and len(self.events) <= PIECE:
            yield KeyPiece(keys, counts, 0, self.events)
            return
        first = start = stop = 0
        for last, count in enumerate(counts, 1):
            stop += count
            if stop - start >= PIECE or last - first >= PIECE or last == len(keys):
                events = self.events.slice(start, stop)
                yield KeyPiece(keys[first:last], counts[first:last], first, events)
                first, start = last, stop


def by_key(events: Columns, streams: tuple[str, ...]) -> KeyGroups:
    """Groups events by key, each key's in content order."""
    if events.few:
        return _few_by_key(events, streams)
    encoded = events.key_array.dictionary_encode()
    sort = pc.sort_indices(encoded.dictionary)
    few = len(sort) <= 1 << 16  # NumPy then sorts by the numbers in linear time
    rank = np.empty(len(sort), np.uint16 if few else np.int64)
    rank[numbers_of(sort)] = np.arange(len(sort))
    numbers = rank[numbers_of(encoded.indices)]
    counts = np.bincount(numbers, minlength=len(sort)).tolist()
    keys: list[str] = encoded.dictionary.take(sort).to_pylist()
    return KeyGroups(keys, counts, events.pick(content_order(events, streams, numbers)))


def _few_by_key(events: Columns, streams: tuple[str, ...]) -> KeyGroups:
    """Does the same with lists, which takes less time for few events."""
    places: list[tuple[Any, ...]] = [*zip(events.keys, events.ts, strict=True)]
    if len({*places}) < len(places):  # some have the same key and time
        names = map(streams.__getitem__, events.streams)
        places = [*zip(events.keys, events.ts, names, map(canonical, events.values), strict=True)]
    order = sorted(range(len(places)), key=places.__getitem__)
    counts: dict[str, int] = {}
    ordered = events.pick(order)
    for key in ordered.keys:
        counts[key] = counts.get(key, 0) + 1
    return KeyGroups([*counts], [*counts.values()], ordered)


def content_order(
    events: Columns, streams: tuple[str, ...], numbers: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Returns the indices of events in content order: by time, stream, and the value's canonical
    bytes. Equal events stay as they are. `numbers` go before all of these."""
    if numbers is None:
        numbers = np.zeros(len(events), np.uint16)
    order = np.argsort(numbers, kind="stable")
    times, numbers_in_order = events.times[order], numbers[order]
    same = numbers_in_order[1:] == numbers_in_order[:-1]
    if bool((same & (times[1:] < times[:-1])).any()):  # they have not come in order of time
        order = np.lexsort((events.times, numbers))
        times = events.times[order]
    tied = np.flatnonzero(same & (times[1:] == times[:-1]))
    if len(tied):
        _order_ties(order, tied, events, streams)
    return order


def _order_ties(
    order: NDArray[Any], tied: NDArray[Any], events: Columns, streams: tuple[str, ...]
) -> None:
    """Orders the runs of events of the same time; `tied` are the places before each second one."""
    indices = order[np.union1d(tied, tied + 1)]
    numbers = events.stream_array[indices].tolist()
    values = events.pick(indices).values
    content = {
        index: (streams[number], canonical(value))
        for index, number, value in zip(indices.tolist(), numbers, values, strict=True)
    }
    for run in np.split(tied, np.flatnonzero(np.diff(tied) > 1) + 1):
        start, stop = int(run[0]), int(run[-1]) + 2
        order[start:stop] = sorted(order[start:stop].tolist(), key=content.__getitem__)
