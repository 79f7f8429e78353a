"""Builds a job from its data, for the agent that runs it.

`definition` has the types, and makes the data of a job.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec

from millstream.algebra import BUILT_IN
from millstream.errors import InputError, MillstreamError
from millstream.windows.definition import FidelityDefinition, JobDefinition
from millstream.windows.fidelity import FIDELITIES, Fidelity
from millstream.windows.field_map import FieldMap
from millstream.windows.job import Job
from millstream.windows.logs import Logs
from millstream.windows.placed import PlacedJob


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
