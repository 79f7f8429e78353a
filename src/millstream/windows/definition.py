"""A placed job as data: all that an agent needs to make its panes (iMR, 2.2).

The root publishes its jobs in the application's description, which the server reads without loading
the user's code. `definition_reader` builds the job from its data. A job is data if its map is a
`FieldMap`, its combine is an algebra of the library and its logs have no function. Such a job is
sent as a `JobDefinition`. `reduce` runs only at the root, so it may be Python. Any other job is
Python, and is sent as a package, named by its hash, if the run was given one.

`version` is a hash of what agents do for the job. While it is the same, nothing has changed for
them. It leaves out the nodes, since adding a node changes nothing for those that run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from millstream.algebra import BUILT_IN
from millstream.codec import encode_value
from millstream.errors import CodecError, InputError, MillstreamError
from millstream.model.algebra import Algebra
from millstream.model.duration import instant, microseconds, shown_duration
from millstream.windows.fidelity import FIDELITIES, Fidelity, Kind, Shed
from millstream.windows.field_map import FieldMap
from millstream.windows.span import Axis

if TYPE_CHECKING:
    from millstream.windows.logs import Logs
    from millstream.windows.placed import PlacedJob

FORMAT = 1
"""Must be increased when older agents would misread a definition."""
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
    """One of the fidelities `Area`, `Spatial`, `Temporal` and `Error`."""

    kind: Literal["area", "spatial", "temporal", "error"]
    part: float
    drawn: bool = False
    confidence: float | None = None


class JobDefinition(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A placed job without its `reduce`, which agents do not need. The fields are those of `Job`,
    with the values that the application gave."""

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
    """The fields of `Logs` that differ from their defaults. None: panes come from streams."""

    @property
    def version(self) -> str:
        """The hash of the content without the nodes."""
        content = {**msgspec.to_builtins(self), "nodes": []}
        return sha256(encode_value(content)).hexdigest()


class PublishedJob(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The server's answer to agents about a job: its definition, or the package that has its
    code."""

    version: str
    """Changes whenever the job changes."""
    definition: JobDefinition | None = None
    package: str | None = None
    """The sha256 of the package."""


def python_in(placed: PlacedJob) -> tuple[str, ...]:
    """Names the parts of a job that agents need and that are Python. Empty: the job is data."""
    job, logs = placed.job, placed.logs
    parts = []
    if not isinstance(job.map, FieldMap):
        parts.append("map")
    if job.combine is not None and _combine(job.combine) is None:
        parts.append("combine")
    if job.fidelity is not None and type(job.fidelity) not in FIDELITIES.values():
        parts.append("fidelity")
    if logs is not None:
        for option in fields(logs):
            if callable(getattr(logs, option.name)):
                parts.append(f"logs.{option.name}")
    return tuple(parts)


def definition_of(placed: PlacedJob) -> JobDefinition | None:
    """Returns a job as data. None if it is Python, or has a number that JSON cannot carry."""
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


def read_published(data: bytes) -> PublishedJob:
    """Decodes a server's answer. Raises InputError if it is not a job that this version knows."""
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


def described_definition(placed: PlacedJob) -> dict[str, Any] | None:
    """Returns a job's `PublishedJob` for the description. None if it is Python."""
    definition = definition_of(placed)
    if definition is None:
        return None
    published = PublishedJob(version=definition.version, definition=definition)
    plain: dict[str, Any] = msgspec.to_builtins(published)
    return plain


def with_package(parts: Mapping[str, Any], sha: str, jobs: Collection[str]) -> dict[str, Any]:
    """Returns the parts of a description, with `sha` as the package of those of its Python jobs
    that are in `jobs`."""
    published = msgspec.to_builtins(PublishedJob(version=sha, package=sha))
    return {
        name: {**part, "definition": published}
        if name in jobs and part.get("agents") and part.get("definition") is None
        else part
        for name, part in parts.items()
    }


def _arrives(definition: JobDefinition) -> bool:
    """True if the definition is unchanged after encoding to JSON and decoding."""
    try:
        data = encode_value(msgspec.to_builtins(definition))
        return msgspec.json.decode(data, type=JobDefinition) == definition
    except (CodecError, msgspec.DecodeError):
        return False


def _map(field_map: FieldMap) -> MapDefinition:
    return MapDefinition(
        **{name: getattr(field_map, name) for name in MapDefinition.__struct_fields__}
    )


def _combine(combine: object) -> CombineDefinition | None:
    """Returns an algebra's name and arguments, if these make an equal algebra again."""
    if not isinstance(combine, Algebra) or combine.name not in BUILT_IN:
        return None
    try:
        arguments = msgspec.json.decode(encode_value(dict(combine.arguments)))
        if combine.name == "quantiles":  # its shares are stored as text, as in its slates
            arguments["at"] = [float(share) for share in arguments["at"]]
        rebuilt = BUILT_IN[combine.name](**arguments)
    except (MillstreamError, TypeError):
        return None  # an argument is a function, or the algebra is a user's own
    same = rebuilt == combine and rebuilt.lift.__module__ == combine.lift.__module__
    return CombineDefinition(algebra=combine.name, arguments=arguments) if same else None


def _fidelity(fidelity: Fidelity | None) -> FidelityDefinition | None:
    if fidelity is None:
        return None
    options = {option.name: getattr(fidelity, option.name) for option in fields(fidelity)}  # type: ignore[arg-type]
    kind: Any = type(fidelity).__name__.lower()
    return FidelityDefinition(kind=kind, **{**options, "part": float(options["part"])})


def _logs(logs: Logs) -> dict[str, Any]:
    return {
        option.name: _plain(getattr(logs, option.name))
        for option in fields(logs)
        if option.init
        and (option.default is MISSING or getattr(logs, option.name) != option.default)
    }


def _plain(value: Any) -> Any:
    """Converts a value to what JSON can carry. A timedelta becomes a duration in text."""
    if isinstance(value, timedelta):
        return shown_duration(microseconds(value, ""))
    return list(value) if isinstance(value, tuple) else value
