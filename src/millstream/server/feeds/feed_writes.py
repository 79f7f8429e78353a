"""Sending records to feeds over HTTP: POST /feeds/events, PUT and DELETE of follows.

Each request becomes records in the log of `NAME.events` (see millstream.feeds.records), which are
stamped here. It is answered when they are on disk. Every read that begins after the answer sees
them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.tables import Tables
from millstream.feeds.records import PostRecord, convert_record
from millstream.feeds.states import read_pair
from millstream.log.writer import Appended, Entry
from millstream.messages.feeds import FeedPostAnswer, FollowAnswer
from millstream.server.feeds.feed_networks import Networks, ServedFeeds, name_in
from millstream.server.feeds.feed_stamps import FeedCheck, FeedRecords, stamped
from millstream.server.http.answers import Refusal, json_answer
from millstream.server.http.paths import query
from millstream.server.streams.catalogue import Catalogue
from millstream.server.streams.records import CheckedBody
from millstream.server.streams.stream_routes import Posting

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
READ_BYTES = 4 << 20


class FeedPosting:
    """Accepts records of feeds."""

    def __init__(self, networks: Networks, catalogue: Catalogue, posting: Posting) -> None:
        self._networks, self._catalogue, self._posting = networks, catalogue, posting

    async def events(self, request: Request) -> Response:
        network = self._networks.named(query(request, ("feeds",)).get("feeds"))
        source = network.placed.events
        path = self._catalogue.source_log(source)
        await network.log.now()  # so that no stamp is below one in the log
        check = FeedCheck(network.log.stamps, lambda: network.costs.stamp)
        checked, appended = await self._posting.taken(request, source, path, check)
        answer = FeedPostAnswer(
            stream=source,
            accepted=appended.count,
            refused=checked.refused,
            refused_count=checked.refused_count,
            first=appended.first,
            repeated=appended.repeated,
            ids=await self._ids(network, checked, appended),
        )
        return json_answer(answer)

    async def follow(self, request: Request) -> Response:
        return await self._follow(request, "follow")

    async def unfollow(self, request: Request) -> Response:
        return await self._follow(request, "unfollow")

    async def append(self, feeds: str, records: list[dict[str, Any]]) -> None:
        """Appends records that the server itself creates; raises Refusal if it cannot now."""
        network = self._networks.named(feeds)
        source = network.placed.events
        path = self._catalogue.source_log(source)
        self._posting.refuse_behind(source, path)
        await network.log.now()
        stamps, ratio = network.log.stamps, network.costs.stamp
        for record in records:
            if record["kind"] == "view" and network.costs.wholesale(record["consumer"]):
                record["wholesale"] = True
            record |= stamped(record, stamps, ratio)
        lines = [_encode(record) for record in records]
        await self._posting.append(path, Entry.of(lines), sum(map(len, lines)))

    async def _follow(self, request: Request, kind: str) -> Response:
        network = self._networks.named(query(request, ("feeds",)).get("feeds"))
        consumer = name_in(request.path_params, "consumer")
        producer = name_in(request.path_params, "producer")
        if kind == "follow":
            await self._refuse_blocked(network, consumer, producer)
        record = {"kind": kind, "consumer": consumer, "producer": producer}
        await self.append(network.name, [record])
        return json_answer(FollowAnswer(consumer, producer, follows=kind == "follow"))

    async def _refuse_blocked(self, network: ServedFeeds, consumer: str, producer: str) -> None:
        update = network.placed.consumers

        def is_blocked(tables: Tables, pending: Pending) -> bool:
            stored = read_pair(partial(tables.get, update, consumer), producer)
            return pending.pair(consumer, producer, stored).blocked is not None

        if (await network.read(consumer, is_blocked)).value:
            raise Refusal(
                409,
                f"consumer {consumer!r} has blocked producer {producer!r}, and cannot follow it; "
                "send a record of kind unblock to POST /feeds/events first",
            )

    async def _ids(
        self, network: ServedFeeds, checked: CheckedBody, appended: Appended
    ) -> list[str]:
        """Returns the ids of the accepted posts, in order.

        For a repeated request they are those of the first one, or none if its records are no
        longer in the log.
        """
        assert isinstance(checked, FeedRecords)
        if not appended.repeated:
            return checked.ids
        log = self._catalogue.log_of(network.placed.events)
        await log.locate(appended.first, self._networks.service)
        at, end = appended.first, appended.first + appended.count
        ids: list[str] = []
        while at < end:
            lines = log.lines(at, end - at, READ_BYTES)
            if not lines:
                return []
            records = (convert_record(_decode(line)) for line in lines)
            ids += [record.id for record in records if isinstance(record, PostRecord)]
            at += len(lines)
        return ids
