"""An application whose panes come from agents: words counted by time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import millstream as ms

NODES = ["web1", "web2"]


def words(record: Any) -> Iterator[tuple[str, int]]:
    for word in record["line"].split():
        yield word, 1


def add(a: int, b: int) -> int:
    return a + b


app = ms.App("words")
app.add(
    ms.windows.Job(map=words, combine=add, range="10s", pane="1s"),
    name="counts",
    nodes=NODES,
    logs=ms.windows.Logs(ts="time", unit="s"),
)
