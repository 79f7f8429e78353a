"""Puts events into the order in which a function is fed: by key, each key in content order."""

from __future__ import annotations

from collections import defaultdict

from millstream.codec import canonical
from millstream.engine.columns import Columns


def content_order(events: Columns, indices: list[int], streams: tuple[str, ...]) -> list[int]:
    """Sorts a key's events in content order: by time, stream, and the value's canonical bytes."""
    times = events.ts
    if len(indices) == 2:  # the most common case, and worth a shortcut
        first, second = indices
        if times[first] != times[second]:
            return indices if times[first] < times[second] else [second, first]
    before = times[indices[0]]
    for index in indices[1:]:
        now = times[index]
        if now <= before:
            break
        before = now
    else:
        return indices  # already in order, no two at the same time
    ordered = sorted(indices, key=times.__getitem__)
    start, count = 0, len(ordered)
    while start < count:
        stop = start + 1
        while stop < count and times[ordered[stop]] == times[ordered[start]]:
            stop += 1
        if stop - start > 1:
            ordered[start:stop] = sorted(
                ordered[start:stop],
                key=lambda i: (streams[events.streams[i]], canonical(events.values[i])),
            )
        start = stop
    return ordered


def by_key(events: Columns) -> dict[str, list[int]]:
    """Returns the indices of each key's events, in the order in which they came."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for index, key in enumerate(events.keys):
        groups[key].append(index)
    return groups
