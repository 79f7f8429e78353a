"""GET /streams/{name}/tail: the records of a log as they come, as server-sent events.

The id of an event is the record's number; a client that reconnects with it continues at the next
record. If requested records are no longer in the log, a `gap` event says which. Each client has its
own position in the log and reads at its own pace; the log is the queue.
"""

from __future__ import annotations

import asyncio
import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.errors import LogError
from millstream.messages.streams import RecordGap
from millstream.server.http.answers import Refusal
from millstream.server.http.paths import Route, query, segment, whole_number
from millstream.server.http.server_sent_events import Poller, event, events_answer, last_event
from millstream.server.service import Service
from millstream.server.streams.catalogue import Catalogue
from millstream.server.streams.numbered_records import Numbered, begin_at

CHUNK_BYTES = 64 * 1024
CHUNK_RECORDS = 1000
MOST = 10**18
_NUMBER = re.compile(r"-1|[0-9]{1,18}")


class TailFeed:
    """The records of one log, for one client: from `record` on, at most `left` of them."""

    def __init__(self, log: Numbered, record: int, left: int) -> None:
        self.wake = asyncio.Event()
        self.log = log
        self._next = record
        self._left = left
        self._end = log.end
        """The end of the log when it was last checked."""

    @property
    def has_news(self) -> bool:
        return self.log.end != self._end

    def take(self) -> bytes | None:
        log, replaced = self.log, self.log.end < self._end
        self._end = log.end
        if replaced or not self._left:
            return None  # the log was replaced and the client must reconnect, or it has all
        lines = log.lines(self._next, min(self._left, CHUNK_RECORDS), CHUNK_BYTES)
        if not lines and self._next < log.start:
            return self.gap(log.start)
        sent = [event("record", number, line) for number, line in enumerate(lines, self._next)]
        self._next += len(lines)
        self._left -= len(lines)
        return b"".join(sent)

    def gap(self, to: int) -> bytes:
        """Skips records that are not in the log, and returns an event that says so."""
        data = msgspec.json.encode(RecordGap(self._next, to))
        self._next = to
        return event("gap", to - 1, data)


class ResumedFeed(TailFeed):
    """Continues after the last record that a client got, which may be of an earlier log."""

    def take(self) -> bytes | None:
        if self._next > self.log.end and self.log.end == self._end:
            return self.gap(self.log.end)
        return super().take()


class Tails:
    """The tailed logs, and their clients."""

    def __init__(self, service: Service, catalogue: Catalogue) -> None:
        self._service = service
        self._catalogue = catalogue
        self._poller: Poller[TailFeed] = Poller(self._look, service.stopping)

    def routes(self) -> list[Route]:
        return [Route("GET", ("streams", "{name}", "tail"), self._tail)]

    async def _tail(self, request: Request) -> Response:
        parameters = query(request, ("from", "limit"))
        limit = whole_number(parameters, "limit", MOST, 1, MOST)
        log = self._catalogue.log_of(segment(request, "name"))
        record = begin_at(parameters.get("from", "end"), log.start, log.end)
        feed = TailFeed(log, record, limit)
        last_id = last_event(request)
        if last_id is not None:
            if _NUMBER.fullmatch(last_id) is None:
                raise Refusal(400, f"Last-Event-ID must be a record's number; got {last_id[:40]!r}")
            record = int(last_id) + 1
            # A mirror may be behind the server that the client used before: then the client waits.
            mirrored = self._service.store.mirror() is not None
            feed = (TailFeed if mirrored else ResumedFeed)(log, record, limit)
        await log.locate(record, self._service)
        return events_answer(self._service, self._poller, feed)

    async def _look(self) -> None:
        feeds = set(self._poller.feeds)
        for log in {feed.log for feed in feeds}:
            try:
                log.reload()
            except LogError:
                pass  # go on with the other logs; a new request for this one gets the error
        for feed in feeds:
            if feed.has_news:
                feed.wake.set()
