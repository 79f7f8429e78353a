"""A stream of server-sent events over as many connections as it takes.

A connection that breaks, ends or falls silent is made again, after the pause that the server asked
for, with the id of the last event that was given out: the server goes on after that one. Whoever
stops reading closes the connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from millstream.client.sse import EventParser, ServerEvent
from millstream.client.wire import Wire
from millstream.errors import ClientError

SILENCE = 45.0
"""Seconds without a byte after which a connection is given up: a server beats every 15."""


def listen(wire: Wire, path: str, query: Mapping[str, Any]) -> Iterator[ServerEvent]:
    """The events of a path. Ends only with an error: a refusal, or no answer for too many tries."""
    last_id, tries, asked = "", 0, None
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
        except (httpx.HTTPError, ClientError) as failed:
            error = failed
        tries += 1
        asked = asked if parser.retry is None else parser.retry
        wire.wait(tries, error, asked)
