"""The progress of an application: numbers in a file that another process reads while it runs.

A slot for each partition, with the offset after the last record that was processed. What another
process processes again after a rebalance does not count twice.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

PARTITIONS = 6


class Progress:
    """The numbers of one process."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_bytes(bytes(8 * PARTITIONS))
        with open(path, "r+b") as file:
            self.slots = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")


def processed(paths: list[Path]) -> int:
    """Records that were processed by all processes together."""
    slots = [0] * PARTITIONS
    for path in paths:
        data = path.read_bytes() if path.exists() else b""
        for number, value in enumerate(memoryview(data).cast("Q")):
            slots[number] = max(slots[number], value)
    return sum(slots)
