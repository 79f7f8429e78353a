"""Nexmark's q5 with Millstream: a sliding count of each auction; an update keeps the highest of a
window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from on_millstream.running import run_all

import millstream as ms

app = ms.App("q5", order="event-time")
app.source("bids", key="auction", ts="ts", unit="ms")
app.add(ms.elements.Sliding(slot="2s", slots=5), keys="bids", name="sliding", publishes="counts")


@app.map("counts", publishes="windows")
def by_window(event: ms.Event) -> Iterator[Any]:
    if event.value["count"]:
        yield ms.emit(key=str(event.value["from"] // 1_000))


@app.update("windows")
def answer(event: ms.Event, slate: dict[str, Any]) -> None:
    auction, count = event.value["key"], event.value["count"]
    most, auctions = slate.get("value", (0, []))
    if count > most:
        slate["value"] = [count, [auction]]
    elif count == most:
        slate["value"] = [most, sorted([*auctions, auction])]


if __name__ == "__main__":
    run_all(app, {"bids": "bids"})
