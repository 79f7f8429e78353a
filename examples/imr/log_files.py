"""Made-up and real logs as files: text for agents, JSON for sources that are read by Spark.

DIR/NODE.log            the lines, as a server writes them
DIR/NODE/1.jsonl        the same lines as records: what an agent makes of them
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

Row = tuple[str, str, dict[str, Any]]
"""A node, a line of its log, and the record that the line is."""


def write(out: Path, rows: Iterable[Row]) -> dict[str, int]:
    """Write the logs of all nodes; how many lines each has got."""
    counts: dict[str, int] = {}
    with ExitStack() as files:
        text, records = {}, {}
        for node, line, record in rows:
            if node not in counts:
                (out / node).mkdir(parents=True, exist_ok=True)
                text[node] = files.enter_context(open(out / f"{node}.log", "w"))
                records[node] = files.enter_context(open(out / node / "1.jsonl", "w"))
            counts[node] = counts.get(node, 0) + 1
            text[node].write(f"{line}\n")
            records[node].write(json.dumps(record, separators=(",", ":")) + "\n")
    return counts


def lines_of(log: Path) -> Iterator[str]:
    """The lines of a real log, also of a compressed one."""
    opened = gzip.open if log.suffix == ".gz" else open
    with opened(log, "rt", encoding="utf-8", errors="replace") as file:
        for line in file:
            yield line.rstrip("\n")


def spread(lines: Iterable[str], nodes: tuple[str, ...], seed: int) -> Iterator[tuple[str, str]]:
    """Give each line of one real log to one of the nodes, as a load balancer would."""
    random = Random(seed)
    for line in lines:
        yield random.choice(nodes), line
