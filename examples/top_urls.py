"""The ten URLs that are shared most (Muppet, section 2).

`count` counts each URL in a slate of its own, and tells every new count to `top`, which keeps the
best ten in the one slate of the key `top`. Only the ten are kept, yet the answer is exact, in
whatever order the counts come: counts only grow, so a URL that falls out of the ten cannot return
before its own count changes, and then `top` hears of it. Equal counts are ordered by the URL.

All counts meet in one slate, which is the application's hot key; a site with very many shares
would first keep a top ten for each of, say, sixteen groups of URLs, and then merge those.

    python examples/generate.py top_urls --events 10000 --out /tmp/tweets
    millstream run examples/top_urls.py --source tweets=json:/tmp/tweets --available-now
    millstream slates get top top
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import millstream as ms

SIZE = 10
URL = re.compile(r"https?://[^\s\"<>]+")

app = ms.App("top_urls")
app.source("tweets", key="user", ts="time")


@app.map("tweets", publishes="shares")
def find_urls(event: ms.Event) -> Iterator[object]:
    """Emits an event for each URL in the tweet, keyed by it, without trailing punctuation."""
    urls = URL.findall(event.value["text"])
    for url in dict.fromkeys(url.rstrip(".,:;!?)'") for url in urls):
        yield ms.emit(key=url, value=None)


@dataclass
class Shares:
    """The number of shares of a URL."""

    count: int = 0


@app.update("shares", publishes="counts", slate=Shares)
def count(event: ms.Event, slate: Shares) -> Iterator[object]:
    slate.count += 1
    yield ms.emit(key="top", value={"url": event.key, "count": slate.count})


@app.update("counts")
def top(event: ms.Event, slate: dict[str, int]) -> None:
    url = event.value["url"]
    slate[url] = max(event.value["count"], slate.get(url, 0))
    if len(slate) > SIZE:
        least = max(slate, key=lambda known: (-slate[known], known))
        del slate[least]
