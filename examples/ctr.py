r"""Click-through rates of search ads, as they are now (S4, section IV, Figure 5).

A *serve* is a page of ads for a user's query; a *click* knows only the serve that it was made on.
Three elements, each keyed by another attribute, make click-through rates of them:

- `join`, by serve id, gives a click the query and the user of its serve; in whichever order the
  two come, if they come within half an hour of each other.
- `bots`, by user, lets through what is not suspicious (see `Bots` for the rules).
- `rates`, by query and ad, adds up impressions and clicks in slots of one hour. On the hour it puts
  the sums of the last 24 slots onto the output `ctr`: `{query, ad, impressions, clicks, ctr}`.

The rules look at what a user did before, so the application asks for event-time order, and waits up
to ten seconds for what comes late.

    python examples/ctr_traffic.py --events 100000 --out /tmp/traffic
    millstream run examples/ctr.py --source serves=json:/tmp/traffic/serves \
        --source clicks=json:/tmp/traffic/clicks --sink ctr=json:/tmp/ctr --available-now
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import millstream as ms

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND
SHOWN, CLICKED = {"clicks": 0}, {"clicks": 1}
"""The two events that an ad can have."""

app = ms.App("ctr", order="event-time")
app.source("serves", key="serve", ts="time", unit="ms", lateness="10s", idle="5m")
app.source("clicks", key="serve", ts="time", unit="ms", lateness="10s", idle="5m")


@dataclass
class Join(ms.Element):
    """Joins the clicks of a serve with the serve's data. Clicks may arrive before the serve."""

    within: ms.Configured[int] = HOUR // 2
    served: int = 0
    query: str = ""
    user: str = ""
    ads: list[str] = field(default_factory=list)
    early: list[list[Any]] = field(default_factory=list)
    """Clicks that came before their serve: the ad, and when."""

    def process_event(self, event: ms.Event) -> Iterator[Any]:
        value = event.value
        if event.stream == "serves":
            self.query, self.user, self.ads = value["query"], value["user"], value["ads"]
            self.served = event.ts
            yield ms.emit(key=self.user, value={"query": self.query, "ads": self.ads})
            for ad, at in self.early:
                yield self.click(ad, at)
            self.early = []
        elif not self.served:
            self.early.append([value["ad"], event.ts])
        elif event.ts - self.served <= self.within:
            yield self.click(value["ad"], event.ts)

    def click(self, ad: str, at: int) -> Any:
        value = {
            "query": self.query,
            "ads": self.ads,
            "ad": ad,
            "served": self.served // 1_000,
            "clicked": at // 1_000,
        }
        return ms.emit(key=self.user, value=value)


@dataclass
class Bots(ms.Element):
    """Filters bots, by user: passes serves and clicks that a person could have made. Rules:

    - more than 20 serves in a minute, or more than 10 clicks, are a bot: nothing of it passes for
      the next hour;
    - a click less than half a second after its serve, or before it, was not made by a person;
    - a click on an ad that the page did not show was not made on the page.

    A minute is a clock minute. Events that passed before the bot was detected stay counted. Emits
    an event for each ad that was shown or clicked: its key is the query and the ad, its value is
    `SHOWN` or `CLICKED`.
    """

    soonest: ms.Configured[int] = 500
    """Milliseconds."""
    most_serves: ms.Configured[int] = 20
    most_clicks: ms.Configured[int] = 10
    banned_for: ms.Configured[int] = HOUR
    minute: int = 0
    serves: int = 0
    clicks: int = 0
    banned: int = 0
    """Until when nothing passes."""

    def process_event(self, event: ms.Event) -> Iterator[Any]:
        now, value = event.ts, event.value
        if now < self.banned:
            return
        if now // MINUTE != self.minute:
            self.minute, self.serves, self.clicks = now // MINUTE, 0, 0
        if "ad" in value:
            self.clicks += 1
        else:
            self.serves += 1
        if self.serves > self.most_serves or self.clicks > self.most_clicks:
            self.banned = now + self.banned_for
        elif "ad" not in value:
            for ad in value["ads"]:
                yield ms.emit(key=f"{value['query']}|{ad}", value=SHOWN)
        elif value["ad"] in value["ads"] and value["clicked"] - value["served"] >= self.soonest:
            yield ms.emit(key=f"{value['query']}|{value['ad']}", value=CLICKED)


@dataclass
class Rates(ms.Element):
    """The impressions and clicks of a query and ad, in this slot and in earlier ones."""

    window: ms.Configured[int] = 24 * HOUR
    impressions: int = 0
    clicks: int = 0
    slots: list[list[int]] = field(default_factory=list)
    """The slots of the window that are over: when, impressions, clicks."""

    def process_event(self, event: ms.Event) -> None:
        if event.value == CLICKED:
            self.clicks += 1
        else:
            self.impressions += 1

    def output(self) -> Iterator[Any]:
        """The slot is over: what the whole window holds, if it holds anything."""
        if self.impressions or self.clicks:
            self.slots.append([self.time, self.impressions, self.clicks])
        self.impressions = self.clicks = 0
        self.slots = [slot for slot in self.slots if slot[0] > self.time - self.window]
        if not self.slots:
            yield ms.forget()
            return
        impressions, clicks = (sum(slot[n] for slot in self.slots) for n in (1, 2))
        query, ad = self.key.split("|")
        rate = clicks / impressions if impressions else None
        yield self.publish(
            {
                "query": query,
                "ad": ad,
                "until": self.time // 1_000,
                "impressions": impressions,
                "clicks": clicks,
                "ctr": rate,
            }
        )


app.add(Join(), name="join", keys=["serves", "clicks"], publishes="joined", ttl="30m")
app.add(Bots(), name="bots", keys="joined", publishes="counted", ttl="2h")
app.add(Rates(), name="rates", keys="counted", every="1h", publish="ctr")
