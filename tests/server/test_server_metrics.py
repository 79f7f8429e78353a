"""GET /metrics: the status in Prometheus' text format."""

import re
from pathlib import Path

from calm_status import ACTION, CALM, COUNTS, DELIVERIES, JOB, NOW, SOURCE, UPDATE
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from served import MadeStore, asked

from millstream.messages.status import (
    BatchLatency,
    IntakeStatus,
    LatencyQuantiles,
    ServerStatus,
    Status,
    StreamStatus,
)
from millstream.server.status.metrics import StatusCollector
from millstream.server.status.samples import SECOND


def a_status(**changes) -> Status:
    """The status of an application with odd names."""
    source = replace(SOURCE, name='in"\\\n', events=100, dead_letters=4, lost=2)
    source = replace(source, lag_bytes=5000, lag_events=12, lag_seconds=1.5)
    files = replace(source, name="files", lag_bytes=None, lag_events=None, lag_seconds=None)
    owed = replace(DELIVERIES, taken=52, dropped=1, diverted=2, retried=3)
    update = replace(UPDATE, processed=40, seconds=0.25, dead_letters=3, waiting=7, deliveries=owed)
    update = replace(update, slates=55, evicted=7)
    tidy = replace(update, name="tidy", kind="map", slates=None, swept=None, evicted=None)
    counts = replace(COUNTS, read=11, on_time=5, late=3, shed=2, dead=1, gaps=4, misdated=1)
    status = replace(
        CALM,
        order="arrival",
        horizon=NOW - 5 * SECOND,
        late=9,
        feedback=2,
        intake=IntakeStatus(bytes=4096, pressure=0.5, held=3),
        seconds=31.5,
        batch_seconds=1.25,
        latency=BatchLatency(0.5, 0.25, 0.75, LatencyQuantiles(0.1, 0.1, 0.2)),
        sources=[source, files],
        streams=[StreamStatus("known", 60, 3.0)],
        functions=[update, tidy],
        actions=[replace(ACTION, done=70, dead_letters=6, waiting=5, failed=1)],
        jobs={"errors": replace(JOB, nodes={"web1": counts}, open=2, closed=5)},
        server=ServerStatus(
            NOW - 60 * SECOND, 6, 2, 1, {"2xx": 5, "4xx": 1}, "http://here", "0.1", "store"
        ),
    )
    return replace(status, **changes)


