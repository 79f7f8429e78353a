"""Check-ins per retailer, live (Muppet, examples 1 and 4).

A map recognises the retailer in the name of a venue; an update counts. The output of the
application is the slates of `count`, one a retailer, readable while they change, and a stream that
tells of every hundredth check-in. It shows a small whole application: a source, a map, an update, a
dataclass as the slate, a time to live, an output.

    python examples/generate.py retail --events 10000 --out /tmp/checkins
    millstream run examples/retail.py --source checkins=json:/tmp/checkins --available-now
    millstream slates get count Walmart

`retail.toml` is the same application as a file that names these functions.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import millstream as ms

RETAILERS = {
    "Walmart": ("walmart", "wal-mart"),
    "Best Buy": ("best buy", "bestbuy"),
    "JCPenney": ("jcpenney", "jc penney", "j.c. penney"),
    "Target": ("target",),
    "Macy's": ("macy's", "macys"),
    "Sam's Club": ("sam's club", "sams club"),
}
"""Each retailer, and how people write it."""

app = ms.App("retail")
app.source("checkins", key="user", ts="time")
app.output("milestones")


@app.map("checkins", publishes="retailer_checkins")
def recognise(event: ms.Event) -> Iterator[object]:
    """Emits an event keyed by the first retailer whose spelling is in the venue's name."""
    venue = event.value["venue"].lower()
    for retailer, spellings in RETAILERS.items():
        if any(spelling in venue for spelling in spellings):
            yield ms.emit(key=retailer)
            return


@dataclass
class Count:
    """The check-ins of a retailer."""

    count: int = 0


@app.update("retailer_checkins", publishes="milestones", slate=Count, ttl="90d")
def count(event: ms.Event, slate: Count) -> Iterator[object]:
    slate.count += 1
    if slate.count % 100 == 0:
        yield ms.emit(value={"count": slate.count})
