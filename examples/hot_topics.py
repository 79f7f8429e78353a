r"""Topics that are hotter than at the same minute of other days (Muppet, examples 2 and 5).

`classify` finds the topics of a tweet and keys an event by topic and minute of the day,
`earthquake_874`. `count` counts them; a timer one minute after the first one reports the count and
lets the slate go. `detect` compares a report with the average of the days before it, and puts what
is over the threshold onto the output stream `hot`.

The result depends on the order of events: an event that came after its minute's report would open a
new minute, and a day's report is compared with the days before it. So the application asks for
event-time order, and waits up to ten seconds for what comes late. A minute is reported when time
has passed it, so the last minutes before the input ends are not.

    python examples/generate.py hot_topics --events 50000 --out /tmp/tweets
    millstream run examples/hot_topics.py --source tweets=json:/tmp/tweets \
        --sink hot=json:/tmp/hot --available-now
"""

from collections.abc import Iterator
from dataclasses import dataclass

import millstream as ms

MINUTE = 60_000_000
MINUTES_A_DAY = 1440
THRESHOLD = 3.0
"""A topic is hot if it reaches its average times this."""

TOPICS = {
    "earthquake": {"earthquake", "quake", "tremor", "aftershock"},
    "football": {"football", "goal", "referee", "penalty"},
    "music": {"album", "concert", "song", "guitar"},
    "politics": {"election", "senate", "vote", "president"},
    "weather": {"rain", "snow", "storm", "sunny"},
}
"""Each topic, and the words that tell of it."""

app = ms.App("hot_topics", order="event-time")
app.source("tweets", key="user", ts="time", lateness="10s")
app.output("hot")


@app.map("tweets", publishes="mentions")
def classify(event: ms.Event) -> Iterator[object]:
    """Emits an event for each topic of the tweet, keyed by topic and minute of the day."""
    words = {word.strip(".,:;!?#").lower() for word in event.value["text"].split()}
    day, minute = divmod(event.ts // MINUTE, MINUTES_A_DAY)
    for topic, telling in TOPICS.items():
        if words & telling:
            yield ms.emit(key=f"{topic}_{minute}", value={"day": day})


@dataclass
class Minute:
    """The mentions of a topic in one minute of one day."""

    count: int = 0
    day: int = 0


@app.update("mentions", publishes="counts", slate=Minute)
def count(event: ms.Event, slate: Minute) -> Iterator[object]:
    if slate.count == 0:
        slate.day = event.value["day"]
        yield ms.timer(after="1m")
    slate.count += 1


@count.on_timer
def report(timer: ms.Timer, slate: Minute) -> Iterator[object]:
    """The minute is over: tell its count, and start afresh on another day."""
    yield ms.emit(value={"count": slate.count, "day": slate.day})
    yield ms.forget()


@dataclass
class Average:
    """The mentions of a topic in one minute of the day, over the days since it was first seen."""

    total_count: int = 0
    days: int = 0
    first_day: int | None = None


@app.update("counts", publishes="hot", slate=Average)
def detect(event: ms.Event, slate: Average) -> Iterator[object]:
    today, mentions = event.value["day"], event.value["count"]
    if slate.first_day is None:
        slate.first_day = today
    earlier = today - slate.first_day  # days without a mention bring no event, but they count
    if earlier > 0:
        average = slate.total_count / earlier
        ratio = mentions / average
        if ratio > THRESHOLD:
            yield ms.emit(value={"count": mentions, "average": average, "ratio": ratio})
    slate.total_count += mentions
    slate.days = earlier + 1
