"""The parameters, bodies and answers of the routes of agents, for the OpenAPI document."""

from __future__ import annotations

from millstream.messages.jobs import DefinitionAnswer
from millstream.server.openapi.operations import Operation
from millstream.trees.messages import AgentsAnswer, Hello, HelloAnswer, NodeName

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
        place_types={"node": NodeName},
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
