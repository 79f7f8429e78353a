"""A store with the feeds of a small town, up to now: some pairs are on push, some on pull."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from feeds.stored_feeds import FeedStore, Record

HOUR = 3_600_000_000
SPAN = 18 * HOUR
RATIO = 1.3

READERS = {"ana": 30, "ben": 3, "Zofia Kowalska": 60, "joão": 1}
"""The number of looks of each reader."""
WRITERS: dict[str, tuple[int, tuple[str, ...]]] = {
    "Radio Lumen": (
        12,
        (
            "News at noon: the council votes on the tram line tonight.",
            "Traffic: the harbour bridge is closed to lorries until six.",
            "Weather: fog until ten, then sun, 14 degrees by the afternoon.",
            "Correction: the market opens at eight on Saturday, not at nine.",
        ),
    ),
    "harbour weather": (
        40,
        (
            "Wind SW 4, gusts 6, visibility good.",
            "Wind W 5, sea slight, 12.4 °C.",
            "Wind W 4, rain within the hour.",
        ),
    ),
    "Marta's kitchen": (
        2,
        (
            "Looking for someone who can bake on Sundays; write to me here.",
            "Cardamom buns are back. The first tray is out at seven, the second at ten, and there "
            "will be no third.",
        ),
    ),
    "Tram line 7": (
        14,
        (
            "Delays of ten minutes towards the station, a car is on the track.",
            "Service is back to normal.",
            "Replacement buses between Market and Hospital from 22:00.",
        ),
    ),
    "library": (1, ("Forty novels in translation are new on the shelf.",)),
}
"""The posts of each writer."""


def follows(now: int) -> Iterator[Record]:
    """Everybody follows everybody who writes, but ben, who follows no weather."""
    number = 0
    for consumer in READERS:
        for producer in WRITERS:
            if (consumer, producer) != ("ben", "harbour weather"):
                number += 1
                pair = {"consumer": consumer, "producer": producer}
                yield {"kind": "follow", "at": now - SPAN - HOUR + number, **pair}


def views(now: int) -> Iterator[Record]:
    """All that was looked at since, evenly."""
    for number, (consumer, times) in enumerate(READERS.items()):
        for one in range(times):
            at = now - SPAN + one * SPAN // times + number
            yield {"kind": "view", "at": at, "consumer": consumer, "count": 1, "ratio": RATIO}


def posts(now: int) -> Iterator[Record]:
    """All that was posted since, evenly."""
    for number, (producer, (times, texts)) in enumerate(WRITERS.items()):
        for one in range(times):
            at = now - SPAN + (2 * one + 1) * SPAN // (2 * times) + 1_000 * number
            value = {"text": texts[one % len(texts)]}
            post = {"producer": producer, "id": f"{number}-{one}", "value": value}
            yield {"kind": "post", "at": at, "ratio": RATIO, **post}


def town(path: Path, **options: Any) -> FeedStore:
    """A town whose feeds are in use."""
    made = FeedStore(path, **{"coherency": "per-producer", **options})
    now = time.time_ns() // 1_000
    made.append(*follows(now))
    made.batch()
    past = sorted([*views(now), *posts(now)], key=lambda record: record["at"])
    for begin in range(0, len(past), 20):
        made.append(*past[begin : begin + 20])
        made.batch()
    made.settle()
    return made
