"""A placed job as data: all that an agent needs to make its panes (iMR, 2.2).

The root publishes its jobs in the application's description, which the server reads without loading
a user's code: `published_job` finds one there for the agents. A job whose map is a `FieldMap`,
whose combine is an algebra of the library and whose logs have no function is data, and travels as a
`JobDefinition`. `reduce` runs at the root alone, so it may be Python. Any other job is Python, and
travels as a package that is named by its hash, if the run was given one.

`version` is a hash of what agents do for the job: if it is the same, nothing changed for them. The
nodes are not in it, since another node changes nothing for those that run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal

import msgspec

from millstream.algebra import BUILT_IN
from millstream.codec import encode_value
from millstream.errors import CodecError, InputError, MillstreamError
from millstream.model.algebra import Algebra
from millstream.model.duration import instant, microseconds, shown_duration
from millstream.windows.fidelity import Area, Error, Fidelity, Spatial, Temporal
from millstream.windows.field_map import FieldMap
from millstream.windows.job import Job, Kind, Shed
from millstream.windows.logs import Logs
from millstream.windows.placed import PlacedJob
from millstream.windows.span import Axis

FORMAT = 1
"""Raised when an agent of before would misread a definition."""
_FIDELITIES = {kind.__name__.lower(): kind for kind in (Area, Spatial, Temporal, Error)}
Number = int | float


class MapDefinition(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A `FieldMap`."""

    key: str | tuple[str, ...] | dict[str, str] | None = None
    split: str | None = None
    value: str | dict[str, str] | None = None
    where: dict[str, Any] | None = None
    numbers: tuple[str, ...] = ()
    separator: str = "/"


