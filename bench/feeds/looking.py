"""Load processes that post to feeds, and read them, over HTTP (started by `apart`)."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from itertools import islice
from random import Random
from typing import Any

from bench.apart import RunFailedError
from bench.feeds.laid import TEXT
from bench.feeds.network import Network, Shape, network
from bench.figures import percentile
from bench.lean import Answer, Load, get_request, now, post_request
from bench.meter import Meter, caught_up, latencies, others_than_200
from bench.sending import NDJSON, post_beats

EVENTS = "/feeds/events"
TOGETHER = 1_000
"""Follows in one body."""
EVERY = 0.05
"""Seconds from one body of posts to the next."""
READY = 2_000
"""Requests made beforehand, chosen from at random."""
CONNECTIONS = 16


def of(producers: int, consumers: int, pairs: int) -> Network:
    """The network that is followed, in the paper's shape."""
    return network(Shape(producers, consumers, pairs))


def fill(url: str, producers: int, consumers: int, pairs: int) -> None:
    """Follow, and wait until the application has taken it in."""
    net = of(producers, consumers, pairs)
    lines = (
        f'{{"kind":"follow","consumer":"c{c}","producer":"p{p}"}}\n'
        for p, c in zip(net.producer.tolist(), net.consumer.tolist(), strict=True)
    )

    def told(answer: Answer) -> None:
        if answer.status != 200 or json.loads(answer.body).get("refused"):
            raise RunFailedError(f"follows were not taken: {answer.status} {answer.body[:300]!r}")

    with Load(url, 1) as load:
        while body := "".join(islice(lines, TOGETHER)):
            load.at(now(), partial(post_request, url, EVENTS, NDJSON, body.encode()), told)
            load.run()
    caught_up(url)


def post(
    url: str, rate: int, seconds: float, producers: int, consumers: int, pairs: int, stop: str
) -> dict[str, Any]:
    """Posts at a rate, by the producers' rates, for a duration or until `stop` exists."""
    random, share, text = Random(1), round(rate * EVERY), json.dumps(TEXT)
    weights = of(producers, consumers, pairs).event_rates.cumsum().tolist()

    def body(number: int, due: float) -> bytes:
        chosen = random.choices(range(producers), cum_weights=weights, k=share)
        posts = (f'{{"kind":"post","producer":"p{one}","value":{text}}}\n' for one in chosen)
        return "".join(posts).encode()

    return post_beats(url, EVENTS, EVERY, seconds, stop, body)


def read(
    url: str,
    parts: dict[str, int],
    rate: int,
    seconds: float,
    producers: int,
    consumers: int,
    pairs: int,
) -> dict[str, Any]:
    """First pages of feeds, asked for by many who know nothing of each other."""
    random = Random(3)
    weights = of(producers, consumers, pairs).query_rates.cumsum().tolist()
    chosen = random.choices(range(consumers), cum_weights=weights, k=READY)
    ready = [get_request(url, f"/feeds/c{one}") for one in chosen]
    waits: list[float] = []
    server: list[float] = []
    statuses: Counter[int] = Counter()
    items = lacking = 0

    def told(answer: Answer) -> None:
        nonlocal items, lacking
        statuses[answer.status] += 1
        waits.append(answer.came - answer.due)
        server.append(answer.arrived - answer.sent)
        if answer.status == 200:
            found = json.loads(answer.body)
            items += len(found["items"])
            lacking += not found["complete"]

    def come(due: float) -> None:
        def asked() -> bytes:
            following = due + random.expovariate(rate)
            if following < end:
                come(following)
            return random.choice(ready)

        load.at(due, asked, told)

    with Load(url, CONNECTIONS) as load:
        meter = Meter(url, parts)
        end = now() + seconds
        come(now())
        load.run()
    return {
        "reads": len(waits),
        "items": items / max(1, len(waits)),
        "incomplete": lacking,
        **latencies(waits),
        "server_p95_ms": 1_000 * percentile(server, 0.95),
        "server_p99_ms": 1_000 * percentile(server, 0.99),
        **meter.read(),
        **others_than_200(statuses),
    }
