"""Columns for tests, from times alone."""

from __future__ import annotations

from millstream.engine.columns import Columns


def columns(*ts: int, stream: int = 0, key: str = "k", value: bytes = b"null") -> Columns:
    """Deliveries at these times, all else the same."""
    count = len(ts)
    return Columns([stream] * count, list(ts), [key] * count, [value] * count)


def times(events: Columns) -> list[int]:
    return list(events.ts)