def parsed(status: Status) -> dict[str, Metric]:
    """The families of the text that Prometheus is given."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: status))
    text = generate_latest(registry).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def values(family: Metric) -> dict[tuple[str, ...], float]:
    """The samples by the values of their labels."""
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def test_every_figure_is_there() -> None:
    """Each has the value of the status, in base units, under its name and labels."""
    found = parsed(a_status())
    assert {name: values(family) for name, family in found.items()} == {
        "millstream_app_info": {("retail", "arrival"): 1},
        "millstream_running": {(): 1},
        "millstream_batch": {(): 30},
        "millstream_commit_time_seconds": {(): NOW / SECOND},
        "millstream_horizon_seconds": {(): NOW / SECOND - 5},
        "millstream_batch_seconds": {(): 31.5},
        "millstream_last_batch_seconds": {(): 1.25},
        "millstream_latency_seconds": {(): 0.5},
        "millstream_latency_quantile_seconds": {("0.5",): 0.25, ("0.99",): 0.75},
        "millstream_latency_waited_quantile_seconds": {("0.5",): 0.1, ("0.99",): 0.2},
        "millstream_late": {(): 9},
        "millstream_feedback": {(): 2},
        "millstream_deliveries_taken": {("count",): 52, ("tidy",): 52},
        "millstream_deliveries_dropped": {("count",): 1, ("tidy",): 1},
        "millstream_deliveries_diverted": {("count",): 2, ("tidy",): 2},
        "millstream_deliveries_retried": {("count",): 3, ("tidy",): 3},
        "millstream_deliveries_residual": {("count",): 0, ("tidy",): 0},
        "millstream_intake_bytes": {(): 4096},
        "millstream_pressure": {(): 0.5},
        "millstream_events": {('in"\\\n',): 100, ("files",): 100},
        "millstream_source_dead_letters": {('in"\\\n',): 4, ("files",): 4},
        "millstream_source_lost": {('in"\\\n',): 2, ("files",): 2},
        "millstream_lag_bytes": {('in"\\\n',): 5000},
        "millstream_lag_events": {('in"\\\n',): 12},
        "millstream_lag_seconds": {('in"\\\n',): 1.5},
        "millstream_stream_events": {("known",): 60},
        "millstream_function_events": {("count",): 40, ("tidy",): 40},
        "millstream_function_seconds": {("count",): 0.25, ("tidy",): 0.25},
        "millstream_dead_letters": {("count",): 3, ("tidy",): 3},
        "millstream_waiting": {("count",): 7, ("tidy",): 7},
        "millstream_slates": {("count",): 55},
        "millstream_slates_evicted": {("count",): 7},
        "millstream_action_done": {("notify",): 70},
        "millstream_action_dead_letters": {("notify",): 6},
        "millstream_action_waiting": {("notify",): 5},
        "millstream_action_failed": {("notify",): 1},
        "millstream_windows_open": {("errors",): 2},
        "millstream_windows_closed": {("errors",): 5},
        "millstream_job_records_read": {("errors", "web1"): 11},
        "millstream_job_records_on_time": {("errors", "web1"): 5},
        "millstream_job_records_late": {("errors", "web1"): 3},
        "millstream_job_records_shed": {("errors", "web1"): 2},
        "millstream_job_records_dead": {("errors", "web1"): 1},
        "millstream_job_records_misdated": {("errors", "web1"): 1},
        "millstream_job_records_residual": {("errors", "web1"): 0},
        "millstream_job_panes_with_gaps": {("errors", "web1"): 4},
        "millstream_server_start_time_seconds": {(): NOW / SECOND - 60},
        "millstream_http_requests": {("2xx",): 5, ("4xx",): 1},
        "millstream_http_accepted": {(): 2},
        "millstream_http_refused": {(): 1},
    }


def test_names_and_types_follow_the_conventions() -> None:
    """Counters end in _total and nothing else does; every metric has a help that is a sentence."""
    for name, family in parsed(a_status()).items():
        assert re.fullmatch(r"millstream(_[a-z]+)+", name)
        assert re.fullmatch(r"[A-Z].*[^ ]\.", family.documentation), name
        assert family.type in ("counter", "gauge"), name
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter"), sample.name
            assert sample.name.startswith("millstream_")


def test_what_is_not_known_has_no_sample() -> None:
    """A gap in a graph is right, a zero would be wrong."""
    unknown = a_status(
        written=None,
        horizon=None,
        batch_seconds=None,
        latency=BatchLatency(None, None, None, LatencyQuantiles(None, None, None)),
    )
    found = parsed(unknown)
    for name in ("commit_time", "horizon", "last_batch", "latency", "latency_quantile"):
        assert values(found[f"millstream_{name}_seconds"]) == {}


def test_a_server_is_scraped(tmp_path: Path) -> None:
    """The answer is of the type that Prometheus knows, and is as of now each time."""
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    made.commit(late=3, processed={"count": 8}, slates={"count": 2})
    with asked(made.path) as client:

        def scraped() -> dict[str, Metric]:
            answer = client.get("/metrics")
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            return {one.name: one for one in text_string_to_metric_families(answer.text)}

        found = scraped()
        assert values(found["millstream_batch"]) == {(): 0}
        assert values(found["millstream_running"]) == {(): 0}
        assert values(found["millstream_late"]) == {(): 3}
        assert values(found["millstream_slates"]) == {("count",): 2}
        assert values(found["process_resident_memory_bytes"])[()] > 0
        made.commit(late=4)
        client.get("/nothing")
        found = scraped()
        assert values(found["millstream_batch"]) == {(): 1}
        assert values(found["millstream_late"]) == {(): 4}
        assert values(found["millstream_http_requests"]) == {("2xx",): 1, ("4xx",): 1}
