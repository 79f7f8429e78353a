"""How the application is doing: GET /status, GET /history, GET /graph.

All of it comes from three things: the description of the application, its progress record, and the
samples of that record (see samples.py); `status_of` is pure. A source, stream or function of the
application is listed even when nothing has come through it yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from millstream.actions.overview import ActionState, action_states
from millstream.description import Description, FunctionDescription, SourceDescription
from millstream.server.answers import Refusal, json_answer
from millstream.server.catalogue import Catalogue
from millstream.server.jobs import Jobs
from millstream.server.numbered import Backlog
from millstream.server.paths import Route, query, whole_number
from millstream.server.sampler import Sampler
from millstream.server.samples import SECOND, Count, Samples, Window, percentile
from millstream.server.service import Service
from millstream.stores.deliveries import Deliveries, deliveries_to, together
from millstream.stores.home import Facts
from millstream.stores.progress import Progress, SourceProgress
from millstream.stores.trouble import Trouble, read_troubles
from millstream.windows.showing import summary

RATE_SECONDS, RECENT_SECONDS = 10, 60
"""Rates are over the last 10 seconds; times and latencies over the last 60."""
QUEUES, SLOWEST = 10, 5


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast counts go up now; nothing does in an application that does not run."""

    short: Window | None
    long: Window | None
    running: bool

    def rate(self, count: Count) -> float:
        """By how much a second, over the last few seconds."""
        if not self.running or self.short is None:
            return 0.0
        return round(self.short.rate(count), 3)

    def busy(self, microseconds: Count) -> float:
        """The share of the last minute; over 1 for what several cores did at once."""
        if not self.running or self.long is None:
            return 0.0
        return round(self.long.rate(microseconds) / SECOND, 4)

    def mean(self, progress: Progress, amount: Count, number: Count) -> float | None:
        """The mean amount of each of a number, of the last minute's, or of all if it had none."""
        if self.long is not None and (recent := self.long.increase(number)):
            return round(self.long.increase(amount) / recent, 3)
        return round(amount(progress) / number(progress), 3) if number(progress) else None


