"""GET /openapi.json: the OpenAPI document of all routes, written by hand in `operations`.

A test checks that the document and the application have the same routes.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from millstream.server.agent_operations import AGENT_OPERATIONS
from millstream.server.answers import json_answer
from millstream.server.feed_operations import FEED_OPERATIONS
from millstream.server.job_operations import JOB_OPERATIONS
from millstream.server.operations import OPERATIONS, Operation
from millstream.server.paths import Route, query

ALWAYS = {
    400: "The request is malformed.",
    401: "The token is missing or wrong.",
    403: "A page of another site made the request, or the token does not allow it.",
    421: "The Host header is not a name of this server.",
    429: "Too many requests, or too many wrong tokens.",
    503: "Try again later: the store cannot be read, or there are too many requests at once.",
}
"""Errors that any route may answer with."""

_ERROR = {
    "type": "object",
    "required": ["error", "status"],
    "properties": {
        "error": {"type": "string", "description": "What is wrong and what to do."},
        "status": {"type": "integer"},
    },
}


def document() -> dict[str, Any]:
    """Builds the whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in (*OPERATIONS, *JOB_OPERATIONS, *AGENT_OPERATIONS, *FEED_OPERATIONS):
        paths.setdefault(operation.path, {})[operation.method.lower()] = _written(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Millstream",
            "version": version("millstream"),
            "description": (
                "Events in, slates out, while the application runs. Times are microseconds since "
                "the epoch, durations seconds. A path is split at its slashes before "
                "percent-decoding: a slash in a key is %2F."
            ),
        },
        "paths": paths,
        "security": [{}, {"bearer": []}, {"basic": []}],
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "Any user, with the token as the password.",
                },
            },
        },
    }


def _written(operation: Operation) -> dict[str, Any]:
    answers = {"200": _answer(operation.answer, operation.media, operation.schema)}
    for status, description in sorted({**ALWAYS, **operation.errors}.items()):
        reference = {"$ref": "#/components/schemas/Error"}
        answers[str(status)] = _answer(description, "application/json", reference)
    if operation.answer_headers:
        answers["200"]["headers"] = {
            name: {"description": description, "schema": schema}
            for name, (description, schema) in operation.answer_headers.items()
        }
    written: dict[str, Any] = {"summary": operation.summary, "responses": answers}
    places = [word[1:-1] for word in operation.path.split("/") if word.startswith("{")]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in places
    ]
    parameters += [
        {
            "name": name,
            "in": where,
            "description": description,
            "required": name in operation.required,
            "schema": schema,
        }
        for name, (where, description, schema) in operation.parameters.items()
    ]
    if parameters:
        written["parameters"] = parameters
    if operation.body:
        written["requestBody"] = {
            "required": operation.body_required,
            "content": {media: {"schema": schema} for media, schema in operation.body.items()},
        }
    return written


def _answer(what: str, media: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": what, "content": {media: {"schema": schema}}}


def routes() -> list[Route]:
    whole = document()

    async def openapi(request: Request) -> Response:
        query(request, ())
        return json_answer(whole)

    return [Route("GET", ("openapi.json",), openapi, "any")]
