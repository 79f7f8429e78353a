"""Logs of the data nodes of an HDFS cluster, one of which is slow, for examples/hdfs_writes.py.

A client writes a block to three nodes, which pass it on. Each of them logs when it begins to
receive the block and when it has received it, in the form of Hadoop 0.18, among lines about other
things. The time that a write takes depends on the hour, since jobs come and go; on the faulty node
it is 1.6 times as long. (On a real cluster a slow node would also hold up those before it.)

    python -m examples.imr.hdfs_traffic --out /tmp/hdfs [--hours 48] [--blocks 60] [--seed 7]
    python -m examples.imr.hdfs_traffic --out /tmp/hdfs --log HDFS.log.gz

The second spreads the lines of a real log over the nodes. The first and the last line of each
made-up log are about other things: all nodes begin with the first window, and it comes to its end.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp, sin
from pathlib import Path
from random import Random

from examples.hdfs_writes import LINE, NODES
from examples.imr.log_files import Row, lines_of, spread, write

HOUR = 3_600
START = 14_192 * 24 * HOUR
"""The first window begins on 2008-11-09, in seconds, as all times here; it is 48 hours long."""
XCEIVER, RESPONDER = "dfs.DataNode$DataXceiver", "dfs.DataNode$PacketResponder"
SIZE = 64 << 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """The number of blocks, the duration, and the slow node."""

    blocks: int
    """Blocks of the whole cluster in an hour."""
    seed: int = 7
    hours: int = 48
    nodes: tuple[str, ...] = NODES
    faulty: int | None = 2
    """The number of the slow node."""
    slower: float = 1.6
    copies: int = 3


@dataclass(frozen=True, slots=True)
class Write:
    """A block that one node has got."""

    node: int
    block: str
    source: str
    begun: int
    seconds: int


def address(node: int) -> str:
    """The address of a data node."""
    return f"10.251.0.{node + 1}"


def writes(given: Cluster) -> Iterator[Write]:
    """All writes, by the hour in which they began."""
    random = Random(given.seed)
    for hour in range(given.hours):
        # The hour's jobs make all writes of it quicker or slower, on all nodes alike.
        pace = 8 * exp(0.5 * sin(hour / 3.8) + 0.3 * random.gauss(0, 1))
        for _ in range(given.blocks):
            block = f"blk_{random.randrange(-(1 << 63), 1 << 63)}"
            at = START + hour * HOUR + random.randrange(HOUR)
            source = f"10.250.0.{random.randint(1, 200)}"
            for node in random.sample(range(len(given.nodes)), min(given.copies, len(given.nodes))):
                slower = given.slower if node == given.faulty else 1.0
                seconds = round(slower * pace * exp(0.6 * random.gauss(0, 1)))
                yield Write(node, block, source, at, max(1, seconds))
                source = address(node)


def lines(given: Cluster) -> Iterator[tuple[int, int, str]]:
    """When, at which node, and what it logs; in the order of their times."""
    lines = []
    for number, block_write in enumerate(writes(given)):
        thread, here = 100 + number % 5_000, address(block_write.node)
        over = block_write.begun + block_write.seconds
        lines.append(
            (
                block_write.begun,
                block_write.node,
                f"{thread} INFO {XCEIVER}: Receiving block {block_write.block} "
                f"src: /{block_write.source}:{40_000 + thread} dest: /{here}:50010",
            )
        )
        for text in (
            f"Received block {block_write.block} of size {SIZE} from /{block_write.source}",
            f"PacketResponder 1 for block {block_write.block} terminating",
        ):
            lines.append((over, block_write.node, f"{thread + 1} INFO {RESPONDER}: {text}"))
        if number % 10 == 0:
            served = f"{here}:50010 Served block {block_write.block} to /10.250.0.7"
            lines.append((over + 30, block_write.node, f"{thread} INFO {XCEIVER}: {served}"))
    last = START + (-(-given.hours // 48) * 48 + 4) * HOUR
    for node in range(len(given.nodes)):
        for at in (START, last):
            lines.append(
                (at, node, "1 INFO dfs.DataBlockScanner: Verification succeeded for blk_0")
            )
    return iter(sorted(lines, key=lambda line: line[:2]))


def rows(given: Cluster) -> Iterator[Row]:
    """The logs of all nodes."""
    for at, node, text in lines(given):
        line = f"{datetime.fromtimestamp(at, UTC):%y%m%d %H%M%S} {text}"
        yield given.nodes[node], line, record_of(line)


def record_of(line: str) -> dict[str, str]:
    """Returns the record that an agent makes of a line: its time, its writer and its text."""
    match = LINE.match(line)
    if match is None:
        raise ValueError(f"a line must be as HDFS writes it; got {line!r}")
    return match.groupdict()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write logs for examples/hdfs_writes.py.")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--log", type=Path, help="a real HDFS log to spread over the nodes")
    parser.add_argument("--blocks", type=int, default=60, help="of the cluster in an hour")
    parser.add_argument("--hours", type=int, default=48)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args(arguments)
    written: Iterator[Row] = rows(Cluster(asked.blocks, asked.seed, asked.hours))
    if asked.log is not None:
        given = spread(lines_of(asked.log), NODES, asked.seed)
        written = ((node, line, record_of(line)) for node, line in given)
    for node, count in write(asked.out, written).items():
        print(f"{asked.out / node}: {count} lines")


if __name__ == "__main__":
    main()
