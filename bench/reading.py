"""Reads from a live application. Each function is called in a process of its own (`apart`).

Each starts at once and ends by itself, and returns its measurements and what the machine did
meanwhile. `parts` names the processes of the application (see `spent`).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from bench.apart import RunFailedError
from bench.figures import percentile
from bench.lean import Answer, Ask, Load, Told, get_request, now, post_request
from bench.meter import Meter, latencies, others_than_200
from bench.sending import STREAM

UPDATE = "count"
READY = 2_000
"""The number of prepared requests, from which reads are chosen at random."""
PATIENCE = 60.0

Start = Callable[[Load, Ask, Told], None]
"""Puts the first requests into a load."""


def read_closed(
    url: str, parts: dict[str, int], connections: int, seconds: float, keys: int
) -> dict[str, Any]:
    """Reads slates of random keys; each connection asks again as soon as it has its answer."""

    def start(load: Load, ask: Ask, told: Told) -> None:
        end = now() + seconds

        def again(answer: Answer) -> None:
            told(answer)
            if answer.came < end:
                load.at(answer.came, ask, again)

        for _ in range(connections):
            load.at(now(), ask, again)

    return _reads(url, parts, connections, keys, start)


def read_open(
    url: str, parts: dict[str, int], connections: int, rate: int, seconds: float, keys: int
) -> dict[str, Any]:
    """Reads slates of random keys, `rate` a second, like many independent clients."""

    def start(load: Load, ask: Ask, told: Told) -> None:
        random, end = Random(2), now() + seconds

        def come(due: float) -> None:
            def asked() -> bytes:
                following = due + random.expovariate(rate)
                if following < end:
                    come(following)
                return ask()

            load.at(due, asked, told)

        come(now())

    return _reads(url, parts, connections, keys, start)


def _reads(
    url: str,
    parts: dict[str, int],
    connections: int,
    keys: int,
    start: Start,
) -> dict[str, Any]:
    random = Random(3)
    ready = [get_request(url, f"/slates/{UPDATE}/k{random.randrange(keys)}") for _ in range(READY)]
    waits: list[float] = []
    server: list[float] = []
    own: list[float] = []
    statuses: Counter[int] = Counter()

    def told(answer: Answer) -> None:
        statuses[answer.status] += 1
        waits.append(answer.came - answer.due)
        server.append(answer.arrived - answer.sent)
        own.append(waits[-1] - server[-1])

    with Load(url, connections) as load:
        meter = Meter(url, parts)
        began = now()
        start(load, lambda: ready[int(random.random() * READY)], told)
        load.run()
        ended = now()
    return {
        "reads": len(waits),
        "per_s": len(waits) / (ended - began),
        **latencies(waits),
        # The server's part of the latency: this process shares the cores with all others.
        "server_p50_ms": 1_000 * percentile(server, 0.5),
        "server_p99_ms": 1_000 * percentile(server, 0.99),
        "own_p99_ms": 1_000 * percentile(own, 0.99),
        **meter.read(),
        **others_than_200(statuses),
    }


def follow(
    url: str, parts: dict[str, int], samples: int, seconds: float, poll: float, prefix: str
) -> dict[str, Any]:
    """Post single events of new keys, spread over the time; measures how soon each can be read.

    The time is from the acknowledgement to the first answer that has the slate, polled every `poll`
    seconds. Several may be in progress: the next does not wait for the one before.
    """
    random, every = Random(5), seconds / samples
    acknowledged: dict[int, float] = {}
    readable: dict[int, float] = {}
    posts: list[float] = []
    polls = 0

    def send(number: int) -> None:
        key = f"{prefix}{number}"
        request = get_request(url, f"/slates/{UPDATE}/{key}")

        def ask() -> bytes:
            body = json.dumps({"key": key, "ts": time.time_ns() // 1_000, "n": 0}).encode()
            return post_request(url, f"/streams/{STREAM}", "application/json", body)

        def sent(answer: Answer) -> None:
            if answer.status != 200:
                raise RunFailedError(f"an event was not taken: {answer.body!r}")
            acknowledged[number] = answer.came
            posts.append(answer.came - answer.sent)
            load.at(answer.came, lambda: request, looked)

        def looked(answer: Answer) -> None:
            nonlocal polls
            polls += 1
            if answer.status == 200:
                readable[number] = answer.came
            elif answer.came < acknowledged[number] + PATIENCE:
                load.at(max(answer.due + poll, answer.came), lambda: request, looked)

        load.at(began + (number + random.random()) * every, ask, sent)

    with Load(url, 16) as load:
        meter = Meter(url, parts)
        began = now()
        for number in range(samples):
            send(number)
        load.run()
        ended = now()
    waits = [readable[number] - acknowledged[number] for number in readable]
    return {
        "samples": samples,
        "missing": samples - len(waits),
        **latencies(waits),
        "post_p50_ms": 1_000 * percentile(posts, 0.5),
        "post_p99_ms": 1_000 * percentile(posts, 0.99),
        "polls_per_s": polls / (ended - began),
        **meter.read(),
    }