class CombineDefinition(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An algebra of the library."""

    algebra: str
    arguments: dict[str, Any] = {}


class FidelityDefinition(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One of the fidelities that windows have."""

    kind: Literal["area", "spatial", "temporal", "error"]
    part: float
    drawn: bool = False
    confidence: float | None = None


class JobDefinition(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A placed job without its `reduce`, which agents do not need. The fields are those of `Job`,
    as the application has them."""

    name: str
    nodes: tuple[str, ...]
    map: MapDefinition
    range: int | str
    format: int = FORMAT
    slide: int | str | None = None
    pane: int | str | None = None
    by: Axis = "time"
    sequence: str | None = None
    begin: int | None = None
    extent: int | str | None = None
    combine: CombineDefinition | None = None
    latency: str | None = None
    fidelity: FidelityDefinition | None = None
    reducers: int = 1
    shed: Shed = "order"
    seed: int = 0
    bounds: Kind | None = None
    most: Number | tuple[Number, Number] | None = None
    confidence: float = 0.95
    corrections: int = 0
    logs: dict[str, Any] | None = None
    """The fields of `Logs` that are not as they are by default; None: panes come from streams."""

    @property
    def version(self) -> str:
        """The hash of the content, but for the nodes."""
        content = {**msgspec.to_builtins(self), "nodes": []}
        return sha256(encode_value(content)).hexdigest()


class PublishedJob(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What agents are told of a job: its definition, or the package that has its code."""

    version: str
    """Another one: the job changed."""
    definition: JobDefinition | None = None
    package: str | None = None
    """The sha256 of the package."""


def python_in(placed: PlacedJob) -> tuple[str, ...]:
    """What of a job is Python that agents would need; none: it is data."""
    job, logs = placed.job, placed.logs
    found = []
    if not isinstance(job.map, FieldMap):
        found.append("map")
    if job.combine is not None and _combine(job.combine) is None:
        found.append("combine")
    if job.fidelity is not None and type(job.fidelity) not in _FIDELITIES.values():
        found.append("fidelity")
    if logs is not None:
        for one in fields(logs):
            if callable(getattr(logs, one.name)):
                found.append(f"logs.{one.name}")
    return tuple(found)


def definition_of(placed: PlacedJob) -> JobDefinition | None:
    """A job as data; None if it is Python, or has a number that JSON cannot carry."""
    job = placed.job
    if python_in(placed) or not isinstance(job.map, FieldMap):
        return None
    definition = JobDefinition(
        name=placed.name,
        nodes=placed.nodes,
        map=_map(job.map),
        range=_plain(job.range),
        slide=_plain(job.slide),
        pane=_plain(job.pane),
        by=job.by,
        sequence=job.sequence,
        begin=instant(job.begin) if isinstance(job.begin, datetime) else job.begin,
        extent=_plain(job.extent),
        combine=_combine(job.combine),
        latency=_plain(job.latency),
        fidelity=_fidelity(job.fidelity),
        reducers=job.reducers,
        shed=job.shed,
        seed=job.seed,
        bounds=job.bounds,
        most=job.most,
        confidence=job.confidence,
        corrections=job.corrections,
        logs=None if placed.logs is None else _logs(placed.logs),
    )
    return definition if _arrives(definition) else None


def placed_of(definition: JobDefinition) -> PlacedJob:
    """The job that a definition is of. InputError if this version of Millstream cannot run it."""
    try:
        return _placed(definition)
    except (MillstreamError, TypeError, KeyError) as error:
        raise InputError(
            f"definition of job {definition.name!r}: {error}; if the root runs a newer version of "
            "Millstream, install that one here"
        ) from error


def read_published(data: bytes) -> PublishedJob:
    """What a server answered; InputError if it is no job that this version knows."""
    try:
        published = msgspec.json.decode(data, type=PublishedJob)
    except msgspec.DecodeError as error:
        raise InputError(
            f"definition of a job: {error}; if the root runs a newer version of Millstream, "
            "install that one here"
        ) from None
    definition = published.definition
    if definition is not None and definition.format != FORMAT:
        raise InputError(
            f"definition of job {definition.name!r}: must be of format {FORMAT}; got "
            f"{definition.format}; install the version of Millstream that the root runs"
        )
    return published


def published_job(parts: Mapping[str, Any], name: str) -> PublishedJob | None:
    """What agents are told of a job, from the parts of an application's `Description`.

    None if there is no such job, if its panes do not come from agents, or if it is Python and the
    run was given no package.
    """
    part = parts.get(name)
    if not isinstance(part, Mapping) or part.get("kind") != "job" or not part.get("agents"):
        return None
    published = part.get("definition")
    if published is None:
        return None
    try:
        return msgspec.convert(published, PublishedJob)
    except msgspec.ValidationError as error:
        raise InputError(
            f"definition of job {name!r} in the store: {error}; the application was started with "
            "another version of Millstream: serve it with that one"
        ) from None


def described_definition(placed: PlacedJob) -> dict[str, Any] | None:
    """A job's `PublishedJob` for the description; None if it is Python."""
    definition = definition_of(placed)
    if definition is None:
        return None
    published = PublishedJob(version=definition.version, definition=definition)
    plain: dict[str, Any] = msgspec.to_builtins(published)
    return plain


def with_package(parts: Mapping[str, Any], sha: str, jobs: Collection[str]) -> dict[str, Any]:
    """The parts of a description, where the Python jobs that a package holds name it."""
    published = msgspec.to_builtins(PublishedJob(version=sha, package=sha))
    return {
        name: {**part, "definition": published}
        if name in jobs and part.get("agents") and part.get("definition") is None
        else part
        for name, part in parts.items()
    }


def _placed(definition: JobDefinition) -> PlacedJob:
    combine = definition.combine
    options = {one.name for one in fields(Job) if one.init} & {*definition.__struct_fields__}
    given = {name: getattr(definition, name) for name in options}
    given["map"] = FieldMap(**msgspec.structs.asdict(definition.map))
    given["combine"] = combine and BUILT_IN[combine.algebra](**combine.arguments)
    given["fidelity"] = definition.fidelity and _fidelity_of(definition.fidelity)
    logs = definition.logs
    return PlacedJob(
        Job(**given),
        definition.name,
        definition.nodes,
        None if logs is None else Logs(**{name: _frozen(value) for name, value in logs.items()}),
    )


def _arrives(definition: JobDefinition) -> bool:
    """Whether it is the same after it was JSON."""
    try:
        data = encode_value(msgspec.to_builtins(definition))
        return msgspec.json.decode(data, type=JobDefinition) == definition
    except (CodecError, msgspec.DecodeError):
        return False


def _map(given: FieldMap) -> MapDefinition:
    return MapDefinition(**{name: getattr(given, name) for name in MapDefinition.__struct_fields__})


def _combine(combine: object) -> CombineDefinition | None:
    """An algebra by its name and arguments, if these make the same one again."""
    if not isinstance(combine, Algebra) or combine.name not in BUILT_IN:
        return None
    try:
        arguments = msgspec.json.decode(encode_value(dict(combine.arguments)))
        if combine.name == "quantiles":  # it remembers its shares as its slates name them, as text
            arguments["at"] = [float(share) for share in arguments["at"]]
        made = BUILT_IN[combine.name](**arguments)
    except (MillstreamError, TypeError):
        return None  # an argument is a function, or the algebra is a user's own
    same = made == combine and made.lift.__module__ == combine.lift.__module__
    return CombineDefinition(algebra=combine.name, arguments=arguments) if same else None


def _fidelity(fidelity: Fidelity | None) -> FidelityDefinition | None:
    if fidelity is None:
        return None
    own = {one.name: getattr(fidelity, one.name) for one in fields(fidelity)}  # type: ignore[arg-type]
    kind: Any = type(fidelity).__name__.lower()
    return FidelityDefinition(kind=kind, **{**own, "part": float(own["part"])})


def _fidelity_of(definition: FidelityDefinition) -> Fidelity:
    kind = _FIDELITIES[definition.kind]
    own = {one.name: getattr(definition, one.name) for one in fields(kind)}
    return kind(**own)


def _logs(logs: Logs) -> dict[str, Any]:
    return {
        one.name: _plain(getattr(logs, one.name))
        for one in fields(logs)
        if one.init and (one.default is MISSING or getattr(logs, one.name) != one.default)
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it; a timedelta is a duration in text."""
    if isinstance(value, timedelta):
        return shown_duration(microseconds(value, ""))
    return list(value) if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
