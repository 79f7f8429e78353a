"""Counts the keys with Pathway's own count; no Python runs for an event."""

from __future__ import annotations

import pathway as pw
from on_pathway.places import read, run


class Event(pw.Schema):
    key: str


events = read(Event, "")
counts = events.groupby(pw.this.key).reduce(pw.this.key, value=pw.reducers.count())
run(counts, events.reduce(total=pw.reducers.count()))
