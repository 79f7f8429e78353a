"""GET /healthz: checks that the store can be read. The answer is small, for frequent checks."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from millstream.messages.status import HealthAnswer
from millstream.server.http.answers import json_answer
from millstream.server.http.paths import Route, query
from millstream.server.service import Service


def routes(service: Service) -> list[Route]:
    async def healthz(request: Request) -> Response:
        query(request, ())
        service.store.home  # noqa: B018  raises if there is no store any more
        running, batch = service.store.running(), service.store.progress().batch
        return json_answer(HealthAnswer(True, running, batch))

    return [Route("GET", ("healthz",), healthz, "any")]
