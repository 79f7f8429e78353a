"""The status of an application that is well, and its rows, for tests to change."""

from __future__ import annotations

from millstream.messages.jobs import JobSummary, NodeCounts
from millstream.messages.status import (
    ActionStatus,
    BatchLatency,
    DeliveryCounts,
    FunctionStatus,
    IntakeStatus,
    LatencyQuantiles,
    LettersLeft,
    ServerStatus,
    SourceStatus,
    Status,
)

NOW = 1_700_000_000_000_000
DELIVERIES = DeliveryCounts(
    taken=0,
    processed=0,
    dropped=0,
    diverted=0,
    waiting=0,
    dead_letters=0,
    late=0,
    retried=0,
    residual=0,
)
SOURCE = SourceStatus(
    name="in",
    address="log:/x",
    events=0,
    rate=0.0,
    lag_bytes=100,
    lag_events=3,
    lag_seconds=1.0,
    highest=NOW,
    dead_letters=0,
    lost=0,
    lag_growth=None,
)
UPDATE = FunctionStatus(
    name="count",
    kind="update",
    processed=0,
    rate=0.0,
    seconds=0.0,
    microseconds=None,
    busy=0.0,
    dead_letters=0,
    waiting=0,
    deliveries=DELIVERIES,
    slates=0,
    swept=0,
    evicted=0,
    unranked=None,
    largest=None,
)
ACTION = ActionStatus(
    name="notify",
    address="",
    done=0,
    waiting=0,
    failed=0,
    dead_letters=0,
    missed=0,
    retrying=None,
    trouble=None,
)
COUNTS = NodeCounts(read=0, on_time=0, late=0, shed=0, dead=0, residual=0, gaps=0)
JOB = JobSummary(nodes={"web1": COUNTS}, silent=[], warnings=[], residual=0, open=0, closed=0)
CALM = Status(
    app="retail",
    order="event-time",
    running=True,
    batch=30,
    written=NOW,
    age=0.0,
    clock=NOW,
    events=0,
    late=0,
    dead_letters=0,
    letters_left=LettersLeft(0, 0),
    waiting=5,
    deliveries=DELIVERIES,
    intake=IntakeStatus(bytes=4096, pressure=0.2, held=0),
    feedback=0,
    horizon=NOW - 2_000_000,
    rate=0.0,
    seconds=0.0,
    batch_seconds=None,
    latency=BatchLatency(None, None, None, LatencyQuantiles(None, None, None)),
    sources=[SOURCE],
    streams=[],
    functions=[UPDATE],
    outputs=[],
    queues=[],
    slowest=[],
    troubles=[],
    actions=[],
    jobs={},
    mirror=None,
    server=ServerStatus(NOW, 0, 0, 0, {}, "http://here", "0.1", "store"),
    attention=[],
)
