"""Feeds a folder at a steady rate: a file of events, written elsewhere and renamed in, on the beat.

Every file ends with one *marker*, an event with a key of its own, `m0`, `m1`, ...; its slate tells
that the whole file has been through. Events carry the time they were created, evenly over the time
since the file before. Gives when each file arrived.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

KEYS = 10_000


def marker(number: int) -> str:
    return f"m{number}"


def feed(folder: str, rate: int, every: float, seconds: float) -> list[float]:
    """Write `rate` events a second for so many seconds; the time of day when each file arrived."""
    random, share = Random(1), round(rate * every)
    hidden = Path(folder).with_name("feed.writing")
    started, arrivals = time.time(), list[float]()
    for number in range(round(seconds / every)):
        due = started + (number + 1) * every
        time.sleep(max(0.0, due - every / 10 - time.time()))
        lines = file_lines(random, number, share, due - every, every)
        hidden.write_text("".join(lines))
        time.sleep(max(0.0, due - time.time()))
        arrivals.append(time.time())
        os.replace(hidden, Path(folder) / f"part-{number:06d}.json")
    return arrivals


def file_lines(random: Random, number: int, share: int, start: float, every: float) -> list[str]:
    """A file's events: `share` of them, spread over the time from `start` on, the last a marker."""
    step = every * 1_000_000 / share
    keys = [f"k{random.randrange(KEYS)}" for _ in range(share - 1)] + [marker(number)]
    return [
        f'{{"key":"{key}","ts":{int(start * 1_000_000 + index * step)},"n":{index}}}\n'
        for index, key in enumerate(keys)
    ]
