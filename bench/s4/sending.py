"""Sends words to the running application, as S4's client adapter does. Called in a process of its
own (`apart`)."""

from __future__ import annotations

import json
import time
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from bench.apart import RunFailedError
from bench.lean import Answer, Load, now, post_request
from bench.sending import NDJSON

STREAM = "words"
BODY = 500
"""Words of a request where there is no rate."""
CONNECTIONS = 4


def send(
    url: str, source: str, first: int, count: int, rate: int, every: float
) -> dict[str, float]:
    """Send the words of a folder from the `first` on, so many: at a rate, in one request each
    beat, whatever is answered; at rate 0, each connection again as soon as it has its answer.
    Gives the times of day when it began and ended; at a rate, the last beat's time is whole.

    Every word must be accepted: RunFailedError if one is not.
    """
    share = max(1, round(rate * every)) if rate else BODY
    lines = _lines(Path(source), first, count)
    ready = [
        post_request(url, f"/streams/{STREAM}", NDJSON, b"".join(lines[at : at + share]))
        for at in range(0, count, share)
    ]
    accepted, statuses = 0, Counter[int]()
    requests = iter(ready)

    def told(answer: Answer) -> None:
        nonlocal accepted
        statuses[answer.status] += 1
        if answer.status == 200:
            accepted += json.loads(answer.body)["accepted"]
        if not rate:
            following()

    def following() -> None:
        request = next(requests, None)
        if request is not None:
            load.at(now(), partial(bytes, request), told)

    with Load(url, CONNECTIONS) as load:
        began, offset = now(), time.time() - now()
        if rate:
            for beat, request in enumerate(ready):
                load.at(began + beat * every, partial(bytes, request), told)
        else:
            for _ in range(CONNECTIONS):
                following()
        load.run()
        ended = max(now(), began + len(ready) * every if rate else 0.0)
    if accepted != count:
        raise RunFailedError(f"{accepted} of {count} words were accepted: {dict(statuses)}")
    return {"began": began + offset, "ended": ended + offset}


def _lines(source: Path, first: int, count: int) -> list[bytes]:
    """Lines of the files of a folder, in their order."""

    def every_line() -> Any:
        for path in sorted(source.glob("*.json")):
            with path.open("rb") as file:
                yield from file

    return list(islice(every_line(), first, first + count))
