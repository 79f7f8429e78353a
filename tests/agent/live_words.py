"""An application for agents that really run: words by each 400 records of three nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import millstream as ms


def words(record: Any) -> Iterator[tuple[str, int]]:
    for word in record["line"].split():
        yield word, 1


def add(a: int, b: int) -> int:
    return a + b


app = ms.App("live-words")
app.add(
    ms.windows.Job(map=words, combine=add, by="records", range=400, pane=100),
    name="counts",
    nodes=["top", "a", "b"],
    logs=ms.windows.Logs(format="text"),
)
