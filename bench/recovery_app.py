"""The counter of `on_millstream`, for `millstream run`."""

from __future__ import annotations

import millstream as ms

app = ms.App("bench")
app.source("events", key="key", ts="ts", unit="us")


@app.update("events")
def count(event: ms.Event, slate: dict[str, int]) -> None:
    slate["count"] = slate.get("count", 0) + 1
