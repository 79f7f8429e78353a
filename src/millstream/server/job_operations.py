"""What the routes of jobs take and give, for the OpenAPI document."""

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
"""What came of a pane at a node: data, empty (why: over, if its log has ended), lost (and why),
awaited, or missing; the bytes of its log that were gone, -1 if nobody knows how many."""
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
    ended=by_name(WHOLE),
    reducers=maybe(WHOLE),
    change=maybe(record(**{"reducers": WHOLE, "from": WHOLE})),
    panes=listed(record(pane=WHOLE, **SPAN, nodes=by_name(CELL))),
    windows=listed(WINDOW),
    open=WHOLE,
    closed=WHOLE,
    accounts=by_name(NODE_ACCOUNT),
    totals=NODE_ACCOUNT,
    warnings=listed(TEXT),
)

PAIRS = listed(listed(WHOLE))
"""Ranges: the first, and the one after the last."""
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
    "next is the after of the next question, with this life. With whole, it is all that is known: "
    "no after was given, or it is too old or of another life. opened: windows; closed: ranges of "
    "windows that all reducers have closed; accepted: ranges of panes that the root has taken, by "
    "node."
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
        "As of the last committed batch: the panes about the oldest open window, the windows that "
        "are open and the last that were closed.",
        JOB,
        errors={404: "There is no such job."},
    ),
    Operation(
        "GET",
        "/jobs/{name}/news",
        "What has happened to a job since an earlier answer, for its agents.",
        TOLD,
        NEWS,
        parameters={
            "node": ("query", "Whose accepted panes to tell of. Repeatable.", TEXT),
            "after": ("query", "The next of the last answer.", WHOLE),
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
