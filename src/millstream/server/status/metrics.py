"""The status for Prometheus: GET /metrics.

The same figures as GET /status, named by Prometheus' conventions: base units (seconds, bytes), and
counters that end in `_total`. Counters only go up as long as the store exists (those of HTTP: as
long as the server runs). An unknown value has no sample. Rates are left out: Prometheus computes
them from counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from millstream.messages.jobs import JobSummary, NodeCounts
from millstream.messages.status import (
    ActionStatus,
    DeliveryCounts,
    FunctionStatus,
    ServerStatus,
    SourceStatus,
    Status,
    StreamStatus,
)
from millstream.server.http.paths import Route, query
from millstream.server.status.samples import SECOND
from millstream.server.status.status_routes import Overview

Family = type[CounterMetricFamily | GaugeMetricFamily]
COUNTER, GAUGE = CounterMetricFamily, GaugeMetricFamily
Row = TypeVar("Row")
RowMetric: TypeAlias = tuple[Family, str, Callable[[Row], float | None], str]
"""A metric: its kind, its name, the value of a row that it shows, and its help."""
Table: TypeAlias = list[RowMetric[Row]]


def counter(name: str, value: Callable[[Row], float | None], help_: str) -> RowMetric[Row]:
    return COUNTER, name, value, help_


def gauge(name: str, value: Callable[[Row], float | None], help_: str) -> RowMetric[Row]:
    return GAUGE, name, value, help_


OF_SOURCES: Table[SourceStatus] = [
    counter("events", lambda row: row.events, "Records taken in."),
    counter(
        "source_dead_letters", lambda row: row.dead_letters, "Records that did not become events."
    ),
    counter(
        "source_lost", lambda row: row.lost, "Records that were removed before they could be read."
    ),
    gauge("lag_bytes", lambda row: row.lag_bytes, "Bytes in the log or topic, not taken in yet."),
    gauge(
        "lag_events", lambda row: row.lag_events, "Records in the log or topic, not taken in yet."
    ),
    gauge("lag_seconds", lambda row: row.lag_seconds, "Age of the oldest record not taken in yet."),
]
OF_STREAMS: Table[StreamStatus] = [
    counter("stream_events", lambda row: row.events, "Events put onto the stream."),
]
OF_FUNCTIONS: Table[FunctionStatus] = [
    counter(
        "function_events", lambda row: row.processed, "Events that the function has processed."
    ),
    counter(
        "function_seconds", lambda row: row.seconds, "Time that the function took, over all tasks."
    ),
    counter("dead_letters", lambda row: row.dead_letters, "Events that the function failed on."),
    gauge("waiting", lambda row: row.waiting, "Events that wait for the horizon at the function."),
]
OF_ACTIONS: Table[ActionStatus] = [
    counter("action_done", lambda row: row.done, "Events of the action that were carried out."),
    counter(
        "action_dead_letters",
        lambda row: row.dead_letters,
        "Events of the action that were given up.",
    ),
    gauge(
        "action_waiting",
        lambda row: row.waiting,
        "Events of the action that are yet to be carried out.",
    ),
    gauge(
        "action_failed",
        lambda row: row.failed,
        "Dead letters of the action that were not put back.",
    ),
]
OF_UPDATES: Table[FunctionStatus] = [
    gauge("slates", lambda row: row.slates, "Slates of the update."),
    counter(
        "slates_evicted",
        lambda row: row.evicted,
        "Slates removed because there was no room for them.",
    ),
]

GAPS = "Panes of the node that may lack bytes of its log, which were gone before it read them."
OF_DELIVERIES: Table[DeliveryCounts] = [
    counter(
        "taken",
        lambda row: row.taken,
        "Deliveries to the function: one event to one function is one delivery.",
    ),
    counter(
        "retried",
        lambda row: row.retried,
        "Deliveries that had failed, or were late, dropped or diverted, and were retried.",
    ),
    counter("dropped", lambda row: row.dropped, "Deliveries past a limit that were dropped."),
    counter(
        "diverted",
        lambda row: row.diverted,
        "Deliveries past a limit that went to the overflow stream.",
    ),
    gauge(
        "residual",
        lambda row: row.residual,
        "Deliveries that are not accounted for; 0, or there is a fault in Millstream.",
    ),
]
OF_NODES: Table[NodeCounts] = [
    counter("records_read", lambda row: row.read, "Records that the node has read."),
    counter(
        "records_on_time",
        lambda row: row.on_time,
        "Records of the node that are in panes which came on time.",
    ),
    counter(
        "records_late",
        lambda row: row.late,
        "Records of the node that came after their pane or its windows.",
    ),
    counter(
        "records_shed",
        lambda row: row.shed,
        "Records of the node that were given up with their pane.",
    ),
    counter(
        "records_dead",
        lambda row: row.dead,
        "Records of the node that could not be read or mapped.",
    ),
    counter(
        "records_misdated",
        lambda row: row.misdated,
        "Those of the dead records that were set aside for their time.",
    ),
    gauge(
        "records_residual",
        lambda row: row.residual,
        "Records of the node not accounted for; 0, or there is a fault.",
    ),
    counter("panes_with_gaps", lambda row: row.gaps, GAPS),
]


def families(status: Status) -> Iterator[Metric]:
    yield from _application(status)
    yield from _each("source", status.sources, OF_SOURCES)
    yield from _each("stream", status.streams, OF_STREAMS)
    yield from _each("function", status.functions, OF_FUNCTIONS)
    updates = [function for function in status.functions if function.kind == "update"]
    yield from _each("update", updates, OF_UPDATES)
    yield from _each("action", status.actions, OF_ACTIONS)
    yield from _jobs(status.jobs)
    yield from _server(status.server)


def _application(status: Status) -> Iterator[Metric]:
    names = {"app": status.app, "order": status.order}
    latency = status.latency
    yield InfoMetricFamily("millstream_app", "The application whose store is served.", names)
    yield _one(GAUGE, "running", int(status.running), "Whether the application runs: 1 or 0.")
    yield _one(GAUGE, "batch", status.batch, "The last committed batch; -1 before the first.")
    yield _one(
        GAUGE,
        "commit_time_seconds",
        _seconds(status.written),
        "When the last batch was committed, in seconds since the epoch.",
    )
    yield _one(
        GAUGE,
        "horizon_seconds",
        _seconds(status.horizon),
        "The horizon: the progress of event time, in seconds since the epoch.",
    )
    yield _one(COUNTER, "batch_seconds", status.seconds, "Time that all batches took.")
    yield _one(GAUGE, "last_batch_seconds", status.batch_seconds, "Time of the last batch.")
    yield _one(
        GAUGE,
        "latency_seconds",
        latency.last,
        "Time from the arrival of the oldest event that the last batch fed to its commit.",
    )
    yield _labelled(
        GAUGE,
        "latency_quantile_seconds",
        "quantile",
        [("0.5", latency.p50), ("0.99", latency.p99)],
        "Latency of the batches of the last minute.",
    )
    yield _labelled(
        GAUGE,
        "latency_waited_quantile_seconds",
        "quantile",
        [("0.5", latency.waited.p50), ("0.99", latency.waited.p99)],
        "The part of the latency for which events waited for the horizon.",
    )
    yield _one(COUNTER, "late", status.late, "Events that came after the horizon.")
    yield _one(GAUGE, "feedback", status.feedback, "Feedback events kept for the next batch.")
    for kind, fate, value, help_ in OF_DELIVERIES:
        rows = [(function.name, value(function.deliveries)) for function in status.functions]
        yield _labelled(kind, f"deliveries_{fate}", "function", rows, help_)
    intake = status.intake
    yield _one(GAUGE, "intake_bytes", intake.bytes, "Bytes that the next batch may take in.")
    yield _one(GAUGE, "pressure", intake.pressure, "At 1 throttled updates stop the sources.")


def _jobs(jobs: Mapping[str, JobSummary]) -> Iterator[Metric]:
    opened = [(name, job.open) for name, job in jobs.items()]
    yield _labelled(GAUGE, "windows_open", "job", opened, "Windows of the job that are open.")
    closed = [(name, job.closed) for name, job in jobs.items()]
    yield _labelled(
        COUNTER, "windows_closed", "job", closed, "Windows of the job that were closed."
    )
    for kind, metric, value, help_ in OF_NODES:
        family = kind(f"millstream_job_{metric}", help_, labels=["job", "node"])
        for name, job in jobs.items():
            for node, counts in job.nodes.items():
                if (count := value(counts)) is not None:
                    family.add_metric([name, node], count)
        yield family


def _server(server: ServerStatus) -> Iterator[Metric]:
    yield _one(
        GAUGE,
        "server_start_time_seconds",
        _seconds(server.since),
        "When the server started, in seconds since the epoch.",
    )
    yield _labelled(
        COUNTER,
        "http_requests",
        "status",
        server.answers.items(),
        "Requests, by the class of their answer's status.",
    )
    yield _one(COUNTER, "http_accepted", server.accepted, "Events accepted over HTTP.")
    yield _one(COUNTER, "http_refused", server.refused, "Lines refused over HTTP.")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_NamedRow = TypeVar("_NamedRow", bound=_Named)


def _each(label: str, rows: list[_NamedRow], metrics: Table[_NamedRow]) -> Iterator[Metric]:
    for kind, name, value, help_ in metrics:
        yield _labelled(kind, name, label, [(row.name, value(row)) for row in rows], help_)


def _one(kind: Family, name: str, value: float | None, help_: str) -> Metric:
    return kind(f"millstream_{name}", help_, value)


def _labelled(
    kind: Family, name: str, label: str, samples: Iterable[tuple[str, float | None]], help_: str
) -> Metric:
    family = kind(f"millstream_{name}", help_, labels=[label])
    for text, value in samples:
        if value is not None:
            family.add_metric([text], value)
    return family


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / SECOND


class StatusCollector(Collector):
    """Gives a registry the metrics of the current status."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        return families(self._status())


def routes(overview: Overview, *others: Collector) -> list[Route]:
    registry = CollectorRegistry()
    registry.register(StatusCollector(overview.now))
    for other in others:
        registry.register(other)
    ProcessCollector(registry=registry)  # the server's own memory, CPU time and open files

    async def metrics(request: Request) -> Response:
        query(request, ())
        await overview.refresh()
        text = generate_latest(registry)
        return Response(text, headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    return [Route("GET", ("metrics",), metrics)]
