"""GET /openapi.json: the OpenAPI document of all routes.

`operations` and its neighbours list paths, parameters, status codes and descriptions. All schemas
are generated from the message types that the handlers use (`millstream.messages`). Tests check that
the document and the application have the same routes, and that answers are as the document says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.messages.errors import ErrorAnswer
from millstream.messages.feeds import GoneItems, KeptItems, LiveItems
from millstream.messages.slates import SlateEvent, SlateGone
from millstream.messages.streams import RecordGap
from millstream.server.http.answers import json_answer
from millstream.server.http.paths import Route, query
from millstream.server.openapi.feed_operations import FEED_OPERATIONS
from millstream.server.openapi.job_operations import AGENT_OPERATIONS, JOB_OPERATIONS
from millstream.server.openapi.operations import OPERATIONS, Operation

ALWAYS = {
    400: "The request is malformed.",
    401: "The token is missing or wrong.",
    403: "A page of another site made the request, or the token does not allow it.",
    421: "The Host header is not a name of this server.",
    429: "Too many requests, or too many wrong tokens.",
    503: "Try again later: the store cannot be read, or there are too many requests at once.",
}
"""Errors that any route may answer with."""
BODY_ERRORS = {408: "The body came too slowly.", 413: "The body is too large."}
"""Errors of any route that takes a body."""
EVENT_DATA = (SlateEvent, SlateGone, RecordGap, LiveItems, GoneItems, KeptItems)
"""The types of the data of server-sent events, which no operation names."""


def document() -> dict[str, Any]:
    """Builds the whole document."""
    operations = (*OPERATIONS, *JOB_OPERATIONS, *AGENT_OPERATIONS, *FEED_OPERATIONS)
    types = [ErrorAnswer, *EVENT_DATA]
    for operation in operations:
        types += operation.types()
    schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    written = _Writer(iter(schemas[1 + len(EVENT_DATA) :]), error=schemas[0])
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = written(operation)
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
            "schemas": components,
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


class _Writer:
    """Writes operations, with the schemas of their types, which come in the order of `types`."""

    def __init__(self, schemas: Iterator[dict[str, Any]], error: dict[str, Any]) -> None:
        self._schemas, self._error = schemas, error

    def __call__(self, operation: Operation) -> dict[str, Any]:
        schemas = [next(self._schemas) for _ in operation.answer_types]
        schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        answer = _content(operation.answer, {operation.media: schema})
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": next(self._schemas)}
            for name in operation.places
        ]
        parameters += [
            {
                "name": parameter.name,
                "in": parameter.location,
                "description": parameter.description,
                "required": parameter.required,
                "schema": next(self._schemas),
            }
            for parameter in operation.parameters
        ]
        body = {media: {"schema": next(self._schemas)} for media in operation.body}
        if operation.headers:
            answer["headers"] = {
                header.name: {"description": header.description, "schema": next(self._schemas)}
                for header in operation.headers
            }
        known = {**ALWAYS, **(BODY_ERRORS if operation.body else {}), **operation.errors}
        errors = {
            str(status): _content(description, {"application/json": self._error})
            for status, description in sorted(known.items())
        }
        written: dict[str, Any] = {
            "summary": operation.summary,
            "responses": {"200": answer, **errors},
        }
        if parameters:
            written["parameters"] = parameters
        if body:
            written["requestBody"] = {"required": operation.body_required, "content": body}
        return written


def _content(description: str, schemas: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    content = {media: {"schema": schema} for media, schema in schemas.items()}
    return {"description": description, "content": content}


def routes() -> list[Route]:
    whole = document()

    async def openapi(request: Request) -> Response:
        query(request, ())
        return json_answer(whole)

    return [Route("GET", ("openapi.json",), openapi, "any")]
