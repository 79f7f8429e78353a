"""Check-ins per retailer without an update function (Muppet, example 6, done by the system).

The paper's developer splits the key of a hot retailer by hand, counts the parts, and adds them up
in a second update. Here the count is an aggregate: check-ins are counted where they are read, and
one number a retailer goes to its shard, however many there were.

    python examples/generate.py retail --events 10000 --out /tmp/checkins
    millstream run examples/retail_counts.py --source checkins=json:/tmp/checkins --available-now
    millstream slates scan hits
"""

from collections.abc import Iterator

import millstream as ms

RETAILERS = ("Walmart", "Best Buy", "JCPenney", "Target", "Macy's", "Sam's Club")

app = ms.App("retail_counts")
app.source("checkins", key="user", ts="time")
app.aggregate("retailer_checkins", algebra=ms.algebra.count(), name="hits")
app.aggregate("retailer_checkins", algebra=ms.algebra.distinct("user"), name="visitors")


@app.map("checkins", publishes="retailer_checkins")
def recognise(event: ms.Event) -> Iterator[object]:
    """Emits an event for each retailer whose name is in the venue's, keyed by the retailer."""
    venue = event.value["venue"].lower()
    for retailer in RETAILERS:
        if retailer.lower() in venue:
            yield ms.emit(key=retailer)
