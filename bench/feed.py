"""Feeds a folder at a steady rate: at each beat, a file of events is written elsewhere and renamed.

Every file ends with one *marker*, an event with a unique key, `m0`, `m1`, ...; its slate shows that
the whole file was processed. Events have creation times that are spread evenly over the time since
the file before. Returns the time at which each file arrived.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

KEYS = 10_000


def marker(number: int) -> str:
    return f"m{number}"


def feed(
    folder: str, every: float, phases: list[tuple[int, float]], hot: float = 0.0
) -> list[float]:
    """Write events, phase by phase: (events a second, seconds). The share `hot` has one key.

    Returns the time of day at which each file arrived.
    """
    random = Random(1)
    shares = [
        round(rate * every) for rate, seconds in phases for _ in range(round(seconds / every))
    ]
    hidden = Path(folder).with_name("feed.writing")
    started, arrivals = time.time(), list[float]()
    for number, share in enumerate(shares):
        due = started + (number + 1) * every
        time.sleep(max(0.0, due - every / 10 - time.time()))
        lines = file_lines(random, number, share, due - every, every, hot)
        hidden.write_text("".join(lines))
        time.sleep(max(0.0, due - time.time()))
        arrivals.append(time.time())
        os.replace(hidden, Path(folder) / f"part-{number:06d}.json")
    return arrivals


def file_lines(
    random: Random, number: int, share: int, start: float, every: float, hot: float = 0.0
) -> list[str]:
    """A file's `share` events, spread over the time from `start` on; the last is a marker."""
    step = every * 1_000_000 / share
    keys = [
        "hot" if random.random() < hot else f"k{random.randrange(KEYS)}" for _ in range(share - 1)
    ]
    keys.append(marker(number))
    return [
        f'{{"key":"{key}","ts":{int(start * 1_000_000 + index * step)},"n":{index}}}\n'
        for index, key in enumerate(keys)
    ]
