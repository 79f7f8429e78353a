"""Data for the examples: skewed as real data is, and the same for the same seed.

Keys follow Zipf's law, a day has busy and quiet hours, and records come out of order, each less
than five seconds after any later one. `checkins`, `tweets` and `requests` yield records; the
command writes them as JSON lines, many at once or live:

    python examples/generate.py retail --events 10000 --seed 7 --out DIR
    python examples/generate.py retail --rate 500 --out DIR [--every 100ms] [--seconds 60]

Live records carry the present time. A file appears in DIR at once and whole: it is written under a
hidden name and then renamed.
"""

import argparse
import itertools
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
START = 15_487 * DAY
"""The first of a series is on this day: 2012-05-27."""
DISORDER = 5 * SECOND
"""Records come out of order by less than this."""
A_FILE = 1_000
"""Records in a file, unless the run is live."""

Record = dict[str, Any]

HOURS = (3, 2, 1, 1, 1, 2, 4, 7, 9, 10, 11, 13, 15, 14, 12, 11, 11, 12, 14, 16, 15, 12, 8, 5)
"""The relative traffic of each hour of the day, from midnight on."""

VENUES = (
    "Walmart Supercenter", "Starbucks", "Target", "Best Buy", "McDonald's", "Central Park",
    "Wal-Mart #1208", "JCPenney", "Union Station", "Macy's Herald Square", "Sam's Club",
    "BestBuy Mobile", "Joe's Diner", "Museum of Modern Art", "J.C. Penney Outlet", "Gold's Gym",
    "City Library", "SuperTarget", "Macys", "Airport Terminal 2",
)  # fmt: skip
TOPICAL = (
    "What a goal", "New album is out", "Vote today", "So much rain", "The referee was blind",
    "That guitar song again", "Election night", "Snow in the morning", "A storm is coming",
    "Did you feel that tremor",
)  # fmt: skip
QUAKE = ("Earthquake! Everything shook", "Big quake downtown", "Another aftershock")
CHATTER = ("Good morning", "Lunch with friends", "Reading this", "Stuck in traffic", "So tired")
PATHS = (
    "/", "/products/17", "/products/4?ref=mail", "/search?q=tent", "/cart", "/static/app.css",
    "/static/logo.png", "/login", "/products/99/reviews", "/checkout/pay", "/help/returns",
    "/admin",
)  # fmt: skip
AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", "curl/7.21.0", "Googlebot/2.1")


def checkin(random: Random, at: int) -> Record:
    """A check-in of a user at a venue."""
    return {"user": f"user{_zipf(random, 5_000)}", "time": _iso(at), "venue": _of(random, VENUES)}


def tweet(random: Random, at: int) -> Record:
    """A tweet: chatter or a topic, at times with a URL, at times a retweet of or answer to a user.

    Every fifth day, from noon on, the ground shakes for ten minutes.
    """
    shaking = at // DAY % 5 == 1 and 0 <= at % DAY - 12 * HOUR < HOUR // 6
    if shaking and random.random() < 0.8:
        text = random.choice(QUAKE)
    else:
        text = _of(random, TOPICAL) if random.random() < 0.5 else random.choice(CHATTER)
    if random.random() < 0.4:
        text += f" http://example.com/{_zipf(random, 300)}"
    named, kind = f"user{_zipf(random, 2_000)}", random.random()
    if kind < 0.3:
        text = f"RT @{named}: {text}"
    elif kind < 0.5:
        text = f"@{named} {text}"
    return {"user": f"user{_zipf(random, 2_000)}", "time": _iso(at), "text": text}


