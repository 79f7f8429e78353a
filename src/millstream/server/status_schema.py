"""The JSON schema of the answer to GET /status."""

from __future__ import annotations

from millstream.server.schema_words import (
    NUMBER,
    TEXT,
    WHOLE,
    YES_NO,
    by_name,
    listed,
    maybe,
    record,
)

DELIVERIES = record(
    taken=WHOLE,
    processed=WHOLE,
    dropped=WHOLE,
    diverted=WHOLE,
    waiting=WHOLE,
    dead_letters=WHOLE,
    late=WHOLE,
    retried=WHOLE,
    residual=WHOLE,
)
NODE_ACCOUNT = record(
    read=WHOLE, on_time=WHOLE, late=WHOLE, shed=WHOLE, dead=WHOLE, residual=WHOLE, gaps=WHOLE
)
"""The account of a job's node: read = on_time + late + shed + dead; `gaps`: panes that have lost
bytes."""
JOB_SUMMARY = record(
    nodes=by_name(NODE_ACCOUNT),
    silent=listed(TEXT),
    warnings=listed(TEXT),
    residual=WHOLE,
    open=WHOLE,
    closed=WHOLE,
)
LATENCY = {"last": maybe(NUMBER), "p50": maybe(NUMBER), "p99": maybe(NUMBER)}
STATUS = record(
    app=TEXT,
    order=TEXT,
    running=YES_NO,
    batch=WHOLE,
    written=maybe(WHOLE),
    age=maybe(NUMBER),
    clock=maybe(WHOLE),
    events=WHOLE,
    late=WHOLE,
    dead_letters=WHOLE,
    waiting=WHOLE,
    deliveries=DELIVERIES,
    intake=record(bytes=maybe(WHOLE), pressure=NUMBER, held=WHOLE),
    feedback=WHOLE,
    horizon=maybe(WHOLE),
    rate=NUMBER,
    seconds=NUMBER,
    batch_seconds=maybe(NUMBER),
    latency=record(**LATENCY, waited=record(**LATENCY)),
    sources=listed(
        record(
            name=TEXT,
            address=TEXT,
            events=WHOLE,
            rate=NUMBER,
            lag_bytes=maybe(WHOLE),
            lag_events=maybe(WHOLE),
            lag_seconds=maybe(NUMBER),
            lag_growth=maybe(NUMBER),
            highest=maybe(WHOLE),
            dead_letters=WHOLE,
            lost=WHOLE,
        )
    ),
    streams=listed(record(name=TEXT, events=WHOLE, rate=NUMBER)),
    functions=listed(
        record(
            name=TEXT,
            kind=TEXT,
            processed=WHOLE,
            rate=NUMBER,
            seconds=NUMBER,
            microseconds=maybe(NUMBER),
            busy=NUMBER,
            dead_letters=WHOLE,
            waiting=WHOLE,
            deliveries=DELIVERIES,
            slates=maybe(WHOLE),
            swept=maybe(WHOLE),
            evicted=maybe(WHOLE),
            unranked=maybe(WHOLE),
            largest=maybe(record(key=TEXT, bytes=WHOLE)),
        )
    ),
    outputs=listed(record(name=TEXT, address=TEXT, error=maybe(TEXT))),
    queues=listed(record(function=TEXT, waiting=WHOLE)),
    slowest=listed(TEXT),
    troubles=listed(record(name=TEXT, since=WHOLE, error=TEXT)),
    actions=listed(
        record(
            name=TEXT,
            address=TEXT,
            done=WHOLE,
            waiting=WHOLE,
            failed=WHOLE,
            dead_letters=WHOLE,
            missed=WHOLE,
            retrying=maybe(record(since=WHOLE, tries=WHOLE, error=TEXT)),
            trouble=maybe(TEXT),
        )
    ),
    mirror=maybe(
        record(
            place=TEXT,
            shards=maybe(listed(WHOLE)),
            asked=WHOLE,
            asked_age=NUMBER,
            error=maybe(TEXT),
        )
    ),
    jobs=by_name(JOB_SUMMARY),
    server=record(
        since=WHOLE,
        requests=WHOLE,
        accepted=WHOLE,
        refused=WHOLE,
        answers={"type": "object", "additionalProperties": WHOLE},
        url=TEXT,
        version=TEXT,
        store=TEXT,
    ),
    attention=listed(record(kind=TEXT, level=TEXT, text=TEXT, panel=TEXT)),
)
