"""Feeds over HTTP: pages of a feed, whom a consumer follows, and what is told to feeds.

GET /feeds/{consumer} is a page as of one committed batch, with all that was acknowledged before the
request laid over it. It says itself whether it is complete. See `feed_posting` for what is told,
`feed_live` for what comes while one listens, and `feed_overview` for the network as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from millstream.errors import InputError
from millstream.feeds.answers import Request as Asked
from millstream.feeds.answers import answer
from millstream.feeds.pending import Pending
from millstream.feeds.query import FeedQuery
from millstream.feeds.tables import Tables
from millstream.server.answers import Refusal, json_answer
from millstream.server.catalogue import Catalogue
from millstream.server.feed_live import FeedLive
from millstream.server.feed_networks import Networks, name_in
from millstream.server.feed_overview import FeedOverview
from millstream.server.feed_posting import FeedPosting
from millstream.server.feed_views import Views, flow
from millstream.server.paths import Route, query, whole_number
from millstream.server.service import Service
from millstream.server.streams import Posting

PAGE, LONGEST_PAGE = 100, 1_000
PARAMETERS = ("limit", "cursor", "coherency", "k", "t", "why", "unread", "view", "feeds")
ALL = 1 << 40


def routes(
    service: Service, catalogue: Catalogue, networks: Networks, posting: Posting
) -> list[Route]:
    told = FeedPosting(networks, catalogue, posting)
    views = Views(told.append)
    service.on_stop(networks.close)
    service.on_start(views.start)
    service.on_stop(views.stop)
    reading, overview = Reading(service, networks, views), FeedOverview(service, networks)
    return [
        Route("GET", ("feeds",), overview.feeds),
        Route("GET", ("feeds", "{consumer}"), reading.page),
        Route("POST", ("feeds", "events"), told.events),
        Route("PUT", ("feeds", "{consumer}", "follows", "{producer}"), told.follow),
        Route("DELETE", ("feeds", "{consumer}", "follows", "{producer}"), told.unfollow),
        Route("GET", ("feeds", "{consumer}", "follows"), reading.follows),
        *FeedLive(service, networks).routes(),
    ]


class Reading:
    """Answers what is in feeds."""

    def __init__(self, service: Service, networks: Networks, views: Views) -> None:
        self._service, self._networks, self._views = service, networks, views

    async def page(self, request: Request) -> Response:
        begun, now = time.perf_counter(), self._service.clock()
        found = query(request, PARAMETERS)
        network = self._networks.named(found.get("feeds"))
        consumer = name_in(request.path_params, "consumer")
        counts = whole_number(found, "view", 1, 0, 1) == 1 and "cursor" not in found
        found.pop("view", None)
        try:
            asked = Asked.read(found, network.placed.options)
        except InputError as error:
            raise Refusal(400, str(error)) from None

        def make(tables: Tables, pending: Pending) -> tuple[dict[str, Any], int, int]:
            of = FeedQuery(network.placed, tables, consumer, pending)
            said = answer(of, asked, now)
            by_producer = asked.coherency == "per-producer"
            size = of.meta.get("follows", 0) if by_producer else len(said["items"])
            return said, len(of.pulled()), size

        read = await network.read(consumer, make)
        said, pulled, size = read.value
        if counts:
            times = [one["ts"] for one in said["items"]]
            self._views.count(network.name, consumer, flow(times, now))
        batch, age = read.progress.batch, round(self._service.age(read.progress), 3)
        whole = {**said, "batch": batch, "age": age, **completeness(read.trouble, said)}
        took = time.perf_counter() - begun
        network.costs.read_took(consumer, took, read.cpu, pulled, size, asked.coherency)
        return json_answer(whole)

    async def follows(self, request: Request) -> Response:
        """A page of producers, in the order of their names; the cursor is the last one's."""
        found = query(request, ("cursor", "limit", "feeds", "coherency"))
        network = self._networks.named(found.get("feeds"))
        consumer = name_in(request.path_params, "consumer")
        limit = whole_number(found, "limit", PAGE, 1, LONGEST_PAGE)
        after = found.get("cursor", "")

        def make(tables: Tables, pending: Pending) -> dict[str, Any]:
            return dict(FeedQuery(network.placed, tables, consumer, pending, ALL).follows())

        read = await network.read(consumer, make)
        rest = sorted(one for one in read.value if one > after)
        page = rest[:limit]
        return json_answer(
            {
                "feeds": network.name,
                "consumer": consumer,
                "batch": read.progress.batch,
                "follows": [{"producer": one, "side": read.value[one]} for one in page],
                "count": len(read.value),
                "next": page[-1] if len(rest) > limit else None,
                **completeness(read.trouble),
            }
        )


def completeness(trouble: str | None, said: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What an answer says of itself, whose log could not be followed or could."""
    left: dict[str, Any] | None = None if said is None else said["left_out"]
    if trouble is not None:
        also = f"{left['reason']}; and " if left else ""
        left = {"producers": left["producers"] if left else 0, "reason": also + trouble}
    return {"complete": left is None, "left_out": left}
