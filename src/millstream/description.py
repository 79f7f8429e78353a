"""The application in words that need none of its code: what the server knows of it.

A run writes it into the store, before Spark starts; whoever serves the store reads it there. So the
server never loads or runs a user's module. A source whose key or time is a Python function cannot
be tried outside the application: its records are checked when they are taken in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from millstream.durable import read_record, write_record
from millstream.graph import geometry
from millstream.model.function import Update
from millstream.model.place import location
from millstream.model.source import Source
from millstream.model.text_form import TextForm
from millstream.model.workflow import Workflow

FILE = "app.json"


class SourceDescription(msgspec.Struct, frozen=True):
    """A stream from outside, and where its records come from."""

    name: str
    key: str | None
    ts: str | None
    unit: str | None
    whole: bool
    """Whether this is all there is to know: False when its key or ts is a Python function."""
    address: str
    time_format: str | None = None
    zone: str | None = None
    ahead: int | None = None
    pattern: str | None = None
    """How text that is sent becomes records; see model/text_form.py."""
    starts: str | None = None

    @property
    def log(self) -> Path | None:
        """The event log that it reads; None if it reads something else."""
        kind, _, path = self.address.partition(":")
        return Path(path) if kind == "log" else None

    def source(self) -> Source:
        """The source itself, to try records on."""
        return Source(
            self.name,
            self.key,
            self.ts,
            self.unit,
            time_format=self.time_format,
            zone=self.zone,
            ahead=self.ahead,
            text=TextForm(self.pattern, self.starts),
        )


class FunctionDescription(msgspec.Struct, frozen=True):
    """A map or an update."""

    name: str
    kind: str
    subscribes: list[str]
    publishes: list[str]
    slate: str | None
    """An update's kind of slate: dict, dataclass, table or aggregate:NAME."""
    ttl: int | None
    place: str
    """The file and line of the function."""


class Description(msgspec.Struct, frozen=True):
    """A whole application."""

    app: str
    order: str
    sources: list[SourceDescription]
    functions: list[FunctionDescription]
    streams: list[str]
    """All of them, the sources first."""
    outputs: list[str]
    graph: dict[str, Any]
    """Where everything goes in a drawing; see graph/geometry.py."""
    parts: dict[str, Any] = {}
    """What the application's parts, such as its jobs, say of themselves, by their names."""


def describe(workflow: Workflow, addresses: Mapping[str, str]) -> Description:
    """A workflow in words; `addresses` says where each source reads."""
    return Description(
        workflow.name,
        workflow.order,
        [_source(source, addresses[source.name]) for source in workflow.sources],
        [
            FunctionDescription(
                function.name,
                "update" if isinstance(function, Update) else "map",
                list(function.subscribes),
                list(function.publishes),
                function.kind if isinstance(function, Update) else None,
                function.ttl if isinstance(function, Update) else None,
                location(function.function).strip(" ()"),
            )
            for function in workflow.functions
        ],
        list(workflow.streams),
        list(workflow.outputs),
        geometry(workflow),
        dict(workflow.parts),
    )


def write_description(store: Path, description: Description) -> None:
    """Leave the description in a store, for whoever serves it."""
    data = msgspec.json.encode(description)
    if read_record(store / FILE) != data:
        write_record(store / FILE, data)


def read_description(store: Path) -> Description | None:
    """The description that the last run left in a store; None if there was none yet."""
    data = read_record(store / FILE)
    return None if data is None else msgspec.json.decode(data, type=Description)


def _source(source: Source, address: str) -> SourceDescription:
    key, ts = (of if isinstance(of, str) else None for of in (source.key, source.ts))
    whole = not callable(source.key) and not callable(source.ts)
    return SourceDescription(
        source.name,
        key,
        ts,
        source.unit,
        whole,
        address,
        source.time_format,
        source.zone,
        source.ahead,
        source.text.pattern,
        source.text.starts,
    )
