"""Sends the traffic of the CTR stress test over HTTP. Called in a process of its own (`apart`).

There is one connection for each source, so that a source's records are appended in the order of
their times. A beat sends the records that are due on both and waits for both answers: an answer
comes when the events are on disk. The beats after a late one catch up; the largest delay is
reported.
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from bench.apart import RunFailedError
from bench.ctr_data import SOURCES
from bench.lean import PATIENCE, address, now, post_request, whole

NDJSON = "application/x-ndjson"
AT_ONCE = 2_000
"""Events of a beat if there is no rate."""


def send(
    url: str,
    folder: str,
    rate: int | None,
    start: int = 0,
    stop: int | None = None,
    beat: float = 0.05,
) -> dict[str, Any]:
    """Send the records from the `start`-th to before the `stop`-th, `rate` a second.

    None: as fast as they are accepted.
    """
    order = (Path(folder) / "order").read_bytes()[:stop]
    share = AT_ONCE if rate is None else 0
    accepted = length = 0
    worst = 0.0
    with ExitStack() as stack:
        files = [stack.enter_context(open(Path(folder) / name, "rb")) for name in SOURCES]
        lines = [
            islice(file, order.count(place, 0, start), None) for place, file in enumerate(files)
        ]
        connections = [stack.enter_context(_connected(url)) for _ in SOURCES]
        began, sent, number = now(), start, 0
        while sent < len(order):
            if rate is not None:
                number += 1
                pause = began + number * beat - now()
                worst = max(worst, -pause)
                time.sleep(max(0.0, pause))
                share = round(rate * number * beat) - (sent - start)
            following = min(len(order), sent + share)
            waiting = []
            for place, name in enumerate(SOURCES):
                some = list(islice(lines[place], order.count(place, sent, following)))
                if some:
                    body = b"".join(some)
                    request = post_request(url, f"/streams/{name}", NDJSON, body)
                    connections[place].sendall(request)
                    length += len(body)
                    waiting.append(connections[place])
            accepted += sum(map(_accepted, waiting))
            sent = following
        seconds = now() - began
    return {
        "sent": sent - start,
        "accepted": accepted,
        "seconds": seconds,
        "bytes": length,
        "behind_s": worst,
        "cpu_s": time.process_time(),
    }


def _connected(url: str) -> socket.socket:
    connection = socket.create_connection(address(url), PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _accepted(connection: socket.socket) -> int:
    """The number of events that the answer acknowledges."""
    data = b""
    while (found := whole(data)) is None:
        more = connection.recv(1 << 16)
        if not more:
            raise RunFailedError("the server closed a connection that was in use")
        data += more
    status, body = found
    if status != 200:
        raise RunFailedError(f"events were not taken: {status} {body[:200]!r}")
    return int(json.loads(body)["accepted"])
