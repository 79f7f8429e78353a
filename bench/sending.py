"""Sends to a live application. Each function is called in a process of its own (`apart`).

Each starts at once and ends by itself, and returns its measurements. `parts` names the processes of
the application (see `spent`).
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from random import Random
from typing import Any

from bench.apart import RunFailedError
from bench.lean import Answer, Load, now, post_request
from bench.meter import Meter, caught_up, latencies, others_than_200

STREAM = "events"
NDJSON = "application/x-ndjson"
READY = 64
"""The number of prepared batches, from which posts are chosen at random."""


def fill(url: str, keys: int, batch: int) -> None:
    """Post one event of every key, and wait until the application has processed them."""
    numbers = iter(range(keys))

    def ask() -> bytes:
        created = time.time_ns() // 1_000
        some = [f'{{"key":"k{n}","ts":{created},"n":0}}\n' for n in islice(numbers, batch)]
        return post_request(url, f"/streams/{STREAM}", NDJSON, "".join(some).encode())

    def told(answer: Answer) -> None:
        if answer.status != 200:
            raise RunFailedError(f"events were not taken: {answer.body[:200]!r}")

    with Load(url, 1) as load:
        for _ in range(0, keys, batch):
            load.at(now(), ask, told)
        load.run()
    caught_up(url)


def feed(
    url: str, rate: int, every: float, seconds: float, keys: int, stop: str, drift: int = 0
) -> dict[str, Any]:
    """Post `rate` events a second of random keys (`post_beats`). Events have times since the beat
    before. With `drift`, this many keys a second are replaced by others."""
    random, share = Random(1), round(rate * every)
    offset = time.time() - now()

    def body(number: int, due: float) -> bytes:
        created = [due + offset - every * (share - n) / share for n in range(share)]
        return lines(random, keys, created, int(number * every * drift))

    return post_beats(url, f"/streams/{STREAM}", every, seconds, stop, body)


def post_beats(
    url: str,
    path: str,
    every: float,
    seconds: float,
    stop: str,
    body: Callable[[int, float], bytes],
) -> dict[str, Any]:
    """Post one request each beat, for `seconds` or until `stop` exists. The beat does not wait for
    answers. `body` makes a request of the beat's number and of the time at which it is due."""
    beats, parent = seconds / every, os.getppid()
    waits: list[float] = []
    statuses: Counter[int] = Counter()
    accepted, began = 0, now()

    def beat(number: int) -> None:
        due = began + number * every

        def ask() -> bytes:
            gone = os.getppid() != parent or os.path.exists(stop)
            if number + 1 < round(beats) and not gone:
                beat(number + 1)
            return post_request(url, path, NDJSON, body(number, due))

        load.at(due, ask, told)

    def told(answer: Answer) -> None:
        nonlocal accepted
        statuses[answer.status] += 1
        if answer.status == 200:
            accepted += json.loads(answer.body)["accepted"]
        waits.append(answer.came - answer.due)

    with Load(url, 8) as load:
        beat(0)
        load.run()
    whole = now() - began
    return {
        "per_s": accepted / whole,
        "seconds": whole,
        "cpu_s": time.process_time(),
        **latencies(waits),
        **others_than_200(statuses),
    }


def lines(random: Random, keys: int, created: list[float], first: int = 0) -> bytes:
    """Events of random keys from the `first` on, created at these times of day."""
    chosen = [first + int(random.random() * keys) for _ in created]
    return "".join(
        f'{{"key":"k{key}","ts":{int(at * 1_000_000)},"n":{number}}}\n'
        for number, (key, at) in enumerate(zip(chosen, created, strict=True))
    ).encode()


def post_closed(
    url: str, parts: dict[str, int], connections: int, batch: int, seconds: float, keys: int
) -> dict[str, Any]:
    """Post batches of events; each connection posts again as soon as it has its answer.

    Then waits until the application has processed them all.
    """
    random, created = Random(4), [time.time()] * batch
    path = f"/streams/{STREAM}"
    ready = [post_request(url, path, NDJSON, lines(random, keys, created)) for _ in range(READY)]
    waits: list[float] = []
    statuses: Counter[int] = Counter()
    accepted = 0

    def told(answer: Answer) -> None:
        nonlocal accepted
        statuses[answer.status] += 1
        if answer.status == 200:
            accepted += json.loads(answer.body)["accepted"]
        waits.append(answer.came - answer.sent)
        if answer.came < end:
            load.at(answer.came, lambda: random.choice(ready), told)

    with Load(url, connections) as load:
        meter = Meter(url, parts)
        began = now()
        end = began + seconds
        for _ in range(connections):
            load.at(began, lambda: random.choice(ready), told)
        load.run()
        ended = now()
    return {
        "accepted": accepted,
        "per_s": accepted / (ended - began),
        **latencies(waits),
        **meter.read(),
        "caught_up_s": caught_up(url) - ended,
        **others_than_200(statuses),
    }
