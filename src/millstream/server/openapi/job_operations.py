"""The parameters, bodies and answers of the routes of jobs and agents, for the OpenAPI document."""

from __future__ import annotations

from millstream.messages.jobs import DefinitionAnswer, JobAnswer, JobsAnswer
from millstream.server.openapi.operations import Operation, Parameter, whole
from millstream.trees.messages import (
    LONGEST_WAIT,
    AgentsAnswer,
    Hello,
    HelloAnswer,
    News,
    NewsQuestion,
)

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
        JobsAnswer,
    ),
    Operation(
        "GET",
        "/jobs/{name}",
        "One job: its scoreboard, its windows, and the accounts of its nodes.",
        "As of the last committed batch: the panes around the oldest open window, the open windows "
        "and the last closed ones.",
        JobAnswer,
        errors={404: "There is no such job."},
    ),
    Operation(
        "GET",
        "/jobs/{name}/news",
        "The news of a job since an earlier answer, for its agents.",
        TOLD,
        News,
        parameters=(
            Parameter("node", "A node whose accepted panes to list. Repeatable."),
            Parameter("after", "The next of the last answer.", whole(0, 10**18)),
            Parameter("life", "The life of the last answer."),
            Parameter(
                "wait",
                "Seconds to wait for news, if there is none.",
                whole(0, int(LONGEST_WAIT), default=0),
            ),
        ),
        errors=NO_JOB,
    ),
    Operation(
        "POST",
        "/jobs/{name}/news",
        "The same, for more nodes than a URL can name.",
        TOLD,
        News,
        body={"application/json": NewsQuestion},
        errors=NO_JOB,
    ),
)
AGENT_OPERATIONS = (
    Operation(
        "GET",
        "/agents",
        "The agents that were heard of lately, with their parents.",
        "Those nearest to the root first. heard: seconds since the agent was last heard of.",
        AgentsAnswer,
    ),
    Operation(
        "POST",
        "/agents/{node}",
        "The hello of an agent, for itself and the agents below it.",
        "When to send the next hello, and the root's orders for the agent and those below it: by "
        "node, its seat in the tree and the jobs to run.",
        HelloAnswer,
        body={"application/json": Hello},
        errors={409: "The hello is of another node than the one in the path."},
    ),
    Operation(
        "GET",
        "/jobs/{name}/definition",
        "The definition of a job, from which an agent makes its panes.",
        "Its version, and its definition or the hash of the package that has its code.",
        DefinitionAnswer,
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
        str,
        media="application/zip",
        errors={404: "There is no such package."},
    ),
)
