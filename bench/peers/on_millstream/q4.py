"""Nexmark's q4 with Millstream: an update holds each auction's highest valid bid, another the
average of a category. In event-time order an auction comes before its bids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from on_millstream.running import run_all

import millstream as ms

app = ms.App("q4", order="event-time")
app.source("auctions", key="auction", ts="ts", unit="ms")
app.source("bids", key="auction", ts="ts", unit="ms")


@app.update("auctions", "bids", publishes="prices")
def highest(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
    value = event.value
    if event.stream == "auctions":
        slate.update(category=value["category"], expires=value["expires"])
        return
    price, before = value["price"], slate.get("price")
    if value["ts"] <= slate["expires"] and (before is None or price > before):
        slate["price"] = price
        yield ms.emit(key=slate["category"], value={"price": price, "before": before})


@app.update("prices")
def answer(event: ms.Event, slate: dict[str, Any]) -> None:
    before = event.value["before"]
    slate["sum"] = slate.get("sum", 0) + event.value["price"] - (before or 0)
    slate["auctions"] = slate.get("auctions", 0) + (before is None)
    slate["value"] = slate["sum"] / slate["auctions"]


if __name__ == "__main__":
    run_all(app, {"auctions": "auctions", "bids": "bids"})
