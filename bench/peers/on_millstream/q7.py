"""Nexmark's q7 with Millstream: an aggregate, the highest price of each window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from on_millstream.running import run_all

import millstream as ms
from millstream import algebra

WINDOW = 10_000
app = ms.App("q7")
app.source("bids", key="auction", ts="ts", unit="ms")


@app.map("bids", publishes="windows")
def by_window(event: ms.Event) -> Iterator[Any]:
    at = event.value["ts"]
    yield ms.emit(key=str(at - at % WINDOW))


app.aggregate("windows", algebra=algebra.max("price"), name="answer")

if __name__ == "__main__":
    run_all(app, {"bids": "bids"})
