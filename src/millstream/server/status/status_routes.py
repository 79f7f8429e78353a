"""The status of the application: GET /status, GET /history, GET /graph.

It is computed from the description of the application, its progress record, and the samples of that
record (see samples.py); `status_of` is pure. Every source, stream and function of the application
is listed, even before its first event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.actions.overview import ActionState, action_states
from millstream.description import Description, FunctionDescription, SourceDescription
from millstream.messages.jobs import JobAnswer
from millstream.messages.status import (
    ActionStatus,
    BatchLatency,
    DeliveryCounts,
    FunctionQueue,
    FunctionStatus,
    History,
    IntakeStatus,
    LargestSlate,
    LatencyQuantiles,
    LettersLeft,
    MirrorFreshness,
    OutputStatus,
    ServerStatus,
    SinkTrouble,
    SourceStatus,
    Status,
    StreamStatus,
)
from millstream.server.http.answers import Refusal, json_answer
from millstream.server.http.paths import Route, query, whole_number
from millstream.server.jobs.job_routes import Jobs
from millstream.server.service import Service
from millstream.server.status.attention import attention_of
from millstream.server.status.lag_trend import LagTrend
from millstream.server.status.sampler import HISTORY, Sampler
from millstream.server.status.samples import (
    OLDEST,
    SECOND,
    Count,
    Samples,
    SampleWindow,
    percentile,
)
from millstream.server.streams.catalogue import Catalogue
from millstream.server.streams.numbered_records import Backlog
from millstream.stores.function_counts import FunctionCounts, in_all
from millstream.stores.home import Facts
from millstream.stores.progress import Latency, Progress, SourceProgress
from millstream.stores.trouble import Trouble, read_troubles
from millstream.version import VERSION

RATE_SECONDS, RECENT_SECONDS = 10, 60
"""Rates are over the last 10 seconds; times and latencies over the last 60."""
QUEUES, SLOWEST = 10, 5
LONGEST_STEP = 60
"""The longest step of the history, in seconds."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The current rates of counters; all are 0 in an application that is not running."""

    short: SampleWindow | None
    long: SampleWindow | None
    running: bool

    def rate(self, count: Count) -> float:
        """Returns the increase per second, over the last RATE_SECONDS."""
        if not self.running or self.short is None:
            return 0.0
        return round(self.short.rate(count), 3)

    def busy(self, microseconds: Count) -> float:
        """Returns the busy share of the last minute; over 1 if several cores worked at once."""
        if not self.running or self.long is None:
            return 0.0
        return round(self.long.rate(microseconds) / SECOND, 4)

    def mean(self, progress: Progress, amount: Count, number: Count) -> float | None:
        """Returns `amount` per `number` over the last minute, or over all time if it had none."""
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
    server: ServerStatus,
    troubles: Sequence[Trouble] = (),
    actions: Sequence[ActionState] = (),
    jobs: Mapping[str, JobAnswer] | None = None,
    mirror: MirrorFreshness | None = None,
    lag_growths: Mapping[str, float | None] | None = None,
    letters_left: LettersLeft | None = None,
) -> Status:
    """Computes the whole status. `letters_left` None: all that were ever counted."""
    rates = Rates(samples.window(now, RATE_SECONDS), samples.window(now, RECENT_SECONDS), running)
    latencies = samples.latencies(now, RECENT_SECONDS)
    functions = [_function(function, progress, rates) for function in description.functions]
    waiting = sorted(functions, key=lambda function: -function.waiting)
    slow = sorted(functions, key=lambda function: -function.busy)
    growths, pending = lag_growths or {}, progress.pending
    status = Status(
        app=description.app,
        order=description.order,
        running=running,
        batch=progress.batch,
        written=progress.written or None,
        age=max(0, now - progress.written) / SECOND if progress.written else None,
        clock=progress.clock or None,
        events=progress.events,
        late=progress.late,
        dead_letters=progress.dead_letters,
        letters_left=letters_left or LettersLeft(progress.dead_letters, progress.late),
        waiting=progress.waiting,
        deliveries=accounted(
            in_all(progress.counts(function.name) for function in description.functions)
        ),
        intake=IntakeStatus(progress.timing.intake, round(pending.pressure, 3), pending.held),
        feedback=pending.feedback,
        horizon=progress.horizon,
        rate=rates.rate(lambda sample: sample.events),
        seconds=progress.timing.seconds,
        batch_seconds=progress.timing.last_seconds if progress.batch >= 0 else None,
        latency=_latency(progress, latencies),
        sources=[
            _source(
                source, progress, rates, backlogs.get(source.name), growths.get(source.name), now
            )
            for source in description.sources
        ],
        streams=[_stream(name, progress, rates) for name in description.streams],
        functions=functions,
        outputs=[_output(name, description, troubles) for name in description.outputs],
        queues=[
            FunctionQueue(function.name, function.waiting)
            for function in waiting[:QUEUES]
            if function.waiting > 0
        ],
        slowest=[function.name for function in slow[:SLOWEST] if function.busy > 0],
        troubles=[SinkTrouble(trouble.name, trouble.since, trouble.error) for trouble in troubles],
        actions=msgspec.convert(actions, list[ActionStatus], from_attributes=True),
        jobs={name: job.summary for name, job in (jobs or {}).items()},
        mirror=mirror,
        server=server,
        attention=[],
    )
    return msgspec.structs.replace(status, attention=attention_of(status, now))


def _latency(progress: Progress, recent: list[Latency]) -> BatchLatency:
    last = progress.measured
    whole = [latency.whole / SECOND for latency in recent]
    waited = [latency.waited / SECOND for latency in recent]
    return BatchLatency(
        None if last is None else last.whole / SECOND,
        percentile(whole, 50),
        percentile(whole, 99),
        LatencyQuantiles(
            None if last is None else last.waited / SECOND,
            percentile(waited, 50),
            percentile(waited, 99),
        ),
    )


