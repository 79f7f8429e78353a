"""Logs whose words are skewed across the nodes, for examples/skewed_words.py.

Words follow Zipf's law, and each is likelier on one node, its home, than on the others; every tenth
is on its home alone. So a node that is missing takes some words with it, and shifts the shares of
all the others. The same for the same seed.

    python -m examples.imr.word_traffic --out /tmp/words [--records 20000] [--seed 7]

Each node gets one record more than it is asked for: the first of a next pane, which ends the last.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from examples.imr.log_files import write

START = 1_300_000_000_000
"""The time of the first record, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Words:
    """The number of records and of words, and their skew."""

    records: int
    """Records of each node."""
    seed: int = 7
    nodes: tuple[str, ...] = ("node1", "node2", "node3", "node4")
    vocabulary: int = 500
    words_a_record: int = 8
    skew: float = 8.0
    """The frequency of a word on its home node, relative to other nodes."""


def weights(given: Words, node: int) -> list[float]:
    """Returns the relative frequency of each word on a node."""
    lines = []
    for word in range(given.vocabulary):
        at_home = (7 * word + word // 10) % len(given.nodes) == node
        elsewhere = 0.0 if word % 10 == 9 else 1.0
        lines.append((given.skew if at_home else elsewhere) / (word + 1))
    return lines


def log(given: Words, node: int) -> Iterator[dict[str, Any]]:
    """The records of a node, one each millisecond."""
    random = Random(f"{given.seed}/{node}")
    names = [f"word{word}" for word in range(given.vocabulary)]
    cumulated = list(accumulate(weights(given, node)))
    for number in range(given.records):
        words = random.choices(names, cum_weights=cumulated, k=given.words_a_record)
        yield {"line": " ".join(words), "time": START + number}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write logs for examples/skewed_words.py.")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--records", type=int, default=20_000, help="of each node")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args(arguments)
    given = Words(asked.records + 1, asked.seed)
    rows = (
        (node, json.dumps(record, separators=(",", ":")), record)
        for number, node in enumerate(given.nodes)
        for record in log(given, number)
    )
    for node, count in write(asked.out, rows).items():
        print(f"{asked.out / node}: {count} records")


if __name__ == "__main__":
    main()
