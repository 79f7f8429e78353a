"""Clock and windows of Nexmark's bids.

A bid waits for no later one: there is one reader. But Bytewax's clock goes on with the time of day
while no bid of a key comes, so bids have a while before they are late.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any

from bytewax.operators.windowing import EventClock
from on_bytewax.places import slots

process = int(os.environ["PEER_PROCESS"])
BEGAN = 1_700_000_000_000
ALIGNED = datetime.fromtimestamp(BEGAN / 1_000, UTC)
WINDOW, SLIDE, GAP = 10_000, 2_000, 9_999
"""Milliseconds; a session goes on after a pause of exactly the gap."""


def at(bid: Any) -> datetime:
    return datetime.fromtimestamp(bid["ts"] / 1_000, UTC)


clock = EventClock(at, timedelta(seconds=60), to_system_utc=lambda _: None)


def parsed(line: str) -> Any:
    slots[process] += 1
    return json.loads(line)


def milliseconds(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def by(field: str) -> Any:
    """Makes a function from a line to the value of a field and the event."""

    def keyed(line: str) -> tuple[str, Any]:
        event = parsed(line)
        return event[field], event

    return keyed
