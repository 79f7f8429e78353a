"""The parameters, bodies and answers of the routes of agents, for the OpenAPI document."""

from __future__ import annotations

from millstream.server.operations import (
    ANY,
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


def partly(**fields: Schema) -> Schema:
    """An object that may have any of these fields."""
    return {"type": "object", "required": [], "properties": fields}


TICKET = record(name=TEXT, version=TEXT)
AGENT = record(
    node=TEXT,
    parent=maybe(TEXT),
    depth=WHOLE,
    address=maybe(TEXT),
    children=listed(TEXT),
    jobs=listed(TEXT),
    heard=NUMBER,
    version=TEXT,
)
MEMBER = {
    **partly(
        node=TEXT,
        began=WHOLE,
        seat=WHOLE,
        parent=TEXT,
        url=TEXT,
        capacity=WHOLE,
        version=TEXT,
        jobs=listed(TICKET),
        hosts=YES_NO,
        age=NUMBER,
    ),
    "required": ["node"],
}
HELLO = {
    **partly(member=MEMBER, below=listed(MEMBER), gone=TEXT, leaving=YES_NO),
    "required": ["member"],
}
ORDERS = partly(seat=record(number=WHOLE, parent=TEXT, url=TEXT), jobs=listed(TICKET))
HELLO_ANSWER = {
    **partly(every=NUMBER, orders=by_name(ORDERS), path=listed(TEXT), merges=listed(TEXT)),
    "required": ["every"],
}

AGENT_OPERATIONS = (
    Operation(
        "GET",
        "/agents",
        "The agents that were heard of lately, with their parents.",
        "Those nearest to the root first. heard: seconds since the agent was last heard of.",
        record(agents=listed(AGENT)),
    ),
    Operation(
        "POST",
        "/agents/{node}",
        "The hello of an agent, for itself and the agents below it.",
        "When to send the next hello, and the root's orders for the agent and those below it: by "
        "node, its seat in the tree and the jobs to run.",
        HELLO_ANSWER,
        body={"application/json": HELLO},
        errors={409: "The hello is of another node than the one in the path."},
    ),
    Operation(
        "GET",
        "/jobs/{name}/definition",
        "The definition of a job, from which an agent makes its panes.",
        "Its version, and its definition or the hash of the package that has its code.",
        {**partly(version=TEXT, definition=ANY, package=TEXT), "required": ["version"]},
        errors={
            404: "There is no such job, or none with agents.",
            409: "The job is Python, and no package of it was given.",
        },
    ),
    Operation(
        "GET",
        "/packages/{hash}",
        "A package of code, by the sha256 of its bytes.",
        "The file.",
        TEXT,
        media="application/zip",
        errors={404: "There is no such package."},
    ),
)
