"""Feeds over HTTP: pages of a feed, and the producers that a consumer follows.

GET /feeds/{consumer} is a page as of one committed batch, overlaid with all records that were
acknowledged before the request. The answer says whether it is complete. `feed_writes` has the
routes that send records to feeds, `feed_live` the live events of a feed, and `feed_overview` the
network as a whole.
"""

from __future__ import annotations

import time
from typing import Any

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from millstream.errors import InputError
from millstream.feeds.reads.answers import Request as Asked
from millstream.feeds.reads.answers import answer, read_coherency
from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.query import FeedQuery
from millstream.feeds.reads.tables import Tables
from millstream.messages.feeds import FeedPage, FeedPart, Follow, FollowsPage, LeftOut
from millstream.server.access.grants import Need
from millstream.server.access.guard import GRANT
from millstream.server.feeds.feed_live import FeedLive
from millstream.server.feeds.feed_networks import Networks, name_in, refused_request
from millstream.server.feeds.feed_overview import FeedOverview
from millstream.server.feeds.feed_views import Views, flow
from millstream.server.feeds.feed_writes import FeedPosting
from millstream.server.http.answers import Refusal, json_answer
from millstream.server.http.paths import Route, query, whole_number
from millstream.server.service import Service
from millstream.server.streams.catalogue import Catalogue
from millstream.server.streams.stream_routes import Posting

PAGE, LONGEST_PAGE = 100, 1_000
PARAMETERS = ("limit", "cursor", "coherency", "k", "t", "why", "unread", "feeds")
VIEW = "Millstream-View"
"""The header that marks a request as a view of the feed by its consumer."""


def routes(
    service: Service, catalogue: Catalogue, networks: Networks, posting: Posting
) -> list[Route]:
    feed_posting = FeedPosting(networks, catalogue, posting)
    views = Views(feed_posting.append)
    service.on_stop(networks.close)
    service.on_start(views.start)
    service.on_stop(views.stop)
    reading, overview = FeedReads(service, networks, views), FeedOverview(service, networks)
    return [
        Route("GET", ("feeds",), overview.feeds),
        Route("GET", ("feeds", "{consumer}"), reading.page),
        Route("GET", ("feeds", "events"), reading.page),
        Route("POST", ("feeds", "events"), feed_posting.events, "send"),
        Route("PUT", ("feeds", "{consumer}", "follows", "{producer}"), feed_posting.follow, "send"),
        Route(
            "DELETE",
            ("feeds", "{consumer}", "follows", "{producer}"),
            feed_posting.unfollow,
            "send",
        ),
        Route("GET", ("feeds", "{consumer}", "follows"), reading.follows),
        *FeedLive(service, networks).routes(),
    ]


class FeedReads:
    """Answers requests for pages of feeds and of follows."""

    def __init__(self, service: Service, networks: Networks, views: Views) -> None:
        self._service, self._networks, self._views = service, networks, views

    async def page(self, request: Request) -> Response:
        started, now = time.perf_counter(), self._service.clock()
        parameters = query(request, PARAMETERS)
        network = self._networks.named(parameters.get("feeds"))
        # /feeds/events takes records by POST; by GET it is the feed of a consumer of that name.
        consumer = name_in({"consumer": "events", **request.path_params}, "consumer")
        counts = _is_view(request) and "cursor" not in parameters
        try:
            page_request = Asked.read(parameters, network.placed.options)
        except InputError as error:
            raise refused_request(error) from None

        def make(tables: Tables, pending: Pending) -> tuple[FeedPart, int, int]:
            feed = FeedQuery(network.placed, tables, consumer, pending)
            part = answer(feed, page_request, now)
            by_producer = page_request.coherency == "per-producer"
            size = feed.meta.follows if by_producer else len(part.items)
            return part, len(feed.pulled()), size

        read = await network.read(consumer, make)
        part, pulled, size = read.value
        age = round(self._service.age(read.progress), 3)
        page = FeedPage(**structs.asdict(part), batch=read.progress.batch, age=age)
        if read.trouble is not None:
            left_out = also_left_out(read.trouble, page.left_out)
            page = structs.replace(page, complete=False, left_out=left_out)
        if counts:
            times = [item.ts for item in page.items]
            self._views.count(network.name, consumer, flow(times, now))
        took = time.perf_counter() - started
        network.costs.read_took(consumer, took, read.cpu, pulled, size, page_request.coherency)
        return json_answer(page)

    async def follows(self, request: Request) -> Response:
        """Answers with a page of producers, by name; the cursor is the last producer's name."""
        parameters = query(request, ("cursor", "limit", "feeds", "coherency"))
        network = self._networks.named(parameters.get("feeds"))
        consumer = name_in(request.path_params, "consumer")
        limit = whole_number(parameters, "limit", PAGE, 1, LONGEST_PAGE)
        try:
            read_coherency(parameters, "global")  # it has no effect here
        except InputError as error:
            raise refused_request(error) from None
        after = parameters.get("cursor", "")

        def make(tables: Tables, pending: Pending) -> dict[str, Any]:
            return dict(
                FeedQuery(network.placed, tables, consumer, pending, most_pulled=None).follows()
            )

        read = await network.read(consumer, make)
        rest = sorted(producer for producer in read.value if producer > after)
        page = rest[:limit]
        return json_answer(
            FollowsPage(
                feeds=network.name,
                consumer=consumer,
                batch=read.progress.batch,
                follows=[Follow(producer, read.value[producer]) for producer in page],
                count=len(read.value),
                next=page[-1] if len(rest) > limit else None,
                complete=read.trouble is None,
                left_out=None if read.trouble is None else also_left_out(read.trouble, None),
            )
        )


def _is_view(request: Request) -> bool:
    """True if the request counts as a view: it has the header, and its token may send.

    A browser does not add the header by itself, so pages of other sites cannot count views.
    """
    view = request.headers.get(VIEW)
    if view not in (None, "1"):
        raise Refusal(
            400, f"the header {VIEW} must be 1; got {view[:40]!r}: leave it out to count no view"
        )
    return view == "1" and request.method == "GET" and request.scope[GRANT].permits(Need("send"))


def also_left_out(trouble: str, left_out: LeftOut | None) -> LeftOut:
    """Adds that the log could not be followed, because of `trouble`."""
    if left_out is None:
        return LeftOut(0, trouble)
    return LeftOut(left_out.producers, f"{left_out.reason}; and {trouble}")
