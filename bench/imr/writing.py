"""Logs that grow as time goes by. Called in a process of its own (`apart`).

Every beat each node's file gets the lines of the time since the beat before, each with its time in
microseconds in front. A file that was taken away is begun anew: that is how a server is replaced.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from bench.imr.texts import pool

BEAT = 0.05


def write(
    folder: str,
    nodes: list[str],
    rate: float,
    until: float,
    cores: list[int],
    idle: list[str],
    ahead: dict[str, float],
    words: int,
    stop: str,
) -> dict[str, int]:
    """Write `rate` lines a second, of so many words, to the log of each node until a moment, or
    until `stop` is there; how many each got.

    Nodes in `idle` have an empty log; the clocks of those in `ahead` are so many seconds ahead.
    """
    if cores:
        os.sched_setaffinity(0, cores)
    lines = {node: pool(number, len(nodes), words) for number, node in enumerate(nodes)}
    paths = {node: Path(folder) / f"{node}.log" for node in nodes}
    for path in paths.values():
        path.touch()
    sent = dict.fromkeys(nodes, 0)
    parent, owed, last = os.getppid(), 0.0, time.time()
    while time.time() < until and os.getppid() == parent and not os.path.exists(stop):
        time.sleep(BEAT)
        now = time.time()
        owed += (now - last) * rate
        count, began, last = int(owed), last, now
        owed -= count
        for node, taken in lines.items():
            if node in idle or not count:
                continue
            start = int((began + ahead.get(node, 0.0)) * 1e6)
            step = int((now - began) * 1e6) // count
            at, size = sent[node], len(taken)
            body = b"".join(
                b"%d %b" % (start + number * step, taken[(at + number) % size])
                for number in range(count)
            )
            with open(paths[node], "ab") as file:
                file.write(body)
            sent[node] += count
    return sent
