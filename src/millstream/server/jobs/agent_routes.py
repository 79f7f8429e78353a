"""The agents: POST /agents/{node}, by which an agent says hello, and GET /agents.

The root's `TreePlacement` decides the parent of each agent; it is only in this server's memory. The
answer to a hello tells an agent which jobs to run: those of the application that name its node and
that have a definition or a package for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.description import Description
from millstream.nearest import did_you_mean
from millstream.server.http.answers import Refusal, json_answer
from millstream.server.http.paths import Route, query, segment
from millstream.server.service import Service
from millstream.trees.messages import (
    AgentsAnswer,
    Hello,
    HelloAnswer,
    JobTicket,
    Member,
    Orders,
    Seat,
)
from millstream.trees.tree_placement import EVERY, TreePlacement
from millstream.windows.placed import job_parts

MOST_AGENTS = 100_000

_hello = msgspec.json.Decoder(Hello)


class Agents:
    """The agents of the application. One per server."""

    def __init__(self, service: Service, clock: Callable[[], float] = time.monotonic) -> None:
        self._service, self._clock = service, clock
        self._placement = TreePlacement(service.clock(), fan_out=service.options.fan_out)
        self._described: Description | None = None
        self._tickets: dict[str, list[JobTicket]] = {}

    def routes(self) -> list[Route]:
        return [
            Route("GET", ("agents",), self._list),
            Route("POST", ("agents", "{node}"), self._greeted, "agent"),
            Route("GET", ("jobs", "{name}", "definition"), self._definition, "agent"),
        ]

    async def _list(self, request: Request) -> Response:
        query(request, ())
        return json_answer(AgentsAnswer(self._placement.rows(self._clock())))

    async def _greeted(self, request: Request) -> Response:
        query(request, ())
        try:
            hello = _hello.decode(await request.body())
        except msgspec.DecodeError as error:
            raise Refusal(400, f"the body must be an agent's hello as JSON: {error}") from None
        node = segment(request, "node")
        if hello.member.node != node:
            raise Refusal(
                409, f"the hello must be of node {node[:100]!r}; got {hello.member.node[:100]!r}"
            )
        members = (hello.member, *hello.below)
        if len(self._placement) + len(members) > MOST_AGENTS:
            raise Refusal(
                503, f"there are {MOST_AGENTS} agents already", headers={"Retry-After": "5"}
            )
        seats = self._placement.hello(hello, self._clock())
        return json_answer(HelloAnswer(EVERY, self._orders(members, seats)))

    def _orders(self, members: tuple[Member, ...], seats: Mapping[str, Seat]) -> dict[str, Orders]:
        orders: dict[str, Orders] = {}
        tickets = self._wanted()
        for member in members:
            seat = seats.get(member.node)
            wanted = tickets.get(member.node, []) if member.hosts else member.jobs
            jobs = wanted if wanted != member.jobs else None
            if seat is not None or jobs is not None:
                orders[member.node] = Orders(seat, jobs)
        return orders

    def _wanted(self) -> dict[str, list[JobTicket]]:
        """Returns the jobs that each node is to run."""
        description = self._service.store.description()
        if description is not self._described:
            self._described = description
            self._tickets = tickets_of({} if description is None else description.parts)
        return self._tickets

    async def _definition(self, request: Request) -> Response:
        query(request, ())
        description = self._service.store.description()
        parts = {} if description is None else description.parts
        name = segment(request, "name")
        jobs = {job: part for job, part in job_parts(parts).items() if part.agents}
        if name not in jobs:
            hint = did_you_mean(name, jobs) if jobs else "the application has none with agents"
            raise Refusal(404, f"there is no job {name[:100]!r} for agents; {hint}")
        published = jobs[name].definition
        if published is None:
            raise Refusal(
                409,
                f"job {name!r} is Python, and no package of its code was given: start its agents "
                "with the application's file, or run the application with --package",
            )
        return json_answer(published)


def tickets_of(parts: Mapping[str, Any]) -> dict[str, list[JobTicket]]:
    """Returns the jobs that each node is to run, in order, from an application's parts.

    They include Python jobs without a package: an agent that asks for the definition of one is told
    what is missing."""
    tickets: dict[str, list[JobTicket]] = {}
    for name, part in job_parts(parts).items():
        if part.agents:
            for node in part.nodes:
                tickets.setdefault(node, []).append(JobTicket(name, part.version or ""))
    return {node: sorted(wanted) for node, wanted in tickets.items()}
