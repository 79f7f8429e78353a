"""Reads a job from its data: for the server that passes it on, and for the agent that runs it.

`definition` has the types, and makes the data of a job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec

from millstream.algebra import BUILT_IN
from millstream.errors import InputError, MillstreamError
from millstream.windows.definition import (
    FIDELITIES,
    FidelityDefinition,
    JobDefinition,
    PublishedJob,
)
from millstream.windows.fidelity import Fidelity
from millstream.windows.field_map import FieldMap
from millstream.windows.job import Job
from millstream.windows.logs import Logs
from millstream.windows.placed import PlacedJob, job_parts


def placed_of(definition: JobDefinition) -> PlacedJob:
    """Builds the job from its definition. Raises InputError if this version of Millstream cannot
    run it."""
    try:
        return _placed(definition)
    except (MillstreamError, TypeError, KeyError) as error:
        raise InputError(
            f"definition of job {definition.name!r}: {error}; if the root runs a newer version of "
            "Millstream, install that one here"
        ) from error


def published_job(parts: Mapping[str, Any], name: str) -> PublishedJob | None:
    """Finds the job for agents in the parts of an application's `Description`.

    None if there is no such job, if its panes do not come from agents, or if it is Python and the
    run was given no package.
    """
    part = job_parts({name: parts.get(name)}).get(name)
    if part is None or not part.agents or part.definition is None:
        return None
    try:
        return msgspec.convert(part.definition, PublishedJob)
    except msgspec.ValidationError as error:
        raise InputError(
            f"definition of job {name!r} in the store: {error}; the application was started with "
            "another version of Millstream: serve it with that one"
        ) from None


def _placed(definition: JobDefinition) -> PlacedJob:
    combine = definition.combine
    options = {option.name for option in fields(Job) if option.init} & {
        *definition.__struct_fields__
    }
    values = {name: getattr(definition, name) for name in options}
    values["map"] = FieldMap(**msgspec.structs.asdict(definition.map))
    values["combine"] = combine and BUILT_IN[combine.algebra](**combine.arguments)
    values["fidelity"] = definition.fidelity and _fidelity_of(definition.fidelity)
    logs = definition.logs
    return PlacedJob(
        Job(**values),
        definition.name,
        definition.nodes,
        None if logs is None else Logs(**{name: _frozen(value) for name, value in logs.items()}),
    )


def _fidelity_of(definition: FidelityDefinition) -> Fidelity:
    kind = FIDELITIES[definition.kind]
    options = {option.name: getattr(definition, option.name) for option in fields(kind)}
    return kind(**options)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
