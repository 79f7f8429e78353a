"""The jobs over windows: GET /jobs, GET /jobs/{name}.

The server knows a job from the application's description, and its results from the tables of its
root. They are read in a thread, at most once per committed batch, and only on request; and twice a
minute, to warn the operator of the server if much of a log comes late.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from millstream.description import Description
from millstream.errors import MillstreamError
from millstream.messages.jobs import JobAnswer, JobsAnswer
from millstream.nearest import did_you_mean
from millstream.server.http.answers import Refusal, json_answer
from millstream.server.http.paths import Route, query, segment
from millstream.server.jobs.job_tables import read_jobs
from millstream.server.service import Service
from millstream.stores.progress import Progress

TELL_SECONDS = 30.0
"""Seconds between two checks for warnings."""


class Jobs:
    """The jobs of the served application. One per server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._reading = asyncio.Lock()
        self._of: tuple[Description | None, Progress | None] = None, None
        self.latest: dict[str, JobAnswer] = {}
        """The jobs as they were last read, by name."""
        self._told: set[tuple[str, str]] = set()
        """(job, node) pairs whose warning was printed."""
        self._telling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts the task that checks for warnings, until `stop`."""
        self._telling = asyncio.create_task(self._tell_again())

    async def stop(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait([self._telling])
            self._telling = None

    async def _tell_again(self) -> None:
        while True:
            await asyncio.sleep(TELL_SECONDS)
            with suppress(MillstreamError, OSError):  # e.g. the store is being created again
                await self.tell()

    async def tell(self) -> None:
        """Prints the warnings of jobs, once for each node."""
        for name, job in (await self.now()).items():
            for warning in job.warnings:
                about = name, warning.partition(":")[0]
                if about not in self._told:
                    self._told.add(about)
                    self._service.say(f"warning: job {name!r}: {warning}")

    async def now(self) -> dict[str, JobAnswer]:
        """Returns all jobs as of the last committed batch."""
        service, store = self._service, self._service.store
        async with self._reading:  # requests that come meanwhile get the same
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
        latest = await jobs.now()
        return json_answer(JobsAnswer({name: job.summary for name, job in latest.items()}))

    async def one(request: Request) -> Response:
        query(request, ())
        name, latest = segment(request, "name"), await jobs.now()
        if name not in latest:
            hint = did_you_mean(name, latest) if latest else "the application has none"
            raise Refusal(404, f"there is no job {name[:100]!r}; {hint}")
        return json_answer(latest[name])

    return [Route("GET", ("jobs",), every), Route("GET", ("jobs", "{name}"), one)]
