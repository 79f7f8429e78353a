"""Reads a stream of server-sent events over as many connections as it takes.

A connection that breaks, ends or falls silent is made again, after the pause that the server
requested. The new request carries the id of the last event that was yielded, and the server
continues after it. When the reader stops, the connection is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from millstream.client.sse import EventParser, ServerEvent
from millstream.client.wire import Wire
from millstream.errors import ClientError

SILENCE = 45.0
"""A connection is given up after this many seconds without a byte. The server sends a heartbeat
every 15."""


def listen(wire: Wire, path: str, query: Mapping[str, Any]) -> Iterator[ServerEvent]:
    """Yields the events of a path. Ends only with an error: a refusal, or too many failed tries."""
    last_id, tries, server_pause = "", 0, None
    while True:
        parser = EventParser(last_id)
        headers = {"Last-Event-ID": last_id} if last_id else {}
        error: Exception = httpx.RemoteProtocolError("the server ended the stream of events")
        try:
            with wire.open(path, query, headers, SILENCE) as response:
                tries = 0
                for chunk in response.iter_bytes():
                    for event in parser.feed(chunk):
                        last_id = event.id
                        yield event
                    last_id = parser.last_id  # an id may also come alone
        except (httpx.HTTPError, ClientError) as caught:
            error = caught
        tries += 1
        server_pause = server_pause if parser.retry is None else parser.retry
        wire.wait(tries, error, server_pause)
