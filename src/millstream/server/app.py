"""The ASGI application of the server: guard, routes, errors as JSON."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from millstream.errors import ShardElsewhere, StoreError
from millstream.server import page_files
from millstream.server.access.grants import EVERYONE, Grant
from millstream.server.access.guard import GRANT, Guard
from millstream.server.feeds import feed_routes
from millstream.server.feeds.feed_networks import Networks
from millstream.server.feeds.feed_overview import FeedMetrics
from millstream.server.http.answers import Refusal
from millstream.server.http.connection import unread
from millstream.server.http.paths import Route, Routes
from millstream.server.http.unread_answers import LARGE
from millstream.server.jobs import job_routes, package_routes
from millstream.server.jobs.agent_routes import Agents
from millstream.server.jobs.job_news import JobNews
from millstream.server.jobs.job_routes import Jobs
from millstream.server.openapi import openapi_document
from millstream.server.service import Service
from millstream.server.slates import dump, slate_routes, watch
from millstream.server.status import health, metrics, status_routes
from millstream.server.status.status_routes import Overview
from millstream.server.streams import retries, stream_routes
from millstream.server.streams.catalogue import Catalogue
from millstream.server.streams.stream_routes import Posting

logger = logging.getLogger("millstream.server")


def all_routes(service: Service) -> list[Route]:
    catalogue = Catalogue(service.store)
    service.on_stop(catalogue.close)
    posting = Posting(service, catalogue)
    service.on_stop(posting.close)
    networks = Networks(service, catalogue)
    board = Jobs(service)
    service.on_start(board.start)
    service.on_stop(board.stop)
    overview = Overview(service, catalogue, board)
    return [
        *slate_routes.routes(service),
        *dump.routes(service),
        *watch.routes(service),
        *stream_routes.routes(service, catalogue, posting),
        *retries.routes(service),
        *job_routes.routes(board),
        *JobNews(service, catalogue).routes(),
        *Agents(service).routes(),
        *package_routes.routes(service),
        *feed_routes.routes(service, catalogue, networks, posting),
        *status_routes.routes(service, overview),
        *metrics.routes(overview, FeedMetrics(networks)),
        *page_files.routes(),
        *health.routes(service),
        *openapi_document.routes(),
    ]


def build_app(service: Service) -> ASGIApp:
    """Builds the application of a service: the guard in front of the dispatcher."""
    return Guard(Dispatcher(service, Routes(all_routes(service))), service)


class Dispatcher:
    """Finds the route of each request, and turns the exceptions it raises into answers."""

    def __init__(self, service: Service, routes: Routes) -> None:
        self._service = service
        self._find = routes.find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        try:
            route, scope["path_params"] = self._find(method, scope["raw_path"])
            if (grant := scope[GRANT]) is not EVERYONE:
                _check_right(grant, route, scope["path_params"])
            request = Request(scope, receive, send)
            if route.heavy:
                async with self._service.heavy:
                    await asyncio.sleep(0)  # serve other requests between two heavy ones
                    answer = await route.endpoint(request)
            else:
                answer = await route.endpoint(request)
        except Refusal as refusal:
            answer = refusal.answer()
        except ShardElsewhere as error:
            answer = Refusal(421, str(error)).answer()
        except StoreError as error:
            answer = Refusal(503, str(error), headers={"Retry-After": "1"}).answer()
        except ClientDisconnect:
            return
        except Exception:
            logger.exception("%s %r failed", method, scope["path"][:200])
            answer = Refusal(500, "the server failed on this request; its log says how").answer()
        if len(getattr(answer, "body", b"")) > LARGE and not unread.has_room(time.monotonic()):
            answer = Refusal(
                503,
                "too many clients are not reading their large answers; try again in a moment",
                headers={"Retry-After": "1"},
            ).answer()
        self._service.counters.answered(answer.status_code)
        if method == "HEAD":
            await _head_only(answer, send)
        else:
            await answer(scope, receive, send)


def _check_right(grant: Grant, route: Route, places: dict[str, str]) -> None:
    """Raises Refusal if the token does not allow the request."""
    need = route.need(places)
    if not grant.permits(need):
        resource = f" {need.kind} {need.name[:100]!r}" if need.kind else " this"
        raise Refusal(
            403,
            f"the token {grant.name!r} may not {_VERBS[need.right]}{resource}; ask the operator "
            "of this server for a token that may",
        )


_VERBS = {"read": "read", "send": "send to", "agent": "act as an agent of", "all": "do", "any": ""}


async def _head_only(answer: Response, send: Send) -> None:
    """Sends only the head of an answer; a streamed body is not started."""
    await send(
        {
            "type": "http.response.start",
            "status": answer.status_code,
            "headers": answer.raw_headers,
        }
    )
    await send({"type": "http.response.body", "body": b""})
