"""The application of the live benchmark: counts the events of each key."""

from __future__ import annotations

import millstream as ms

arrival = ms.App("live")
event_time = ms.App("live", order="event-time")


def count(event: ms.Event, slate: dict[str, int]) -> None:
    slate["count"] = slate.get("count", 0) + 1


for app in (arrival, event_time):
    app.source("events", key="key", ts="ts", unit="us")
    app.update("events")(count)
