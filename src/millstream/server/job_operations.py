"""The parameters, bodies and answers of the routes of jobs, for the OpenAPI document."""

from __future__ import annotations

from millstream.server.operations import (
    JOB_SUMMARY,
    NODE_ACCOUNT,
    NUMBER,
    TEXT,
    WHOLE,
    YES_NO,
    Operation,
    Schema,
    by_name,
    listed,
    maybe,
    record,
)

CELL = record(mark=TEXT, why=maybe(TEXT), records=WHOLE, bytes=WHOLE, shed=WHOLE, gap=WHOLE)
"""The state of a pane at a node. mark: data, empty (why: over, if its log has ended), lost (and
why), awaited, or missing. gap: the bytes of its log that were gone, -1 if unknown."""
SPAN: dict[str, Schema] = {"from": WHOLE, "to": WHOLE}
WINDOW = record(
    window=WHOLE,
    **SPAN,
    state=TEXT,
    why=maybe(TEXT),
    corrections=WHOLE,
    coverage=record(area=NUMBER, time=NUMBER, space=NUMBER, missing=by_name(WHOLE)),
    completeness=record(
        records=maybe(NUMBER),
        bytes=maybe(NUMBER),
        unknown_panes=WHOLE,
        late=NUMBER,
        misdated=NUMBER,
    ),
    account=NODE_ACCOUNT,
)
JOB = record(
    name=TEXT,
    batch=WHOLE,
    agents=YES_NO,
    axis=TEXT,
    range=WHOLE,
    slide=WHOLE,
    pane=WHOLE,
    latency=maybe(TEXT),
    fidelity=maybe(TEXT),
    nodes=listed(TEXT),
    ended=by_name(maybe(WHOLE)),
    reducers=maybe(WHOLE),
    change=maybe(record(**{"reducers": WHOLE, "from": WHOLE})),
    panes=listed(record(pane=WHOLE, **SPAN, nodes=by_name(CELL))),
    windows=listed(WINDOW),
    open=WHOLE,
    closed=WHOLE,
    accounts=by_name(NODE_ACCOUNT),
    totals=NODE_ACCOUNT,
    warnings=listed(TEXT),
    silent=listed(TEXT),
)

PAIRS = listed(listed(WHOLE))
"""Ranges: the first number, and the one after the last."""
NEWS = record(
    life=TEXT,
    next=WHOLE,
    whole=YES_NO,
    origin=TEXT,
    opened=listed(WHOLE),
    closed=PAIRS,
    accepted=by_name(PAIRS),
)
QUESTION: Schema = {
    "type": "object",
    "properties": {"nodes": listed(TEXT), "life": TEXT, "after": maybe(WHOLE), "wait": NUMBER},
}
TOLD = (
    "Send next as the after of the next question, with this life. If whole is true, the answer has "
    "all that is known, because no after was given, or it is too old or of another life. opened: "
    "windows; closed: ranges of windows that all reducers have closed; accepted: ranges of panes "
    "that the root has accepted, by node."
)
NO_JOB = {404: "There is no such job, or none with agents."}

JOB_OPERATIONS = (
    Operation(
        "GET",
        "/jobs",
        "The jobs over windows, and whether all records of their nodes are accounted for.",
        "As of the last committed batch.",
        record(jobs=by_name(JOB_SUMMARY)),
    ),
    Operation(
        "GET",
        "/jobs/{name}",
        "One job: its scoreboard, its windows, and the accounts of its nodes.",
        "As of the last committed batch: the panes around the oldest open window, the open windows "
        "and the last closed ones.",
        JOB,
        errors={404: "There is no such job."},
    ),
    Operation(
        "GET",
        "/jobs/{name}/news",
        "The news of a job since an earlier answer, for its agents.",
        TOLD,
        NEWS,
        parameters={
            "node": ("query", "A node whose accepted panes to list. Repeatable.", TEXT),
            "after": (
                "query",
                "The next of the last answer.",
                {**WHOLE, "minimum": 0, "maximum": 10**18},
            ),
            "life": ("query", "The life of the last answer.", TEXT),
            "wait": (
                "query",
                "Seconds to wait for news, if there is none.",
                {**WHOLE, "minimum": 0, "maximum": 20, "default": 0},
            ),
        },
        errors=NO_JOB,
    ),
    Operation(
        "POST",
        "/jobs/{name}/news",
        "The same, for more nodes than a URL can name.",
        TOLD,
        NEWS,
        body={"application/json": QUESTION},
        errors=NO_JOB,
    ),
)
