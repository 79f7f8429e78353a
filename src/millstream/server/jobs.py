"""The jobs over windows: GET /jobs, GET /jobs/{name}.

The server knows a job from the application's description, and what came of it from the tables of
its root. They are read beside the event loop, once for each batch that was committed, and only when
somebody asks.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from millstream.description import Description
from millstream.nearest import did_you_mean
from millstream.server.answers import Refusal, json_answer
from millstream.server.job_tables import read_jobs
from millstream.server.paths import Route, query
from millstream.server.service import Service
from millstream.stores.progress import Progress
from millstream.windows.showing import summary


class Jobs:
    """The jobs of what a service serves. One a server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._reading = asyncio.Lock()
        self._of: tuple[Description | None, Progress | None] = None, None
        self.latest: dict[str, dict[str, Any]] = {}
        """As they were read last, by their names."""

    async def now(self) -> dict[str, dict[str, Any]]:
        """All of them as of the last committed batch."""
        service, store = self._service, self._service.store
        async with self._reading:  # whoever asks meanwhile gets the same
            description, progress = store.description(), store.progress()
            known = self._of
            if description is not known[0] or progress is not known[1]:
                parts = {} if description is None else description.parts
                if parts:
                    with store.lease() as reader:
                        self.latest = await service.in_thread(read_jobs, reader, parts)
                else:
                    self.latest = {}
                self._of = description, progress
            return self.latest


def routes(jobs: Jobs) -> list[Route]:
    async def every(request: Request) -> Response:
        query(request, ())
        return json_answer(
            {"jobs": {name: summary(one) for name, one in (await jobs.now()).items()}}
        )

    async def one(request: Request) -> Response:
        query(request, ())
        name, found = request.path_params["name"], await jobs.now()
        if name not in found:
            hint = did_you_mean(name, found) if found else "the application has none"
            raise Refusal(404, f"there is no job {name[:100]!r}; {hint}")
        return json_answer(found[name])

    return [Route("GET", ("jobs",), every), Route("GET", ("jobs", "{name}"), one)]