def request(random: Random, at: int) -> Record:
    """A line of a web server's log, in the combined format, which knows whole seconds."""
    when = datetime.fromtimestamp(at // SECOND, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    path, host = _of(random, PATHS), _zipf(random, 250)
    status = random.choices((200, 304, 404, 302, 500), (80, 10, 6, 3, 1))[0]
    size = "-" if status == 304 else str(random.randrange(200, 40_000))
    line = (
        f'10.0.0.{host} - - [{when}] "GET {path} HTTP/1.1" {status} {size} '
        f'"-" "{_of(random, AGENTS)}"'
    )
    return {"line": line}


def checkins(n: int, seed: int, days: float = 1.0) -> Iterator[Record]:
    """`n` check-ins over `days` days."""
    return _series(checkin, n, seed, days)


def tweets(n: int, seed: int, days: float = 5.0) -> Iterator[Record]:
    """`n` tweets over `days` days."""
    return _series(tweet, n, seed, days)


def requests(n: int, seed: int, days: float = 0.5) -> Iterator[Record]:
    """`n` requests over `days` days."""
    return _series(request, n, seed, days)


Maker = Callable[[Random, int], Record]
EXAMPLES: dict[str, tuple[Maker, Callable[[int, int], Iterator[Record]]]] = {
    "retail": (checkin, checkins),
    "hot_topics": (tweet, tweets),
    "reputation": (tweet, tweets),
    "top_urls": (tweet, tweets),
    "http_counters": (request, requests),
}
"""Each example: one record at a time, and a series of them."""


def _series(make: Maker, n: int, seed: int, days: float) -> Iterator[Record]:
    """`n` records in the order in which they come: by time, but each delayed by up to DISORDER."""
    random = Random(seed)
    times = (_moment(random, days) for _ in range(n))
    coming = sorted((at + random.randrange(DISORDER), at) for at in times)
    return (make(random, at) for _, at in coming)


def _moment(random: Random, days: float) -> int:
    """A time within the days after START, in a busy hour more likely; in whole milliseconds."""
    while True:
        since = int(random.random() * days * DAY)
        if random.random() * max(HOURS) < HOURS[since // HOUR % 24]:
            return START + since // 1_000 * 1_000


@cache
def _zipf_weights(n: int) -> list[float]:
    return list(itertools.accumulate(1 / rank for rank in range(1, n + 1)))


def _zipf(random: Random, n: int) -> int:
    """A number from 1 to `n`, the k-th with probability proportional to 1/k."""
    return random.choices(range(1, n + 1), cum_weights=_zipf_weights(n))[0]


def _of(random: Random, items: tuple[str, ...]) -> str:
    return items[_zipf(random, len(items)) - 1]


def _iso(at: int) -> str:
    seconds, rest = divmod(at, SECOND)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)
    return moment.isoformat(timespec="milliseconds")


def write(folder: Path, name: str, records: Iterable[Record]) -> int:
    """Write records as one file of JSON lines that appears whole; gives how many there were."""
    lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in records]
    hidden = folder / f".{name}.writing"
    hidden.write_text("".join(lines))
    os.replace(hidden, folder / name)
    return len(lines)


def write_series(folder: Path, records: Iterator[Record], n: int) -> None:
    written = 0
    for number in itertools.count():
        chunk = list(itertools.islice(records, A_FILE))
        if not chunk:
            break
        written += write(folder, f"part-{number:06d}.json", chunk)
        print(f"\r{written:,} of {n:,} events", end="", file=sys.stderr, flush=True)
    print(f"\r{written:,} events in {folder}", file=sys.stderr)


def write_live(
    folder: Path, make: Maker, seed: int, rate: float, every: float, seconds: float | None
) -> None:
    """Write `rate` records a second, a file `every` so many seconds, until Ctrl-C or the end."""
    random, start, written = Random(seed), time.time(), 0
    try:
        for number in itertools.count(1):
            if seconds is not None and (number - 1) * every >= seconds:
                break
            time.sleep(max(0.0, start + number * every - time.time()))
            now = int(time.time() * SECOND)
            due = int(rate * number * every) - written
            times = [now - int(random.random() * every * SECOND) for _ in range(due)]
            name = f"part-{int(start * 1_000)}-{number:06d}.json"
            if due:
                written += write(folder, name, (make(random, at) for at in times))
            print(f"\r{written:,} events in {folder}", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        pass
    print(file=sys.stderr)


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s)", text)
    if match is None or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"must be a time such as 100ms or 2s; got {text!r}")
    return float(match[1]) / (1_000 if match[2] == "ms" else 1)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write data for one of the examples.")
    parser.add_argument("example", choices=EXAMPLES)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--events", type=int, default=10_000, help="how many, unless --rate")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rate", type=float, help="live: so many events a second")
    parser.add_argument("--every", type=_seconds, default="100ms", help="live: a file each 100ms")
    parser.add_argument("--seconds", type=float, help="live: stop after so many; else Ctrl-C")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    make, series = EXAMPLES[given.example]
    if given.rate is None:
        write_series(given.out, series(given.events, given.seed), given.events)
    else:
        write_live(given.out, make, given.seed, given.rate, given.every, given.seconds)


if __name__ == "__main__":
    main()
