"""Counts the keys with Pathway: a Python reducer over each key's rows."""

from __future__ import annotations

import pathway as pw
from on_pathway.places import process, read, run, slots


class Event(pw.Schema):
    key: str


@pw.reducers.stateful_single
def count(state: int | None, key: str) -> int:
    slots[process] += 1
    return 1 if state is None else state + 1


events = read(Event, "")
counts = events.groupby(pw.this.key).reduce(pw.this.key, value=count(pw.this.key))
run(counts, events.reduce(total=pw.reducers.count()))
