"""Search traffic for examples/ctr.py, the same for the same seed.

Serves and clicks as a search engine's logs have them: queries follow Zipf's law, a page shows one
to three of its query's ads, the first is clicked most. Users make four searches a day each. Among
them are bots of three kinds, whose traffic is not wanted: *scrapers* ask for page after page,
*clickers* click on all that they see, and *hasty* ones click faster than anyone reads. `traffic`
yields the records in the order of their times; ctr_truth.py says what is true of them.

    python examples/ctr_traffic.py --events 100000 --seed 7 --out DIR

writes DIR/serves and DIR/clicks as JSON lines. Times are whole milliseconds, as in logs. The last
two records come well after the last full hour, so that every slot before them comes to its end.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

MINUTE = 60_000
HOUR = 60 * MINUTE
START = 15_487 * 24 * HOUR
"""The first hour begins on 2012-05-27; milliseconds, as all times here."""
CLICKED = (0.30, 0.12, 0.05)
"""The highest click probability of an ad, by its place on the page."""
AGENTS = (
    "Mozilla/5.0 (Windows NT 6.1; rv:12.0) Gecko/20100101 Firefox/12.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_7) AppleWebKit/534.57",
    "Opera/9.80 (X11; Linux x86_64; U; en) Presto/2.9.168 Version/11.50",
)

Record = dict[str, Any]
Arrival = tuple[str, Record]
"""A source's name and its record."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The amount and the kind of the traffic."""

    events: int
    seed: int = 7
    hours: int = 26
    queries: int = 2_000
    ads_a_query: int = 4
    searches_a_user: int = 4
    bots: float = 0.001
    """The share of searches with which a bot sets about its work."""

    @property
    def searches(self) -> float:
        """About how many of the events are searches of people: so the hours come out right."""
        return self.events / (1.34 + 85 * self.bots)


def traffic(given: Traffic) -> Iterator[Arrival]:
    """All serves and clicks, in the order of their times; no user does two things at once."""
    searches = _searches(given)
    coming: list[tuple[int, int, str, str, Record]] = []
    busy: dict[str, int] = {}
    numbers = iter(range(1 << 60))
    at, left = START, given.events - 2
    following = next(searches)
    while left:
        while not coming or following[0] <= coming[0][0]:
            _serve(coming, numbers, *following)
            following = next(searches)
        at, number, user, source, record = heappop(coming)
        if busy.get(user, 0) >= at:
            heappush(coming, (busy[user] + 1, number, user, source, record))
            continue
        busy[user] = record["time"] = at
        left -= 1
        yield source, record
    over = max(START + given.hours * HOUR, -(-at // HOUR) * HOUR) + HOUR // 2
    yield "serves", {**_page("s-over", "over", ["over"]), "user": "u", "time": over}
    yield "clicks", {"serve": "s-over", "ad": "over", "time": over + MINUTE}


Search = tuple[int, str, tuple[str, list[str]], list[tuple[int, int]]]
"""When, who, the query and its ads, and which of them is clicked how much later."""


def _searches(given: Traffic) -> Iterator[Search]:
    """Searches in the order of their times, for ever; the clicks of each are decided with it."""
    random = Random(given.seed)
    weights = list(accumulate(1 / rank for rank in range(1, given.queries + 1)))
    ranks = range(given.queries)
    appeal = [random.random() for _ in range(given.queries * given.ads_a_query)]
    pace = given.hours * HOUR / given.searches
    users = max(1, round(given.searches / given.searches_a_user))
    sessions: list[tuple[int, int, str, int]] = []
    at, bots = float(START), 0
    while True:
        at += pace * random.expovariate(1.0)
        while sessions and sessions[0][0] <= at:
            moment, bot, kind, left = heappop(sessions)
            query = random.choices(ranks, cum_weights=weights)[0]
            page = _shown(random, given, query)
            yield moment, f"bot{bot}", page, _bot_clicks(random, kind, len(page[1]))
            if left:
                heappush(sessions, (moment + _PAUSES[kind], bot, kind, left - 1))
        query = random.choices(ranks, cum_weights=weights)[0]
        page = _shown(random, given, query)
        clicks = [
            (place, 1_000 + int(random.expovariate(1 / 15_000)) % (10 * MINUTE))
            for place, ad in enumerate(page[1])
            if random.random() < CLICKED[place] * 2 * appeal[_number(given, query, ad)]
        ]
        yield int(at), f"u{int(random.random() * users)}", page, clicks
        if random.random() < given.bots:
            bots += 1
            kind = random.choice(list(_PAUSES))
            heappush(sessions, (int(at) + 1, bots, kind, random.randrange(25, 60)))


_PAUSES = {"scraper": 700, "clicker": 4_000, "hasty": 9_000}
"""The bots' kinds, and how long each waits between two pages."""


def _bot_clicks(random: Random, kind: str, ads: int) -> list[tuple[int, int]]:
    if kind == "scraper":
        return []
    if kind == "clicker":
        return [(place, 600 + 300 * place) for place in range(ads)]
    return [(random.randrange(ads), random.randrange(20, 200))]


def _shown(random: Random, given: Traffic, query: int) -> tuple[str, list[str]]:
    """A page of a query: some of its ads, in their order of rank."""
    first = random.randrange(given.ads_a_query)
    ads = [
        f"ad{query}-{(first + n) % given.ads_a_query}"
        for n in range(min(given.ads_a_query, random.choice((1, 2, 2, 3))))
    ]
    return f"query {query}", ads


def _number(given: Traffic, query: int, ad: str) -> int:
    return query * given.ads_a_query + int(ad.rpartition("-")[2])


def _serve(
    coming: list[tuple[int, int, str, str, Record]],
    numbers: Iterator[int],
    at: int,
    user: str,
    page: tuple[str, list[str]],
    clicks: list[tuple[int, int]],
) -> None:
    """Put a serve and its clicks among what is to come."""
    query, ads = page
    number = next(numbers)
    serve = f"s{number:08d}"
    record = {**_page(serve, query, ads), "user": user, "agent": AGENTS[number % len(AGENTS)]}
    record["from"] = "http://search.example.com/?p=1"
    heappush(coming, (at, number, user, "serves", record))
    for place, later in clicks:
        click = {"serve": serve, "ad": ads[place]}
        heappush(coming, (at + later, next(numbers), user, "clicks", click))


def _page(serve: str, query: str, ads: list[str]) -> Record:
    return {"serve": serve, "query": query, "ads": ads}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write serves and clicks for examples/ctr.py.")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--events", type=_events, default=100_000, help="default: 100000")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args(arguments)
    files, written = {}, dict[str, int]()
    for source in ("serves", "clicks"):
        (given.out / source).mkdir(parents=True, exist_ok=True)
        files[source] = open(given.out / source / "part-0.json", "w")  # noqa: SIM115
    for source, record in traffic(Traffic(given.events, given.seed)):
        files[source].write(json.dumps(record, separators=(",", ":")) + "\n")
        written[source] = written.get(source, 0) + 1
    for source, file in files.items():
        file.close()
        print(f"wrote {written[source]:,} {source} to {given.out / source}")


def _events(text: str) -> int:
    """A number of events: the two that end the last hour, and others."""
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) < 3:
        raise argparse.ArgumentTypeError(f"must be a whole number, 3 or more; got {text!r}")
    return int(text)


if __name__ == "__main__":
    main()
