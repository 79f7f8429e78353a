"""Counts the keys with Millstream: an update for each event, its slates durable every batch."""

from __future__ import annotations

from on_millstream.running import run_all

import millstream as ms

app = ms.App("count")
app.source("events", key="key", ts="ts", unit="us")


@app.update("events")
def answer(event: ms.Event, slate: dict[str, int]) -> None:
    slate["value"] = slate.get("value", 0) + 1


if __name__ == "__main__":
    run_all(app, {"events": ""})
