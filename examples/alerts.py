r"""Tell someone outside: a user who checks in implausibly often is reported, once an hour.

`notify` is an action: what `watch` emits to it is carried out after its batch is committed, and
never for a try that was not. Where, is a setting: standard error here, a webhook in production.

    python examples/generate.py retail --events 5000 --out /tmp/checkins
    millstream run examples/alerts.py --source checkins=json:/tmp/checkins \
        --action notify=stderr --available-now
    millstream actions --store .millstream/alerts
"""

from collections.abc import Iterator
from dataclasses import dataclass

import millstream as ms

HOUR = 3_600_000_000
TOO_MANY = 20
"""Check-ins of one user in an hour that are reported."""

app = ms.App("alerts", order="event-time")
app.source("checkins", key="user", ts="time", lateness="10s")
app.action("notify")


@dataclass
class Hour:
    """A user's check-ins in an hour of the clock."""

    hour: int = -1
    count: int = 0


@app.update("checkins", publishes="notify", slate=Hour, ttl="1d")
def watch(event: ms.Event, slate: Hour) -> Iterator[object]:
    hour = event.ts // HOUR
    if hour != slate.hour:
        slate.hour, slate.count = hour, 0
    slate.count += 1
    if slate.count == TOO_MANY:
        yield ms.emit("notify", value={"checkins": slate.count, "venue": event.value["venue"]})
