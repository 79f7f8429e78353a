"""An application for trees of agents that really run: words by each 400 records of eight nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import millstream as ms

NODES = [f"n{number}" for number in range(8)]


def words(record: Any) -> Iterator[tuple[str, int]]:
    for word in record["line"].split():
        yield word, 1


def add(a: int, b: int) -> int:
    return a + b


app = ms.App("live-tree")
app.add(
    ms.windows.Job(map=words, combine=add, by="records", range=400, pane=100),
    name="counts",
    nodes=NODES,
    logs=ms.windows.Logs(format="text"),
)