def _source(
    source: SourceDescription,
    progress: Progress,
    rates: Rates,
    backlog: Backlog | None,
    lag_growth: float | None,
    now: int,
) -> SourceStatus:
    known = progress.sources.get(source.name, SourceProgress())
    seconds = None
    if backlog is not None:
        oldest = now if backlog.oldest is None else backlog.oldest
        seconds = max(0, now - oldest) / SECOND
    return SourceStatus(
        name=source.name,
        address=source.address,
        events=known.events,
        rate=rates.rate(lambda sample: _source_events(sample, source.name)),
        lag_bytes=None if backlog is None else backlog.bytes,
        lag_events=None if backlog is None else backlog.events,
        lag_seconds=seconds,
        highest=known.highest,
        dead_letters=known.refused,
        lost=known.lost,
        lag_growth=lag_growth,
    )


def _source_events(progress: Progress, name: str) -> int:
    source = progress.sources.get(name)
    return 0 if source is None else source.events


def _stream(name: str, progress: Progress, rates: Rates) -> StreamStatus:
    rate = rates.rate(lambda sample: sample.emitted.get(name, 0))
    return StreamStatus(name, progress.emitted.get(name, 0), rate)


def _output(name: str, description: Description, troubles: Sequence[Trouble]) -> OutputStatus:
    names = (f"sink {name!r}", f"the log of {name!r}")
    error = next((trouble.error for trouble in troubles if trouble.name in names), None)
    return OutputStatus(name, description.addresses.get(name, ""), error)


def accounted(counts: FunctionCounts) -> DeliveryCounts:
    """Returns the counts of deliveries, with the residual that is not accounted for: 0."""
    return DeliveryCounts(
        *(counts.taken, counts.processed, counts.dropped, counts.diverted, counts.undecided),
        *(counts.dead_letters, counts.late, counts.retried, counts.residual),
    )


def _function(function: FunctionDescription, progress: Progress, rates: Rates) -> FunctionStatus:
    name, is_update = function.name, function.kind == "update"

    def processed(sample: Progress) -> int:
        return sample.counts(name).processed

    def spent(sample: Progress) -> int:
        return sample.counts(name).spent

    counts = progress.counts(name)
    return FunctionStatus(
        name=name,
        kind=function.kind,
        processed=processed(progress),
        rate=rates.rate(processed),
        seconds=spent(progress) / SECOND,
        microseconds=rates.mean(progress, spent, processed),
        busy=rates.busy(spent),
        dead_letters=counts.failed,
        waiting=counts.waiting,
        deliveries=accounted(counts),
        slates=counts.slates if is_update else None,
        swept=counts.swept if is_update else None,
        evicted=counts.evicted if is_update else None,
        unranked=counts.unranked.count if counts.unranked else None,
        largest=LargestSlate(counts.large.key, counts.large.bytes) if counts.large else None,
    )


class Overview:
    """Computes the status of the served store on request. One per server."""

    def __init__(self, service: Service, catalogue: Catalogue, jobs: Jobs) -> None:
        self._service = service
        self._jobs = jobs
        self._catalogue = catalogue
        self._lags: dict[str, LagTrend] = {}
        file = service.store.home.path / HISTORY
        self._sampler = Sampler(service.store.progress, service.clock, file)
        service.on_start(self._sampler.start)
        service.on_stop(self._sampler.stop)

    async def refresh(self) -> None:
        """Reads, beside the event loop, the jobs and the retried letters, which `now` reports."""
        await self._jobs.now()
        await self._service.in_thread(self._catalogue.retried.update)

    def now(self) -> Status:
        service, store = self._service, self._service.store
        self._sampler.take()
        progress = store.progress()
        description = store.description() or bare_description(store.home.facts, progress)
        counters, running = service.counters, store.running()
        backlogs = self._catalogue.backlogs(progress)
        return status_of(
            description,
            progress,
            self._sampler.samples,
            backlogs,
            service.clock(),
            running=running,
            troubles=read_troubles(store.home.path) if running else (),
            actions=action_states(store.home.path),
            jobs=self._jobs.latest,
            mirror=service.freshness(),
            lag_growths=self._lag_growths(backlogs) if running else None,
            letters_left=self._catalogue.letters_left(progress),
            server=ServerStatus(
                since=service.since,
                requests=counters.requests,
                accepted=counters.accepted,
                refused=counters.refused,
                answers=counters.by_class(),
                url=service.url,
                version=VERSION,
                store=service.options.place or str(store.home.path),
            ),
        )

    def _lag_growths(self, backlogs: Mapping[str, Backlog]) -> dict[str, float | None]:
        """Returns the growth of each source's lag, measured over past requests for the status."""
        now = self._service.clock()
        growths: dict[str, float | None] = {}
        for name, backlog in backlogs.items():
            trend = self._lags.setdefault(name, LagTrend())
            trend.add(now, backlog.events)
            growths[name] = trend.growth()
        return growths

    def history(self, seconds: int, step: int) -> History:
        self._sampler.take()
        return self._sampler.samples.history(self._service.clock(), seconds, step)


def bare_description(facts: Facts, progress: Progress) -> Description:
    """Describes an application that has left no description yet, from what the store records."""
    kinds = {name: "update" if name in facts.updates else "map" for name in progress.functions}
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
        parameters = query(request, ("seconds", "step"))
        seconds = whole_number(parameters, "seconds", 300, 1, OLDEST)
        step = whole_number(parameters, "step", 1, 1, LONGEST_STEP)
        return json_answer(overview.history(max(seconds, step), step))

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
