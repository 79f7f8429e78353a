"""The records of ShuffleBench's shape, and the expected final states of their consumers.

A record has 1,024 bytes and a random number. A rule matches the numbers of one range; there are
1,000 rules, and a record matches 0.2 of them on average. Every rule has a consumer, to which the
whole record goes, and which counts its records and adds their numbers up. (Henning, Vogel, Leznik
and Grabner: ShuffleBench, ICPE 2024.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from bench.data import START, made_once, padded_line
from bench.peers.matching import SPACE, Rules

LENGTH = 1_024


def made(work: Path, events: int, files: int) -> Path:
    """The folder with the records."""
    return made_once(work / f"rules-{events}-{files}", _lines(events), events, files)


def consumed(source: Path) -> dict[str, list[int]]:
    """Returns the records of every consumer: their number, and the sum of their numbers."""
    rules = Rules()
    states: dict[str, list[int]] = {}
    for path in sorted(source.iterdir()):
        with path.open("rb") as file:
            for line in file:
                number = json.loads(line)["number"]
                for rule in rules.matching(number):
                    state = states.setdefault(rule, [0, 0])
                    state[0] += 1
                    state[1] += number
    return states


def _lines(events: int) -> Iterator[str]:
    random = Random(3)
    for n in range(events):
        begun = f'{{"key":"r{n}","ts":{START + n * 100},"number":{random.randrange(SPACE)}'
        yield padded_line(begun, LENGTH)
