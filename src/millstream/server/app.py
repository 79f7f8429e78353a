"""The application that the server runs: guard, routes, errors as JSON."""

from __future__ import annotations

import logging

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from millstream.errors import StoreError
from millstream.server import (
    dump,
    feeds,
    health,
    jobs,
    metrics,
    openapi,
    packages,
    page_files,
    slates,
    status,
    streams,
    watch,
)
from millstream.server.agents import Agents
from millstream.server.answers import Refusal
from millstream.server.catalogue import Catalogue
from millstream.server.feed_networks import Networks
from millstream.server.feed_overview import FeedMetrics
from millstream.server.guard import Guard
from millstream.server.jobs import Jobs
from millstream.server.news import JobNews
from millstream.server.paths import Route, Routes
from millstream.server.service import Service
from millstream.server.status import Overview
from millstream.server.streams import Posting

logger = logging.getLogger("millstream.server")


def all_routes(service: Service) -> list[Route]:
    """The routes of all modules."""
    catalogue = Catalogue(service.store)
    service.on_stop(catalogue.close)
    posting = Posting(service, catalogue)
    service.on_stop(posting.close)
    networks = Networks(service, catalogue)
    board = Jobs(service)
    overview = Overview(service, catalogue, board)
    return [
        *slates.routes(service),
        *dump.routes(service),
        *watch.routes(service),
        *streams.routes(service, catalogue, posting),
        *jobs.routes(board),
        *JobNews(service, catalogue).routes(),
        *Agents(service).routes(),
        *packages.routes(service),
        *feeds.routes(service, catalogue, networks, posting),
        *status.routes(service, overview),
        *metrics.routes(overview, FeedMetrics(networks)),
        *page_files.routes(),
        *health.routes(service),
        *openapi.routes(),
    ]


def build_app(service: Service) -> ASGIApp:
    """The whole application of a service."""
    return Guard(Dispatcher(service, Routes(all_routes(service))), service)


class Dispatcher:
    """Finds the route of each request and turns what it raises into an answer."""

    def __init__(self, service: Service, routes: Routes) -> None:
        self._service = service
        self._find = routes.find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        try:
            endpoint, scope["path_params"] = self._find(method, scope["raw_path"])
            answer = await endpoint(Request(scope, receive, send))
        except Refusal as refusal:
            answer = refusal.answer()
        except StoreError as error:
            answer = Refusal(503, str(error), headers={"Retry-After": "1"}).answer()
        except ClientDisconnect:
            return
        except Exception:
            logger.exception("%s %r failed", method, scope["path"][:200])
            answer = Refusal(500, "the server failed on this request; its log says how").answer()
        self._service.counters.answered(answer.status_code)
        if method == "HEAD":
            await _head_only(answer, send)
        else:
            await answer(scope, receive, send)


async def _head_only(answer: Response, send: Send) -> None:
    """The head of an answer; a stream is not begun."""
    await send(
        {
            "type": "http.response.start",
            "status": answer.status_code,
            "headers": answer.raw_headers,
        }
    )
    await send({"type": "http.response.body", "body": b""})