def status_of(
    description: Description,
    progress: Progress,
    samples: Samples,
    backlogs: Mapping[str, Backlog],
    now: int,
    *,
    running: bool,
    server: Mapping[str, Any],
    troubles: Sequence[Trouble] = (),
    actions: Sequence[ActionState] = (),
    jobs: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The whole status, as GET /status answers it."""
    rates = Rates(samples.window(now, RATE_SECONDS), samples.window(now, RECENT_SECONDS), running)
    latencies = samples.latencies(now, RECENT_SECONDS)
    functions = [_function(one, progress, rates) for one in description.functions]
    waiting = sorted(functions, key=lambda one: -one["waiting"])
    slow = sorted(functions, key=lambda one: -one["busy"])
    return {
        "app": description.app,
        "order": description.order,
        "running": running,
        "batch": progress.batch,
        "written": progress.written or None,
        "age": max(0, now - progress.written) / SECOND if progress.written else None,
        "clock": progress.clock or None,
        "events": progress.events,
        "late": progress.late,
        "dead_letters": progress.dead_letters,
        "waiting": progress.waiting,
        "deliveries": accounted(
            together(deliveries_to(progress, one.name) for one in description.functions)
        ),
        "intake": {
            "bytes": progress.intake,
            "pressure": round(progress.pressure, 3),
            "held": progress.held,
        },
        "feedback": progress.feedback,
        "horizon": progress.horizon,
        "rate": rates.rate(lambda one: one.events),
        "seconds": progress.seconds,
        "batch_seconds": progress.last_seconds if progress.batch >= 0 else None,
        "latency": {
            "last": None if progress.latency is None else progress.latency / SECOND,
            "p50": percentile(latencies, 50),
            "p99": percentile(latencies, 99),
        },
        "sources": [
            _source(one, progress, rates, backlogs.get(one.name), now)
            for one in description.sources
        ],
        "streams": [_stream(name, progress, rates) for name in description.streams],
        "functions": functions,
        "queues": [
            {"function": one["name"], "waiting": one["waiting"]}
            for one in waiting[:QUEUES]
            if one["waiting"] > 0
        ],
        "slowest": [one["name"] for one in slow[:SLOWEST] if one["busy"] > 0],
        "troubles": [
            {"name": one.name, "since": one.since, "error": one.error} for one in troubles
        ],
        "actions": [_action(one) for one in actions],
        "jobs": {name: summary(one) for name, one in (jobs or {}).items()},
        "server": dict(server),
    }


def _source(
    source: SourceDescription,
    progress: Progress,
    rates: Rates,
    backlog: Backlog | None,
    now: int,
) -> dict[str, Any]:
    known = progress.sources.get(source.name, SourceProgress())
    seconds = None
    if backlog is not None:
        oldest = now if backlog.oldest is None else backlog.oldest
        seconds = max(0, now - oldest) / SECOND
    return {
        "name": source.name,
        "address": source.address,
        "events": known.events,
        "rate": rates.rate(lambda one: _of_source(one, source.name)),
        "lag_bytes": None if backlog is None else backlog.bytes,
        "lag_events": None if backlog is None else backlog.events,
        "lag_seconds": seconds,
        "highest": known.highest,
        "dead_letters": progress.refused.get(source.name, 0),
    }


def _of_source(progress: Progress, name: str) -> int:
    source = progress.sources.get(name)
    return 0 if source is None else source.events


def _stream(name: str, progress: Progress, rates: Rates) -> dict[str, Any]:
    return {
        "name": name,
        "events": progress.emitted.get(name, 0),
        "rate": rates.rate(lambda one: one.emitted.get(name, 0)),
    }


def accounted(deliveries: Deliveries) -> dict[str, int]:
    """What was owed and what became of it, with what is not accounted for: 0."""
    return {**deliveries._asdict(), "residual": deliveries.residual}


def _function(function: FunctionDescription, progress: Progress, rates: Rates) -> dict[str, Any]:
    name = function.name

    def processed(one: Progress) -> int:
        return one.processed.get(name, 0)

    def spent(one: Progress) -> int:
        return one.spent.get(name, 0)

    large, unranked = progress.large.get(name), progress.unranked.get(name)
    return {
        "name": name,
        "kind": function.kind,
        "processed": processed(progress),
        "rate": rates.rate(processed),
        "seconds": spent(progress) / SECOND,
        "microseconds": rates.mean(progress, spent, processed),
        "busy": rates.busy(spent),
        "dead_letters": progress.failed.get(name, 0),
        "waiting": progress.waiting_at.get(name, 0),
        "deliveries": accounted(deliveries_to(progress, name)),
        "slates": progress.slates.get(name, 0) if function.kind == "update" else None,
        "swept": progress.swept.get(name, 0) if function.kind == "update" else None,
        "evicted": progress.evicted.get(name, 0) if function.kind == "update" else None,
        "unranked": None if unranked is None else unranked.count,
        "largest": None if large is None else {"key": large.key, "bytes": large.bytes},
    }


def _action(state: ActionState) -> dict[str, Any]:
    tried = state.retrying
    return {
        "name": state.name,
        "address": state.address,
        "done": state.done,
        "waiting": state.waiting,
        "failed": state.failed,
        "dead_letters": state.dead_letters,
        "missed": state.missed,
        "retrying": tried and {"since": tried.since, "tries": tried.tries, "error": tried.error},
        "trouble": state.trouble,
    }


class Overview:
    """The status of what a service serves, put together when it is asked for. One a server."""

    def __init__(self, service: Service, catalogue: Catalogue, jobs: Jobs) -> None:
        self._service = service
        self._jobs = jobs
        self._catalogue = catalogue
        self._sampler = Sampler(service.store.progress, service.clock)
        service.on_start(self._sampler.start)
        service.on_stop(self._sampler.stop)

    async def refresh(self) -> None:
        """Read what is read beside the event loop, for `now`."""
        await self._jobs.now()

    def now(self) -> dict[str, Any]:
        service, store = self._service, self._service.store
        self._sampler.take()
        progress = store.progress()
        description = store.description() or bare_description(store.home.facts, progress)
        counters, running = service.counters, store.running()
        return status_of(
            description,
            progress,
            self._sampler.samples,
            self._catalogue.backlogs(progress),
            service.clock(),
            running=running,
            troubles=read_troubles(store.home.path) if running else (),
            actions=action_states(store.home.path),
            jobs=self._jobs.latest,
            server={
                "since": service.since,
                "requests": counters.requests,
                "accepted": counters.accepted,
                "refused": counters.refused,
                "answers": by_class(counters.answers),
                "url": service.url,
            },
        )

    def history(self, seconds: int) -> dict[str, list[Any]]:
        self._sampler.take()
        return self._sampler.samples.history(self._service.clock(), seconds)


def by_class(answers: Mapping[int, int]) -> dict[str, int]:
    """Answers by the class of their status.

    >>> by_class({404: 1, 200: 5, 400: 2})
    {'2xx': 5, '4xx': 3}
    """
    classes: dict[str, int] = {}
    for status in sorted(answers):
        name = f"{status // 100}xx"
        classes[name] = classes.get(name, 0) + answers[status]
    return classes


def bare_description(facts: Facts, progress: Progress) -> Description:
    """What the store itself says of an application that has left no description in it yet."""
    kinds = {name: "update" if name in facts.updates else "map" for name in progress.processed}
    kinds.update(dict.fromkeys(facts.updates, "update"))
    return Description(
        facts.app,
        "",
        [SourceDescription(name, None, None, None, False, "") for name in progress.sources],
        [
            FunctionDescription(name, kind, [], [], facts.updates.get(name), None, "")
            for name, kind in kinds.items()
        ],
        facts.streams,
        [],
        {},
    )


def routes(service: Service, overview: Overview) -> list[Route]:
    async def status(request: Request) -> Response:
        query(request, ())
        await overview.refresh()
        return json_answer(overview.now())

    async def history(request: Request) -> Response:
        seconds = whole_number(query(request, ("seconds",)), "seconds", 300, 1, 600)
        return json_answer(overview.history(seconds))

    async def graph(request: Request) -> Response:
        query(request, ())
        description = service.store.description()
        if description is None:
            raise Refusal(
                404,
                "the store does not say what its application is; run the application once, or "
                "name it: millstream serve APP",
            )
        return json_answer(description)

    return [
        Route("GET", ("status",), status),
        Route("GET", ("history",), history),
        Route("GET", ("graph",), graph),
    ]
